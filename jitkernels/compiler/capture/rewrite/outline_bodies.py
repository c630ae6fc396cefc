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

from jitkernels.compiler.capture.rewrite import comprehensions
from jitkernels.compiler.capture.rewrite.call_sites import CALLED, PART, Iterables, call_of, may_be_builtin, of_flow
from jitkernels.compiler.capture.rewrite.comprehensions import FOLDS
from jitkernels.compiler.capture.rewrite.eliminate_jumps import STOPS, VALUE, none_of, without_jumps
from jitkernels.compiler.capture.rewrite.liveness import STATE, note_states
from jitkernels.compiler.capture.rewrite.unbound_guards import GUARDED


def _thunk(node: ast.expr) -> ast.expr:
    """``lambda: node``."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, node)


class Expressions(ast.NodeTransformer):
    """Rewrites truth tests inside an expression; of a condition only its truth matters.

    `calls` outlines comprehensions into functions that precede the statement.
    """

    def __init__(self, calls: "Calls") -> None:
        self.calls = calls
        self.is_inside = self.grows = False

    def test(self, node: ast.expr) -> ast.expr:
        """A condition."""
        match node:
            case ast.BoolOp(op=sign, values=values):
                *others, condition = [self.test(value) for value in values]
                for value in reversed(others):
                    condition = call_of("both" if isinstance(sign, ast.And) else "either", value, _thunk(condition))
                return condition
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return call_of("not_", self.test(operand))
            case ast.Compare(ops=[_, _, *_]):
                return self._chain(node, "both")
        return self.visit(node)  # type: ignore[no-any-return]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        *others, result = [self.visit(value) for value in node.values]
        for value in reversed(others):
            result = call_of("and_" if isinstance(node.op, ast.And) else "or_", value, _thunk(result))
        return result  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return call_of("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.test(node.test)
        return call_of("chosen", test, _thunk(self.visit(node.body)), _thunk(self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            return self._chain(node, "and_")
        self.generic_visit(node)
        match node.ops[0]:
            case ast.Is():
                return call_of("is_", node.left, node.comparators[0])
            case ast.IsNot():
                return call_of("not_", call_of("is_", node.left, node.comparators[0]))
        return node

    def _chain(self, node: ast.Compare, joined: str) -> ast.expr:
        """``a < b < c``: each operand is evaluated at most once, and only if needed."""
        self.generic_visit(node)
        parts: list[ast.expr] = [
            ast.Tuple([ast.Constant(type(comparison).__name__), _thunk(operand)], ast.Load())
            for comparison, operand in zip(node.ops, node.comparators, strict=True)
        ]
        return call_of("chain", of_flow(joined), node.left, *parts)

    def visit(self, node: ast.AST) -> Any:
        """The node rewritten."""
        if isinstance(node, ast.Lambda | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return self._inside(node)
        return super().visit(node)

    def _inside(self, node: ast.AST) -> ast.AST:
        """An expression with variables of its own, which outlined functions before the statement cannot see."""
        before, self.is_inside = self.is_inside, True
        self.generic_visit(node)
        self.is_inside = before
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        if self.is_inside or not _is_plain(node):
            return self._inside(node)
        iterable = self.along(node.generators[0].iter)
        outlined = comprehensions.of_list(node, self.calls.name(), call_of("listed"), of_flow("finished"))
        return ast.Call(self.calls.hoisted(outlined), [iterable], [])

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return call_of("listed", *node.elts) if isinstance(node.ctx, ast.Load) and self.grows else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        folds = [] if self.is_inside else self._folds(node)
        if not folds:
            is_resolved = may_be_builtin(node.func)
            self.generic_visit(node)
            if is_resolved:
                node.func = call_of(CALLED, node.func)
            return node
        plain = copy.deepcopy(node)
        return call_of("folded", node.func, _thunk(plain), *(self._fold(node, fold) for fold in folds))

    def _folds(self, node: ast.Call) -> list[str]:
        """The functions of `FOLDS` that a call may refer to: a known one, or any of them for a parameter."""
        name = self.calls.resolved(node.func)
        is_parameter = isinstance(node.func, ast.Name) and node.func.id in self.calls.parameters
        names = [*FOLDS] if is_parameter else [name] if name in FOLDS else []
        return [fold for fold in names if comprehensions.is_fold(node, fold) and _is_plain(node.args[0])]

    def _fold(self, node: ast.Call, fold: str) -> ast.expr:
        """The name of a fold, and a thunk that computes it by a loop."""
        inner, *others = copy.deepcopy(node.args)
        assert isinstance(inner, ast.ListComp | ast.GeneratorExp), "a fold"
        arguments = [self.along(inner.generators[0].iter), *map(self.visit, others)]
        outlined = comprehensions.of_fold(inner, self.calls.name(), fold, of_flow("UNSET"), of_flow("extreme"))
        call = ast.Call(self.calls.hoisted(outlined), arguments, [])
        return ast.Tuple([ast.Constant(fold), _thunk(call)], ast.Load())

    def along(self, node: ast.expr) -> ast.expr:
        """The iterable of a loop."""
        iterable: ast.expr = self.visit(node)
        return Iterables().visit(iterable) if isinstance(iterable, ast.Call) else iterable


def _is_plain(node: ast.expr) -> bool:
    """Whether a comprehension assigns to its own variables only."""
    return not any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(node))


class Calls:
    """Rewrites the statements of one function.

    `aliases`: names, possibly with attributes, that refer to functions of `FOLDS` under other names.
    """

    def __init__(self, aliases: Mapping[str, str] = MappingProxyType({})) -> None:
        self.count = 0
        self.aliases = dict(aliases)
        self.parameters: frozenset[str] = frozenset()
        self.waiting: list[ast.stmt] = []
        self.appended: set[str] = set()
        self.guarded: frozenset[str] = frozenset()

    def name(self) -> str:
        """A new name for a function."""
        self.count += 1
        return f"{PART}{self.count}"

    def hoisted(self, outlined: ast.FunctionDef) -> ast.expr:
        """Put an outlined function before the current statement; returns its name as an expression."""
        self.inner(outlined)
        self.waiting.append(outlined)
        return ast.Name(outlined.name, ast.Load())

    def resolved(self, node: ast.expr) -> str:
        """The name of the Python builtin that a callee refers to; its own text where that is unknown."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return ""
        text = ast.unparse(node)
        return self.aliases.get(text, text)

    def inner(self, function: ast.FunctionDef) -> None:
        """Rewrite a function nested in the function."""
        without_jumps(function, of_flow("UNSET"))
        note_states(function.body)
        self.function(function)

    def function(self, tree: ast.FunctionDef) -> None:
        """Rewrite a function whose states have been computed."""
        outside, self.appended = (self.appended, self.guarded, self.parameters), _grown_variables(tree)
        self.guarded = getattr(tree, GUARDED, frozenset())
        parameters = {parameter.arg for parameter in ast.walk(tree.args) if isinstance(parameter, ast.arg)}
        self.parameters |= parameters
        tree.body = self.scope(tree.body, parameters)
        self.appended, self.guarded, self.parameters = outside

    def scope(self, nodes: Sequence[ast.stmt], known: set[str]) -> list[ast.stmt]:
        """The body of a function in which the names `known` are bound already: other variables start unset."""
        rewritten, used = self.statements(nodes)
        fresh = sorted(used - known)
        unset: list[ast.stmt] = []
        if fresh:
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in fresh]
            unset = [ast.Assign(targets, of_flow("UNSET"))]
        first = rewritten[:1] if rewritten and _is_text(rewritten[0]) else []
        return [*first, *unset, *rewritten[len(first) :]]

    def statements(self, nodes: Sequence[ast.stmt]) -> tuple[list[ast.stmt], set[str]]:
        """Rewrite statements; also returns the state variables of the loops and branches among them."""
        rewritten: list[ast.stmt] = []
        used: set[str] = set()
        for node in nodes:
            before, self.waiting = self.waiting, []
            replacement = self.statement(node, used)
            replacement = [*self.waiting, *replacement]
            self.waiting = before
            for statement in replacement:
                ast.copy_location(statement, node)
            rewritten += replacement
        return rewritten, used

    def statement(self, node: ast.stmt, used: set[str]) -> list[ast.stmt]:
        match node:
            case ast.If(test=test):
                state = getattr(node, STATE)
                used.update(state)
                yes, no = self._body(node.body, state), self._body(node.orelse, state)
                return self._call("if_", node, [Expressions(self).test(test)], [yes, no], state)
            case ast.While(test=test):
                state = getattr(node, STATE)
                used.update(state)
                stops = getattr(node, STOPS)
                condition: ast.expr = test
                if stops:
                    condition = ast.BoolOp(ast.And(), [none_of(stops), test])
                return self._call(
                    "while_", node, [_thunk(Expressions(self).test(condition))], [self._body(node.body, state)], state
                )
            case ast.For():
                return self._for(node, used)
            case ast.With():
                body, inside = self.statements(node.body)
                used |= inside
                return [ast.With([Expressions(self).visit(element) for element in node.items], body)]
            case ast.Try():
                return [self._try(node, used)]
            case ast.FunctionDef():
                self.inner(node)
                return [node]
        expressions = Expressions(self)
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List()):
                expressions.grows = name in self.appended
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                named = [element.id for element in names if isinstance(element, ast.Name)]
                is_all = all(isinstance(element, ast.List) for element in values)
                expressions.grows = is_all and len(named) == len(names) and self.appended.issuperset(named)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List()):
                expressions.grows = name in self.appended
        rewritten = expressions.visit(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_])]):
                if name.startswith(VALUE):
                    rewritten.value = call_of("given_back", rewritten.value)
        return [rewritten]

    def _try(self, node: ast.Try, used: set[str]) -> ast.stmt:
        blocks = []
        for nodes in (node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers)):
            block, inside = self.statements(nodes)
            used |= inside
            blocks.append(block)
        body, orelse, last, *caught = blocks
        handlers = [
            ast.ExceptHandler(
                handler.type and Expressions(self).visit(handler.type), handler.name, block or [ast.Pass()]
            )
            for handler, block in zip(node.handlers, caught, strict=True)
        ]
        return ast.Try(body, handlers, orelse, last)

    def _for(self, node: ast.For, used: set[str]) -> list[ast.stmt]:
        state, stops = getattr(node, STATE), getattr(node, STOPS)
        used.update(state)
        assignment = ast.Assign([node.target], ast.Name("_jk_given", ast.Load()))
        body = self._body([ast.copy_location(assignment, node), *node.body], state, ["_jk_given"])
        iterable = Expressions(self).along(node.iter)
        condition: ast.expr = _thunk(Expressions(self).test(none_of(stops))) if stops else ast.Constant(None)
        return self._call("for_", node, [iterable, condition], [body], state)

    def _body(self, nodes: Sequence[ast.stmt], state: Sequence[str], parameters: Sequence[str] = ()) -> ast.FunctionDef:
        """Outline statements as a function that shares the variables of a state."""
        statements = self.scope(nodes, {*state, *parameters})
        shared: list[ast.stmt] = [ast.Nonlocal(list(state))] if state else []
        return self._function([*shared, *statements] or [ast.Pass()], parameters)

    def _function(self, body: list[ast.stmt], parameters: Sequence[str] = ()) -> ast.FunctionDef:
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(name) for name in parameters], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        return ast.FunctionDef(self.name(), arguments, body or [ast.Pass()], [])

    def _call(
        self,
        name: str,
        node: ast.If | ast.While | ast.For,
        arguments: list[ast.expr],
        bodies: list[ast.FunctionDef],
        state: Sequence[str],
    ) -> list[ast.stmt]:
        """The outlined functions, and the hook call.

        Its state has names, and functions that read and set the variables.
        """
        loaded = ast.Tuple([ast.Name(item, ast.Load()) for item in state], ast.Load())
        reads = self._function([ast.Return(loaded)])
        sets = self._function([ast.Pass()], ["_jk_values"])
        if state:
            stored = ast.Tuple([ast.Name(item, ast.Store()) for item in state], ast.Store())
            sets.body = [ast.Nonlocal(list(state)), ast.Assign([stored], ast.Name("_jk_values", ast.Load()))]
        functions = [*bodies, reads, sets]
        passed = [
            *arguments,
            *(ast.Name(item.name, ast.Load()) for item in bodies),
            call_of(
                "State",
                ast.Tuple([ast.Constant(item) for item in state], ast.Load()),
                ast.Name(reads.name, ast.Load()),
                ast.Name(sets.name, ast.Load()),
                ast.Constant(node.lineno),
                ast.Tuple([ast.Constant(item) for item in state if item in self.guarded], ast.Load()),
            ),
        ]
        where = node.iter if isinstance(node, ast.For) else node.test  # the source location of errors
        return [*functions, ast.Expr(ast.copy_location(call_of(name, *passed), where))]


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


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
