"""Guards of reads of variables that may be unbound: there Python raises UnboundLocalError.

Reads of definitely assigned variables stay unchanged. Others go through `flow.bound`, which tests a flag that is set
where the variable is assigned and is loop-carried and merged at branches like any other variable::

    _jk_has_x = False
    for ...:
        if a > b:
            x = 1
            _jk_has_x = True
        else:
            y = flow.bound("x", x, _jk_has_x)

If only a loop without iterations would leave a variable unbound there is no flag: such calls fall back to Python.
"""

import ast
import sys
from typing import Any

from jitkernels.compiler.capture.rewrite.definite_assignment import (
    MAYBE_UNBOUND,
    SOME_PATH,
    ZERO_TRIP,
    Assigned,
    Names,
    locals_of,
    stored_in,
)
from jitkernels.compiler.capture.rewrite.eliminate_jumps import assigned

HAS, ERROR = "_jk_has_", "_jk_error_"
"""Prefixes of the names of these flags, and of caught exceptions."""
GUARDED = "jk_guarded"
"""AST attribute of a function: its variables whose reads are guarded wherever they may be unbound."""
LISTED = ("append", "extend", "pop")
"""Methods of lists that grow: an unbound variable has no methods, and raises by itself."""


def guard(tree: ast.FunctionDef, flow: ast.expr) -> None:
    """Guard the reads of a function, and of nested ones, that may be unbound. `flow` is the module of the hooks."""
    Guards(flow).function(tree, {})


class Guards(ast.NodeTransformer):
    """Rewrites the reads and assignments of functions."""

    def __init__(self, flow: ast.expr) -> None:
        self.flow = flow
        self.flagged: dict[str, bool] = {}
        self.own: Names = frozenset()
        self.caught: list[str] = []

    def function(self, tree: ast.FunctionDef, visible: dict[str, bool]) -> None:
        """Rewrite a function. `around`: the visible variables of enclosing functions, and whether they have flags."""
        for assumes_nonzero_trips in (False, True):
            Assigned(tree, assumes_nonzero_trips=assumes_nonzero_trips)
        local_names = locals_of(tree)
        marks: dict[str, set[int]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and hasattr(node, MAYBE_UNBOUND):
                marks.setdefault(node.id, set()).add(getattr(node, MAYBE_UNBOUND))
        flagged = {name for name in local_names if SOME_PATH in marks.get(name, ())}
        guarded = {name for name in local_names if name in flagged or ZERO_TRIP not in marks.get(name, ())}
        setattr(tree, GUARDED, frozenset(guarded))
        before, self.flagged = self.flagged, {**visible, **{name: name in flagged for name in local_names}}
        outside, self.own = self.own, local_names
        handlers, self.caught = self.caught, []
        parameters = {node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg)}
        body = self._block(tree.body)
        text = body[:1] if ast.get_docstring(tree, clean=False) is not None else []
        begin = [assigned(HAS + name, ast.Constant(name in parameters)) for name in sorted(flagged)]
        tree.body = [*text, *(ast.copy_location(node, tree.body[0]) for node in begin), *body[len(text) :]]
        self.flagged, self.own, self.caught = before, outside, handlers

    def _block(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        output: list[ast.stmt] = []
        for node in nodes:
            replacement = self.visit(node)
            statements = replacement if isinstance(replacement, list) else [replacement]
            output += [
                statement if hasattr(statement, "lineno") else ast.copy_location(statement, node)
                for statement in statements
            ]
        return output

    def _bound(self, name: str) -> ast.expr:
        arguments: list[ast.expr] = [ast.Constant(name), ast.Name(name, ast.Load())]
        if self.flagged.get(name):
            arguments.append(ast.Name(HAS + name, ast.Load()))
        reader = "bound" if name in self.own else "bound_around"
        return ast.Call(ast.Attribute(self.flow, reader, ast.Load()), arguments, [])

    def _set(self, names: Names, *, has: bool = True) -> list[ast.stmt]:
        """Set the flags of variables that have been assigned, or clear those of deleted ones."""
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
                parameters = {item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg)}
                return self._inside(node, frozenset(parameters))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = self.visit(node.generators[0].iter)
                node.generators[0].iter = ast.Constant(None)  # evaluated outside the comprehension's scope
                self._inside(node, frozenset().union(*(stored_in(generator.target) for generator in node.generators)))
                node.generators[0].iter = first
                return node
            case ast.Name(id=name, ctx=ast.Load()) if hasattr(node, MAYBE_UNBOUND):
                return ast.copy_location(self._bound(name), node)
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attr)) if attr in LISTED:
                node.args = [self.visit(argument) for argument in node.args]
                node.keywords = [self.visit(keyword) for keyword in node.keywords]
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
            case ast.Delete(targets=targets) if all(isinstance(item, ast.Name) for item in targets):
                output: list[ast.stmt] = []
                for item in targets:
                    assert isinstance(item, ast.Name), "the case tests it"
                    output += [ast.Expr(self._bound(item.id))] if hasattr(item, MAYBE_UNBOUND) else []
                    output += self._unset(item.id)
                return [ast.copy_location(item, node) for item in output]
            case ast.Break() | ast.Continue():
                return [*(item for name in self.caught for item in self._unset(name)), node]
            case ast.AugAssign(target=ast.Name(id=name) as target) if hasattr(target, MAYBE_UNBOUND):
                guard_statement = ast.copy_location(ast.Expr(self._bound(name)), node)
                self.generic_visit(node)
                return [guard_statement, node]
        for field in ("body", "orelse", "finalbody"):
            blocks = getattr(node, field, None)
            if isinstance(blocks, list):
                setattr(node, field, self._block(blocks))
        for name, value in ast.iter_fields(node):
            if name == "handlers":
                for item in value:
                    self._handler(item)
            elif name not in ("body", "orelse", "finalbody"):
                inner = value if isinstance(value, list) else [value]
                visited = [self.visit(item) if isinstance(item, ast.AST) else item for item in inner]
                setattr(node, name, visited if isinstance(value, list) else visited[0])
        match node:
            case ast.For():
                node.body = [*self._set(stored_in(node.target)), *node.body]
                return [node]
            case ast.With(items=items):
                targets_of = [stored_in(item.optional_vars) for item in items if item.optional_vars]
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
