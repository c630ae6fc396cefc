"""Loops and branches as calls: bodies become functions in the function, which share its variables.

``if a > b: x = 1`` becomes, for a module `flow` that the trace provides::

    def yes(): nonlocal x; x = 1
    def no(): nonlocal x
    flow.if_(a > b, yes, no, state)

where ``state`` reads and sets the variables that are read later. ``and``, ``or``, ``not``, ``a if c else b`` and chains
of comparisons are calls too, as an array of a trace has no truth.
"""

import ast
from collections.abc import Sequence

from jitkernels.frontends.rewriting.jumps import STOPS, none_of
from jitkernels.frontends.rewriting.liveness import STATE

FLOW, PART = "_jk_flow", "_jk_part"
"""The name by which rewritten functions know what their loops and branches call; that of their bodies, with numbers."""


def of_flow(name: str) -> ast.expr:
    """``flow.name``."""
    return ast.Attribute(ast.Name(FLOW, ast.Load()), name, ast.Load())


def _called(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(of_flow(name), list(arguments), [])


def _later(node: ast.expr) -> ast.expr:
    """``lambda: node``."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, node)


class Expressions(ast.NodeTransformer):
    """Rewrites what asks for truth inside of an expression. Of a test nothing but its truth counts."""

    def test(self, node: ast.expr) -> ast.expr:
        """A condition."""
        match node:
            case ast.BoolOp(op=sign, values=values):
                *others, found = [self.test(one) for one in values]
                for one in reversed(others):
                    found = _called("both" if isinstance(sign, ast.And) else "either", one, _later(found))
                return found
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _called("not_", self.test(operand))
        return self.visit(node)  # type: ignore[no-any-return]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        *others, found = [self.visit(one) for one in node.values]
        for one in reversed(others):
            found = _called("and_" if isinstance(node.op, ast.And) else "or_", one, _later(found))
        return found  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _called("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _called("chosen", node.test, _later(node.body), _later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        inner = node.comparators[:-1]
        if not inner or not all(isinstance(one, ast.Name | ast.Constant) for one in inner):
            return node
        ends = [node.left, *node.comparators]
        found: ast.expr | None = None
        for place in reversed(range(len(node.ops))):
            one = ast.Compare(ends[place], [node.ops[place]], [ends[place + 1]])
            found = one if found is None else _called("and_", one, _later(found))
        assert found is not None, "a comparison has an operator"
        return found


class Builtins(ast.NodeTransformer):
    """Has calls of `ALONG` in what a loop goes along told of what they may be calls of."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id=name) as named, args=given, keywords=options) if name in ALONG:
                return ast.Call(of_flow(f"{name}_"), [named, *map(self.visit, given)], options)
        return node


ALONG = ("range", "enumerate", "zip")
"""Functions of Python whose results loops go along."""


class Calls:
    """Rewrites the statements of one function."""

    def __init__(self) -> None:
        self.count = 0

    def function(self, tree: ast.FunctionDef) -> None:
        """A function whose states are noted."""
        parameters = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
        tree.body = self.scope(tree.body, parameters)

    def scope(self, nodes: Sequence[ast.stmt], known: set[str]) -> list[ast.stmt]:
        """The body of a function in which some names are variables already: others get no value at first."""
        made, used = self.statements(nodes)
        fresh = sorted(used - known)
        unset: list[ast.stmt] = []
        if fresh:
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in fresh]
            unset = [ast.Assign(targets, of_flow("UNSET"))]
        first = made[:1] if made and _is_text(made[0]) else []
        return [*first, *unset, *made[len(first) :]]

    def statements(self, nodes: Sequence[ast.stmt]) -> tuple[list[ast.stmt], set[str]]:
        """Statements, and the names of the states of loops and branches among them."""
        made: list[ast.stmt] = []
        used: set[str] = set()
        for node in nodes:
            found = self.statement(node, used)
            for one in found:
                ast.copy_location(one, node)
            made += found
        return made, used

    def statement(self, node: ast.stmt, used: set[str]) -> list[ast.stmt]:
        match node:
            case ast.If(test=test):
                state = getattr(node, STATE)
                used.update(state)
                yes, no = self._body(node.body, state), self._body(node.orelse, state)
                return self._call("if_", node, [Expressions().test(test)], [yes, no], state)
            case ast.While(test=test):
                state = getattr(node, STATE)
                used.update(state)
                stops = getattr(node, STOPS)
                asked: ast.expr = test
                if stops:
                    asked = ast.BoolOp(ast.And(), [none_of(stops), test])
                return self._call(
                    "while_", node, [_later(Expressions().test(asked))], [self._body(node.body, state)], state
                )
            case ast.For():
                return self._for(node, used)
            case ast.With():
                body, inside = self.statements(node.body)
                used |= inside
                return [ast.With([Expressions().visit(one) for one in node.items], body)]
            case ast.FunctionDef():
                return [node]
        return [Expressions().visit(node)]

    def _for(self, node: ast.For, used: set[str]) -> list[ast.stmt]:
        state, stops = getattr(node, STATE), getattr(node, STOPS)
        used.update(state)
        given = ast.Assign([node.target], ast.Name("_jk_given", ast.Load()))
        body = self._body([ast.copy_location(given, node), *node.body], state, ["_jk_given"])
        along: ast.expr = Expressions().visit(node.iter)
        match along:
            case ast.Call():
                along = Builtins().visit(along)
        goes_on: ast.expr = _later(Expressions().test(none_of(stops))) if stops else ast.Constant(None)
        return self._call("for_", node, [along, goes_on], [body], state)

    def _body(
        self, nodes: Sequence[ast.stmt], state: Sequence[str], given: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """Statements as a function that shares the variables of a state."""
        made = self.scope(nodes, {*state, *given})
        shared: list[ast.stmt] = [ast.Nonlocal(list(state))] if state else []
        return self._function([*shared, *made] or [ast.Pass()], given)

    def _function(self, body: list[ast.stmt], given: Sequence[str] = ()) -> ast.FunctionDef:
        self.count += 1
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(name) for name in given], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        return ast.FunctionDef(f"{PART}{self.count}", arguments, body or [ast.Pass()], [])

    def _call(
        self,
        name: str,
        node: ast.If | ast.While | ast.For,
        arguments: list[ast.expr],
        bodies: list[ast.FunctionDef],
        state: Sequence[str],
    ) -> list[ast.stmt]:
        """The functions, and the call that is given them and the state: its names, and how it is read and set."""
        loaded = ast.Tuple([ast.Name(one, ast.Load()) for one in state], ast.Load())
        reads = self._function([ast.Return(loaded)])
        sets = self._function([ast.Pass()], ["_jk_values"])
        if state:
            stored = ast.Tuple([ast.Name(one, ast.Store()) for one in state], ast.Store())
            sets.body = [ast.Nonlocal(list(state)), ast.Assign([stored], ast.Name("_jk_values", ast.Load()))]
        functions = [*bodies, reads, sets]
        passed = [
            *arguments,
            *(ast.Name(one.name, ast.Load()) for one in bodies),
            _called(
                "State",
                ast.Tuple([ast.Constant(one) for one in state], ast.Load()),
                ast.Name(reads.name, ast.Load()),
                ast.Name(sets.name, ast.Load()),
                ast.Constant(node.lineno),
            ),
        ]
        where = node.iter if isinstance(node, ast.For) else node.test  # which errors are to name
        return [*functions, ast.Expr(ast.copy_location(_called(name, *passed), where))]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
