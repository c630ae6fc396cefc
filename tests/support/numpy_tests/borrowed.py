"""Rewrite the source of a test module so that its array operations go through replaceable calls."""

import ast
from typing import Any

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
INPLACE: dict[type[ast.AST], str] = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
    ast.LShift: "ilshift", ast.RShift: "irshift",
}  # fmt: skip
UNARY: dict[type[ast.AST], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


class Borrower(ast.NodeTransformer):
    """Rewrites one module. `methods` are names of array methods, `modules` those with a proxy."""

    def __init__(self, methods: tuple[str, ...], modules: tuple[str, ...]) -> None:
        self.methods, self.modules = methods, modules
        self.depth = 0

    def call(self, node: ast.AST, name: str, *arguments: Any, keywords: Any = ()) -> ast.Call:
        function = ast.Attribute(ast.Name("__suite__", ast.Load()), name, ast.Load())
        call = ast.Call(
            function,
            [ast.Constant(argument) if isinstance(argument, str) else argument for argument in arguments],
            [*keywords],
        )
        return ast.copy_location(call, node)

    def visit_Import(self, node: ast.Import) -> Any:
        statements: list[ast.stmt] = [node]
        for alias in node.names:
            if alias.name in self.modules and (alias.asname or "." not in alias.name):
                target = ast.Name(alias.asname or alias.name, ast.Store())
                statements.append(ast.copy_location(ast.Assign([target], self.call(node, "module", alias.name)), node))
        return statements

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module not in self.modules:
            return node
        names = [alias.asname or alias.name for alias in node.names if alias.name != "*"]
        return [
            node,
            *(
                ast.copy_location(
                    ast.Assign([ast.Name(name, ast.Store())], self.call(node, "standin", ast.Name(name, ast.Load()))),
                    node,
                )
                for name in names
            ),
        ]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Leave decorators and defaults unchanged."""
        self.depth += 1
        node.body = [rewritten for statement in node.body for rewritten in _listed(self.visit(statement))]
        self.depth -= 1
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.depth += 1
        node.body = self.visit(node.body)
        self.depth -= 1
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self.call(node, "binary", BINARY[type(node.op)], node.left, node.right) if self.depth else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if not self.depth or type(node.op) not in UNARY or isinstance(node.operand, ast.Constant):
            return node
        return self.call(node, "unary", UNARY[type(node.op)], node.operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if not self.depth or len(node.ops) != 1 or type(node.ops[0]) not in BINARY:
            return node
        return self.call(node, "binary", BINARY[type(node.ops[0])], node.left, node.comparators[0])

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if not self.depth or not isinstance(node.ctx, ast.Load):
            return node
        return self.call(node, "get", node.value, index_of(node.slice))

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if not self.depth or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
            return node
        target = node.targets[0]
        call = self.call(node, "set", target.value, index_of(target.slice), node.value)
        return ast.copy_location(ast.Expr(call), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not self.depth or not isinstance(node.target, ast.Name) or type(node.op) not in INPLACE:
            return node
        call = self.call(node, "binary", INPLACE[type(node.op)], ast.Name(node.target.id, ast.Load()), node.value)
        return ast.copy_location(ast.Assign([node.target], call), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        function = node.func
        if not self.depth or not isinstance(function, ast.Attribute) or function.attr not in self.methods:
            return node
        return self.call(node, "method", function.value, function.attr, *node.args, keywords=node.keywords)


def _listed(nodes: Any) -> list[Any]:
    return nodes if isinstance(nodes, list) else [] if nodes is None else [nodes]


def index_of(node: ast.expr) -> ast.expr:
    """Return an index as an expression of its own."""
    if isinstance(node, ast.Slice):
        nothing = ast.Constant(None)
        return ast.Call(
            ast.Name("slice", ast.Load()), [bound or nothing for bound in (node.lower, node.upper, node.step)], []
        )
    if isinstance(node, ast.Tuple):
        return ast.Tuple([index_of(bound) for bound in node.elts], ast.Load())
    return node
