"""Outline the bodies of loops and branches into nested functions, which share the function's variables, and call hooks.

``if a > b: x = 1`` becomes, for a module `flow` that the trace provides::

    def yes(): nonlocal x; x = 1
    def no(): nonlocal x
    flow.if_(a > b, yes, no, state)

where ``state`` reads and sets the live variables. ``and``, ``or``, ``not``, ``a if c else b`` and chained comparisons
become calls too, as a traced array has no concrete truth.
"""

import ast
import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jitkernels.compiler.capture.rewrite import ast_builder, comprehensions
from jitkernels.compiler.capture.rewrite.ast_builder import PART, call_hook, hook, load, thunk
from jitkernels.compiler.capture.rewrite.call_sites import RESOLVE, IterableRewriter, may_be_builtin
from jitkernels.compiler.capture.rewrite.comprehensions import FOLDS
from jitkernels.compiler.capture.rewrite.eliminate_jumps import STOPS, VALUE, eliminate_jumps, none_of
from jitkernels.compiler.capture.rewrite.liveness import STATE, note_states
from jitkernels.compiler.capture.rewrite.unbound_guards import GUARDED_VARIABLES

ITEM = "_jk_item"
"""The parameter of an outlined loop body."""

NO_TUPLES = (ast.Constant, ast.BinOp, ast.UnaryOp)
"""Operands that are never tuples: their comparisons are not rewritten."""


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites truth tests inside an expression; of a condition only its truth matters.

    `statements` outlines comprehensions into functions that precede the statement. `grows`: lists in it may grow.
    """

    def __init__(self, statements: "StatementRewriter", *, grows: bool = False) -> None:
        self.statements, self.grows = statements, grows
        self.is_inside = False

    def test(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.BoolOp():
                return self._short_circuit(node, self.test, "and_test", "or_test")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return call_hook("not_", self.test(operand))
            case ast.Compare(ops=[_, _, *_]):
                return self._compare_chain(node, "and_test")
        return self.visit(node)  # type: ignore[no-any-return]

    def _short_circuit(self, node: ast.BoolOp, visit: Any, and_hook: str, or_hook: str) -> ast.expr:
        *others, result = [visit(value) for value in node.values]
        for value in reversed(others):
            result = call_hook(and_hook if isinstance(node.op, ast.And) else or_hook, value, thunk(result))
        return result  # type: ignore[no-any-return]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self._short_circuit(node, self.visit, "and_", "or_")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return call_hook("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return call_hook("select", self.test(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            return self._compare_chain(node, "and_")
        self.generic_visit(node)
        match node.ops[0]:
            case ast.Is():
                return call_hook("is_", node.left, node.comparators[0])
            case ast.IsNot():
                return call_hook("not_", call_hook("is_", node.left, node.comparators[0]))
            case ast.In():
                return call_hook("in_", node.left, node.comparators[0])
            case ast.NotIn():
                return call_hook("not_", call_hook("in_", node.left, node.comparators[0]))
        if any(isinstance(operand, NO_TUPLES) for operand in (node.left, node.comparators[0])):
            return node
        return call_hook("compare", ast.Constant(type(node.ops[0]).__name__), node.left, node.comparators[0])

    def _compare_chain(self, node: ast.Compare, join: str) -> ast.expr:
        """``a < b < c``: each operand is evaluated at most once, and only if needed."""
        self.generic_visit(node)
        parts: list[ast.expr] = [
            ast.Tuple([ast.Constant(type(comparison).__name__), thunk(operand)], ast.Load())
            for comparison, operand in zip(node.ops, node.comparators, strict=True)
        ]
        return call_hook("compare_chain", hook(join), node.left, *parts)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Lambda | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return self._inside(node)
        return super().visit(node)

    def _inside(self, node: ast.AST) -> ast.AST:
        """An expression with variables of its own, which outlined functions before the statement cannot see."""
        outside, self.is_inside = self.is_inside, True
        self.generic_visit(node)
        self.is_inside = outside
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        if self.is_inside or not _is_plain(node):
            return self._inside(node)
        return self._call_outlined(node, comprehensions.LIST, [])

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return call_hook("new_list", *node.elts) if isinstance(node.ctx, ast.Load) and self.grows else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        folds = [] if self.is_inside else self._folds(node)
        if not folds:
            is_resolved = may_be_builtin(node.func)
            self.generic_visit(node)
            if is_resolved:
                node.func = call_hook(RESOLVE, node.func)
            return node
        plain = copy.deepcopy(node)
        return call_hook("fold", node.func, thunk(plain), *(self._fold(node, fold) for fold in folds))

    def _folds(self, node: ast.Call) -> list[str]:
        """The functions of `FOLDS` that a call may refer to: a known one, or any of them for a parameter."""
        name = self.statements.builtin_name(node.func)
        is_parameter = isinstance(node.func, ast.Name) and node.func.id in self.statements.parameters
        names = [*FOLDS] if is_parameter else [name] if name in FOLDS else []
        return [fold for fold in names if comprehensions.is_fold(node, fold) and _is_plain(node.args[0])]

    def _fold(self, node: ast.Call, fold: str) -> ast.expr:
        """The name of a fold, and a thunk that computes it by a loop."""
        inner, *others = copy.deepcopy(node.args)
        assert isinstance(inner, ast.ListComp | ast.GeneratorExp), "a fold"
        call = self._call_outlined(inner, FOLDS[fold], others)
        return ast.Tuple([ast.Constant(fold), thunk(call)], ast.Load())

    def _call_outlined(
        self, node: comprehensions.Comprehension, fold: comprehensions.Fold, others: list[ast.expr]
    ) -> ast.expr:
        """Outline a comprehension, and call it."""
        arguments = [self.loop_iterable(node.generators[0].iter), *map(self.visit, others)]
        outlined = comprehensions.outline(node, self.statements.new_name(), fold)
        return ast.Call(self.statements.hoist(outlined), arguments, [])

    def loop_iterable(self, node: ast.expr) -> ast.expr:
        iterable: ast.expr = self.visit(node)
        return IterableRewriter().visit(iterable) if isinstance(iterable, ast.Call) else iterable


def _is_plain(node: ast.expr) -> bool:
    """Whether a comprehension assigns to its own variables only."""
    return not any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(node))


class StatementRewriter:
    """Rewrites the statements of one function.

    `aliases`: names, possibly with attributes, that refer to functions of `FOLDS` under other names.
    """

    def __init__(self, aliases: Mapping[str, str] = MappingProxyType({})) -> None:
        self.count = 0
        self.aliases = dict(aliases)
        self.parameters: frozenset[str] = frozenset()
        self.hoisted: list[ast.stmt] = []
        self.appended: set[str] = set()
        self.guarded: frozenset[str] = frozenset()

    def new_name(self) -> str:
        self.count += 1
        return f"{PART}{self.count}"

    def hoist(self, outlined: ast.FunctionDef) -> ast.expr:
        """Put an outlined function before the current statement; returns its name as an expression."""
        self.nested_function(outlined)
        self.hoisted.append(outlined)
        return load(outlined.name)

    def builtin_name(self, node: ast.expr) -> str:
        """The name of the Python builtin that a callee refers to; its own text where that is unknown."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return ""
        text = ast.unparse(node)
        return self.aliases.get(text, text)

    def nested_function(self, function: ast.FunctionDef) -> None:
        """Rewrite a function nested in the function."""
        eliminate_jumps(function)
        note_states(function.body)
        self.function(function)

    def function(self, tree: ast.FunctionDef) -> None:
        """Rewrite a function whose states have been computed."""
        outside = self.appended, self.guarded, self.parameters
        self.appended, self.guarded = _grown_variables(tree), getattr(tree, GUARDED_VARIABLES, frozenset())
        parameters = ast_builder.parameters_of(tree)
        self.parameters |= parameters
        tree.body = self.scope(tree.body, parameters)
        self.appended, self.guarded, self.parameters = outside

    def scope(self, nodes: Sequence[ast.stmt], known: frozenset[str]) -> list[ast.stmt]:
        """The body of a function in which the names `known` are bound already: other variables start unset."""
        rewritten, used = self.statements(nodes)
        fresh = sorted(used - known)
        unset: list[ast.stmt] = []
        if fresh:
            unset = [ast.Assign([ast.Name(name, ast.Store()) for name in fresh], hook("UNSET"))]
        has_docstring = bool(rewritten) and _is_docstring(rewritten[0])
        return [*rewritten[:has_docstring], *unset, *rewritten[has_docstring:]]

    def statements(self, nodes: Sequence[ast.stmt]) -> tuple[list[ast.stmt], set[str]]:
        """Rewrite statements; also returns the state variables of the loops and branches among them."""
        rewritten: list[ast.stmt] = []
        used: set[str] = set()
        for node in nodes:
            outside, self.hoisted = self.hoisted, []
            replacement = self.statement(node, used)
            rewritten += ast_builder.located([*self.hoisted, *replacement], node)
            self.hoisted = outside
        return rewritten, used

    def statement(self, node: ast.stmt, used: set[str]) -> list[ast.stmt]:
        used.update(getattr(node, STATE, ()))
        match node:
            case ast.If(test=test):
                bodies = [self._body(node.body, node), self._body(node.orelse, node)]
                return self._call("if_", node, [ExpressionRewriter(self).test(test)], bodies)
            case ast.While(test=test):
                stops = getattr(node, STOPS)
                condition = ast.BoolOp(ast.And(), [none_of(stops), test]) if stops else test
                arguments = [thunk(ExpressionRewriter(self).test(condition))]
                return self._call("while_", node, arguments, [self._body(node.body, node)])
            case ast.For():
                return self._for(node)
            case ast.With():
                body, inside = self.statements(node.body)
                used |= inside
                return [ast.With([ExpressionRewriter(self).visit(element) for element in node.items], body)]
            case ast.Try():
                return [self._try(node, used)]
            case ast.FunctionDef():
                self.nested_function(node)
                return [node]
        rewritten = ExpressionRewriter(self, grows=self._has_growing_lists(node)).visit(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_])]):
                if name.startswith(VALUE):
                    rewritten.value = call_hook("return_value", rewritten.value)
        return [rewritten]

    def _has_growing_lists(self, node: ast.stmt) -> bool:
        """Whether a statement assigns lists to variables that may grow in loops."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List()):
                return name in self.appended
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List()):
                return name in self.appended
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                if len(names) != len(values):
                    return False
                pairs = [pair for pair in zip(names, values, strict=True) if isinstance(pair[1], ast.List)]
                others = [value for value in values if not isinstance(value, ast.List)]
                has_others = any(isinstance(part, ast.List) for value in others for part in ast.walk(value))
                named = [name.id for name, _ in pairs if isinstance(name, ast.Name)]
                is_plain = len(named) == len(pairs) > 0 and not has_others
                return is_plain and self.appended.issuperset(named)
        return False

    def _try(self, node: ast.Try, used: set[str]) -> ast.stmt:
        blocks = []
        for nodes in (node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers)):
            block, inside = self.statements(nodes)
            used |= inside
            blocks.append(block)
        body, orelse, last, *caught = blocks
        handlers = [
            ast.ExceptHandler(
                handler.type and ExpressionRewriter(self).visit(handler.type), handler.name, block or [ast.Pass()]
            )
            for handler, block in zip(node.handlers, caught, strict=True)
        ]
        return ast.Try(body, handlers, orelse, last)

    def _for(self, node: ast.For) -> list[ast.stmt]:
        assignment = ast.copy_location(ast.Assign([node.target], load(ITEM)), node)
        body = self._body([assignment, *node.body], node, [ITEM])
        iterable, stops = ExpressionRewriter(self).loop_iterable(node.iter), getattr(node, STOPS)
        condition = thunk(ExpressionRewriter(self).test(none_of(stops))) if stops else ast.Constant(None)
        return self._call("for_", node, [iterable, condition], [body])

    def _body(
        self, nodes: Sequence[ast.stmt], flow: ast.If | ast.While | ast.For, parameters: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """Outline statements as a function that shares the state variables of a loop or branch."""
        state = getattr(flow, STATE)
        statements = self.scope(nodes, frozenset((*state, *parameters)))
        shared: list[ast.stmt] = [ast.Nonlocal(list(state))] if state else []
        return ast_builder.function(self.new_name(), parameters, [*shared, *statements])

    def _call(
        self, name: str, flow: ast.If | ast.While | ast.For, arguments: list[ast.expr], bodies: list[ast.FunctionDef]
    ) -> list[ast.stmt]:
        """The outlined functions, and the hook call.

        Its state has names, and functions that read and set the variables.
        """
        state = getattr(flow, STATE)
        get = ast_builder.function(self.new_name(), (), [ast.Return(ast_builder.loads(state))])
        put = ast_builder.function(self.new_name(), ["_jk_values"], [])
        if state:
            put.body = [ast.Nonlocal(list(state)), ast.Assign([ast_builder.stores(state)], load("_jk_values"))]
        guarded = [variable for variable in state if variable in self.guarded]
        state_object = call_hook(
            "State", ast_builder.constants(state), load(get.name), load(put.name), ast.Constant(flow.lineno),
            ast_builder.constants(guarded),
        )  # fmt: skip
        call = call_hook(name, *arguments, *(load(body.name) for body in bodies), state_object)
        location = flow.iter if isinstance(flow, ast.For) else flow.test  # the source location of errors
        return [*bodies, get, put, ast.Expr(ast.copy_location(call, location))]


def _grown_variables(tree: ast.FunctionDef) -> set[str]:
    """The variables whose list methods that add or remove elements are called in a loop or branch."""
    variables = set()
    for part in ast.walk(tree):
        for node in ast.walk(part) if isinstance(part, ast.For | ast.While | ast.If) else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "pop")):
                    variables.add(name)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List()):
                    variables.add(name)
    return variables


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
