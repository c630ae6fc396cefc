"""Reads of variables that may have no value: where nothing assigned to them before, Python raises UnboundLocalError.

A variable that is read where it surely has a value is left alone. Others are read by `flow.bound`, which asks a bool
that is set where the variable is, and goes from round to round and out of branches as all variables do::

    _jk_has_x = False
    for ...:
        if a > b:
            x = 1
            _jk_has_x = True
        else:
            y = flow.bound("x", x, _jk_has_x)

If only a loop without a round would leave a variable without a value, there is no bool: such calls are left to Python.
"""

import ast
import sys
from typing import Any

from jitkernels.frontends.rewriting.assigned import (
    DOUBT,
    NO_ROUND,
    NONE_SET,
    Assigned,
    Names,
    locals_of,
    stored_in,
)
from jitkernels.frontends.rewriting.jumps import assigned

HAS, ERROR = "_jk_has_", "_jk_error_"
"""What the names of those bools, and of exceptions that are caught, begin with."""
GUARDED = "jk_guarded"
"""The attribute of a function: its variables that are asked for their values wherever they may have none."""
LISTED = ("append", "extend", "pop")
"""Methods of lists that grow: without a value there is no method."""


def guard(tree: ast.FunctionDef, flow: ast.expr) -> None:
    """Have a function, and those in it, ask for values where there may be none. `flow` is what they call."""
    Guards(flow).function(tree, {})


class Guards(ast.NodeTransformer):
    """Rewrites the reads and assignments of functions."""

    def __init__(self, flow: ast.expr) -> None:
        self.flow = flow
        self.flagged: dict[str, bool] = {}
        self.own: Names = frozenset()
        self.caught: list[str] = []

    def function(self, tree: ast.FunctionDef, around: dict[str, bool]) -> None:
        """A function. `around`: the variables that it sees of others, and whether these have bools."""
        for has_round in (False, True):
            Assigned(tree, has_round=has_round)
        own = locals_of(tree)
        doubts: dict[str, set[int]] = {}
        for one in ast.walk(tree):
            if isinstance(one, ast.Name) and hasattr(one, DOUBT):
                doubts.setdefault(one.id, set()).add(getattr(one, DOUBT))
        flagged = {name for name in own if NONE_SET in doubts.get(name, ())}
        guarded = {name for name in own if name in flagged or NO_ROUND not in doubts.get(name, ())}
        setattr(tree, GUARDED, frozenset(guarded))
        before, self.flagged = self.flagged, {**around, **{name: name in flagged for name in own}}
        outside, self.own = self.own, own
        handlers, self.caught = self.caught, []
        given = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
        body = self._block(tree.body)
        text = body[:1] if ast.get_docstring(tree, clean=False) is not None else []
        begin = [assigned(HAS + name, ast.Constant(name in given)) for name in sorted(flagged)]
        tree.body = [*text, *(ast.copy_location(one, tree.body[0]) for one in begin), *body[len(text) :]]
        self.flagged, self.own, self.caught = before, outside, handlers

    def _block(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in nodes:
            found = self.visit(node)
            statements = found if isinstance(found, list) else [found]
            made += [one if hasattr(one, "lineno") else ast.copy_location(one, node) for one in statements]
        return made

    def _bound(self, name: str) -> ast.expr:
        given: list[ast.expr] = [ast.Constant(name), ast.Name(name, ast.Load())]
        if self.flagged.get(name):
            given.append(ast.Name(HAS + name, ast.Load()))
        reader = "bound" if name in self.own else "bound_around"
        return ast.Call(ast.Attribute(self.flow, reader, ast.Load()), given, [])

    def _set(self, names: Names, *, has: bool = True) -> list[ast.stmt]:
        """The bools of variables that have got a value, or lost it."""
        flagged = sorted(name for name in names if self.flagged.get(name))
        return [assigned(HAS + name, ast.Constant(has)) for name in flagged]

    def _unset(self, name: str) -> list[ast.stmt]:
        nothing = ast.Attribute(self.flow, "UNSET", ast.Load())
        return [assigned(name, nothing), *self._set(frozenset({name}), has=False)]

    def visit(self, node: ast.AST) -> Any:
        """The node rewritten, or the statements in its place."""
        match node:
            case ast.FunctionDef():
                node.args = self.generic_visit(node.args)  # type: ignore[assignment]
                self.function(node, self.flagged)
                return [node, *self._set(frozenset({node.name}))]
            case ast.Lambda():
                given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
                return self._inside(node, frozenset(given))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = self.visit(node.generators[0].iter)
                node.generators[0].iter = ast.Constant(None)  # which is not computed inside
                self._inside(node, frozenset().union(*(stored_in(one.target) for one in node.generators)))
                node.generators[0].iter = first
                return node
            case ast.Name(id=name, ctx=ast.Load()) if hasattr(node, DOUBT):
                return ast.copy_location(self._bound(name), node)
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attr)) if attr in LISTED:
                node.args = [self.visit(one) for one in node.args]
                node.keywords = [self.visit(one) for one in node.keywords]
                return node
            case ast.stmt():
                return self._statement(node)
        return self.generic_visit(node)

    def _inside(self, node: ast.AST, own: Names) -> ast.AST:
        before = self.flagged
        self.flagged = {name: has for name, has in before.items() if name not in own}
        is_function = isinstance(node, ast.Lambda | ast.GeneratorExp) or sys.version_info < (3, 12)
        outside, self.own = self.own, frozenset() if is_function else self.own - own
        self.generic_visit(node)
        self.flagged, self.own = before, outside
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Delete(targets=targets) if all(isinstance(one, ast.Name) for one in targets):
                made: list[ast.stmt] = []
                for one in targets:
                    assert isinstance(one, ast.Name), "just asked"
                    made += [ast.Expr(self._bound(one.id))] if hasattr(one, DOUBT) else []
                    made += self._unset(one.id)
                return [ast.copy_location(one, node) for one in made]
            case ast.Break() | ast.Continue():
                return [*(one for name in self.caught for one in self._unset(name)), node]
            case ast.AugAssign(target=ast.Name(id=name) as target) if hasattr(target, DOUBT):
                asked = ast.copy_location(ast.Expr(self._bound(name)), node)
                self.generic_visit(node)
                return [asked, node]
        for field in ("body", "orelse", "finalbody"):
            blocks = getattr(node, field, None)
            if isinstance(blocks, list):
                setattr(node, field, self._block(blocks))
        for name, value in ast.iter_fields(node):
            if name == "handlers":
                for one in value:
                    self._handler(one)
            elif name not in ("body", "orelse", "finalbody"):
                inner = value if isinstance(value, list) else [value]
                visited = [self.visit(one) if isinstance(one, ast.AST) else one for one in inner]
                setattr(node, name, visited if isinstance(value, list) else visited[0])
        match node:
            case ast.For():
                node.body = [*self._set(stored_in(node.target)), *node.body]
                return [node]
            case ast.With(items=items):
                targets_of = [stored_in(one.optional_vars) for one in items if one.optional_vars]
                node.body = [*self._set(frozenset().union(*targets_of)), *node.body]
                return [node]
            case ast.If() | ast.While() | ast.Try():
                return [node]
        return [node, *self._set(stored_in(node))]

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            node.type = self.visit(node.type)
        if node.name is None:
            node.body = self._block(node.body)
            return
        name, inner = node.name, ERROR + node.name
        self.caught.append(name)
        body = self._block(node.body)
        self.caught.pop()
        caught = ast.Call(ast.Attribute(self.flow, "caught", ast.Load()), [ast.Name(inner, ast.Load())], [])
        node.name = inner
        node.body = [assigned(name, caught), *self._set(frozenset({name})), *body, *self._unset(name)]
