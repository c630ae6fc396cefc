"""Loops and branches as calls: bodies become functions in the function, which share its variables.

``if a > b: x = 1`` becomes, for a module `flow` that the trace provides::

    def yes(): nonlocal x; x = 1
    def no(): nonlocal x
    flow.if_(a > b, yes, no, state)

where ``state`` reads and sets the variables that are read later. ``and``, ``or``, ``not``, ``a if c else b`` and chains
of comparisons are calls too, as an array of a trace has no truth.
"""

import ast
import copy
from collections.abc import Sequence
from typing import Any

from jitkernels.frontends.rewriting import comprehensions
from jitkernels.frontends.rewriting.jumps import STOPS, VALUE, none_of, without_jumps
from jitkernels.frontends.rewriting.liveness import STATE, note_states
from jitkernels.frontends.rewriting.unbound import GUARDED

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
    """Rewrites what asks for truth inside of an expression. Of a test nothing but its truth counts.

    `calls` makes the functions that comprehensions become, which are to stand before the statement.
    """

    def __init__(self, calls: "Calls") -> None:
        self.calls = calls
        self.is_inside = self.grows = False

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
            case ast.Compare(ops=[_, _, *_]):
                return self._chain(node, "both")
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
        test = self.test(node.test)
        return _called("chosen", test, _later(self.visit(node.body)), _later(self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            return self._chain(node, "and_")
        self.generic_visit(node)
        match node.ops[0]:
            case ast.Is():
                return _called("is_", node.left, node.comparators[0])
            case ast.IsNot():
                return _called("not_", _called("is_", node.left, node.comparators[0]))
        return node

    def _chain(self, node: ast.Compare, joined: str) -> ast.expr:
        """``a < b < c``, of which each is computed once, and no more than it takes."""
        self.generic_visit(node)
        parts: list[ast.expr] = [
            ast.Tuple([ast.Constant(type(sign).__name__), _later(one)], ast.Load())
            for sign, one in zip(node.ops, node.comparators, strict=True)
        ]
        return _called("chain", of_flow(joined), node.left, *parts)

    def visit(self, node: ast.AST) -> Any:
        """The node rewritten."""
        if isinstance(node, ast.Lambda | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return self._inside(node)
        return super().visit(node)

    def _inside(self, node: ast.AST) -> ast.AST:
        """What has variables of its own, which functions that stand before the statement do not know."""
        before, self.is_inside = self.is_inside, True
        self.generic_visit(node)
        self.is_inside = before
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        if self.is_inside or not _is_plain(node):
            return self._inside(node)
        given = self.along(node.generators[0].iter)
        made = comprehensions.of_list(node, self.calls.name(), _called("listed"), of_flow("finished"))
        return ast.Call(self.calls.hoisted(made), [given], [])

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return _called("listed", *node.elts) if isinstance(node.ctx, ast.Load) and self.grows else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self.is_inside or not comprehensions.is_fold(node) or not _is_plain(node.args[0]):
            self.generic_visit(node)
            if isinstance(node.func, ast.Name) and node.func.id in TYPES:
                node.func = _called("called", node.func)
            return node
        inner, *others = node.args
        assert isinstance(node.func, ast.Name), "a fold"
        assert isinstance(inner, ast.ListComp | ast.GeneratorExp), "a fold"
        plain = copy.deepcopy(node)
        given = [self.along(inner.generators[0].iter), *map(self.visit, others)]
        fold = node.func.id
        made = comprehensions.of_fold(inner, self.calls.name(), fold, of_flow("UNSET"), of_flow("extreme"))
        ours = ast.Call(self.calls.hoisted(made), given, [])
        return _called("folded", ast.Constant(fold), node.func, _later(ours), _later(plain))

    def along(self, node: ast.expr) -> ast.expr:
        """What a loop goes along."""
        made: ast.expr = self.visit(node)
        return Builtins().visit(made) if isinstance(made, ast.Call) else made


def _is_plain(node: ast.expr) -> bool:
    """Whether a comprehension assigns to nothing but its own variables."""
    return not any(
        isinstance(one, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for one in ast.walk(node)
    )


class Builtins(ast.NodeTransformer):
    """Has calls of `ALONG` in what a loop goes along told of what they may be calls of."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id=name) as named, args=given, keywords=options) if name in ALONG:
                return ast.Call(of_flow(f"{name}_"), [named, *map(self.visit, given)], options)
            case ast.Call(func=ast.Name(id="product") | ast.Attribute(attr="product") as named):
                given = [self.visit(one) if _is_range(one) else one for one in node.args]
                return ast.Call(of_flow("product_"), [named, *given], node.keywords)
        return node


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


TYPES = ("int", "float")
"""Types of Python that are called, and given as dtypes in the same function."""
ALONG = ("range", "enumerate", "zip", "reversed")
"""Functions of Python whose results loops go along."""


class Calls:
    """Rewrites the statements of one function."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting: list[ast.stmt] = []
        self.appended: set[str] = set()
        self.guarded: frozenset[str] = frozenset()

    def name(self) -> str:
        """A new name for a function."""
        self.count += 1
        return f"{PART}{self.count}"

    def hoisted(self, made: ast.FunctionDef) -> ast.expr:
        """A function that is to stand before the statement that is being rewritten; what calls it."""
        self.inner(made)
        self.waiting.append(made)
        return ast.Name(made.name, ast.Load())

    def inner(self, made: ast.FunctionDef) -> None:
        """Rewrite a function inside of the function."""
        without_jumps(made, of_flow("UNSET"))
        note_states(made.body)
        self.function(made)

    def function(self, tree: ast.FunctionDef) -> None:
        """A function whose states are noted."""
        outside, self.appended = (self.appended, self.guarded), _appended(tree)
        self.guarded = getattr(tree, GUARDED, frozenset())
        parameters = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
        tree.body = self.scope(tree.body, parameters)
        self.appended, self.guarded = outside

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
            before, self.waiting = self.waiting, []
            found = self.statement(node, used)
            found = [*self.waiting, *found]
            self.waiting = before
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
                return self._call("if_", node, [Expressions(self).test(test)], [yes, no], state)
            case ast.While(test=test):
                state = getattr(node, STATE)
                used.update(state)
                stops = getattr(node, STOPS)
                asked: ast.expr = test
                if stops:
                    asked = ast.BoolOp(ast.And(), [none_of(stops), test])
                return self._call(
                    "while_",
                    node,
                    [_later(Expressions(self).test(asked))],
                    [self._body(node.body, state)],
                    state,
                )
            case ast.For():
                return self._for(node, used)
            case ast.With():
                body, inside = self.statements(node.body)
                used |= inside
                return [ast.With([Expressions(self).visit(one) for one in node.items], body)]
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
                named = [one.id for one in names if isinstance(one, ast.Name)]
                is_all = all(isinstance(one, ast.List) for one in values)
                expressions.grows = is_all and len(named) == len(names) and self.appended.issuperset(named)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List()):
                expressions.grows = name in self.appended
        made = expressions.visit(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_])]):
                if name.startswith(VALUE):
                    made.value = _called("given_back", made.value)
        return [made]

    def _try(self, node: ast.Try, used: set[str]) -> ast.stmt:
        blocks = []
        for nodes in (node.body, node.orelse, node.finalbody, *(one.body for one in node.handlers)):
            block, inside = self.statements(nodes)
            used |= inside
            blocks.append(block)
        body, orelse, last, *caught = blocks
        handlers = [
            ast.ExceptHandler(one.type and Expressions(self).visit(one.type), one.name, block or [ast.Pass()])
            for one, block in zip(node.handlers, caught, strict=True)
        ]
        return ast.Try(body, handlers, orelse, last)

    def _for(self, node: ast.For, used: set[str]) -> list[ast.stmt]:
        state, stops = getattr(node, STATE), getattr(node, STOPS)
        used.update(state)
        given = ast.Assign([node.target], ast.Name("_jk_given", ast.Load()))
        body = self._body([ast.copy_location(given, node), *node.body], state, ["_jk_given"])
        along = Expressions(self).along(node.iter)
        goes_on: ast.expr = _later(Expressions(self).test(none_of(stops))) if stops else ast.Constant(None)
        return self._call("for_", node, [along, goes_on], [body], state)

    def _body(
        self, nodes: Sequence[ast.stmt], state: Sequence[str], given: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """Statements as a function that shares the variables of a state."""
        made = self.scope(nodes, {*state, *given})
        shared: list[ast.stmt] = [ast.Nonlocal(list(state))] if state else []
        return self._function([*shared, *made] or [ast.Pass()], given)

    def _function(self, body: list[ast.stmt], given: Sequence[str] = ()) -> ast.FunctionDef:
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(name) for name in given], kwonlyargs=[], kw_defaults=[], defaults=[]
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
                ast.Tuple([ast.Constant(one) for one in state if one in self.guarded], ast.Load()),
            ),
        ]
        where = node.iter if isinstance(node, ast.For) else node.test  # which errors are to name
        return [*functions, ast.Expr(ast.copy_location(_called(name, *passed), where))]


def _appended(tree: ast.FunctionDef) -> set[str]:
    """The variables whose methods that add or take elements are called in a loop or branch."""
    found = set()
    for part in ast.walk(tree):
        for one in ast.walk(part) if isinstance(part, ast.For | ast.While | ast.If) else ():
            match one:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "pop")):
                    found.add(name)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List()):
                    found.add(name)
    return found


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
