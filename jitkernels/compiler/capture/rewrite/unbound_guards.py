"""Guards of reads of variables that may be unbound: there Python raises UnboundLocalError.

Reads of definitely assigned variables stay unchanged. Others go through `flow.check_bound`, which tests a flag that is
set where the variable is assigned and is loop-carried and merged at branches like any other variable::

    _jk_has_x = False
    for ...:
        if a > b:
            x = 1
            _jk_has_x = True
        else:
            y = flow.check_bound("x", x, _jk_has_x)

If only a loop without iterations would leave a variable unbound there is no flag: such calls fall back to Python.
"""

import ast
import sys
from typing import Any

from jitkernels.compiler.capture.rewrite.ast_builder import assign, call_hook, hook, load, located, parameters_of
from jitkernels.compiler.capture.rewrite.definite_assignment import (
    MAYBE_UNBOUND,
    SOME_PATH,
    ZERO_TRIP,
    AssignmentChecker,
    Names,
    locals_of,
    stored_in,
)

IS_BOUND_PREFIX, CAUGHT_PREFIX = "_jk_has_", "_jk_error_"
"""Prefixes of the names of these flags, and of caught exceptions."""
GUARDED_VARIABLES = "jk_guarded"
"""AST attribute of a function: its variables whose reads are guarded wherever they may be unbound."""
LIST_METHODS = ("append", "extend", "pop")
"""Methods of lists that grow: an unbound variable has no methods, and raises by itself."""
BLOCKS = ("body", "orelse", "finalbody")


class UnboundGuards(ast.NodeTransformer):
    """Guards the reads of a function, and of nested ones, that may be unbound.

    `has_flag`: the visible variables, and whether they have flags; `own`: the variables of the function; `caught`: the
    exceptions of the enclosing handlers.
    """

    def __init__(self) -> None:
        self.has_flag: dict[str, bool] = {}
        self.own: Names = frozenset()
        self.caught: list[str] = []

    def function(self, tree: ast.FunctionDef) -> None:
        for assumes_nonzero_trips in (False, True):
            AssignmentChecker(tree, assumes_nonzero_trips=assumes_nonzero_trips)
        local_names = locals_of(tree)
        marks: dict[str, set[int]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and hasattr(node, MAYBE_UNBOUND):
                marks.setdefault(node.id, set()).add(getattr(node, MAYBE_UNBOUND))
        flagged = {name for name in local_names if SOME_PATH in marks.get(name, ())}
        guarded = {name for name in local_names if name in flagged or ZERO_TRIP not in marks.get(name, ())}
        setattr(tree, GUARDED_VARIABLES, frozenset(guarded))
        outside = self.has_flag, self.own, self.caught
        self.has_flag = {**self.has_flag, **{name: name in flagged for name in local_names}}
        self.own, self.caught = local_names, []
        parameters = parameters_of(tree)
        body = self._block(tree.body)
        docstring = body[:1] if ast.get_docstring(tree, clean=False) is not None else []
        flags = located((assign(IS_BOUND_PREFIX + name, name in parameters) for name in sorted(flagged)), tree.body[0])
        tree.body = [*docstring, *flags, *body[len(docstring) :]]
        self.has_flag, self.own, self.caught = outside

    def _block(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        output: list[ast.stmt] = []
        for node in nodes:
            replacement = self.visit(node)
            statements = replacement if isinstance(replacement, list) else [replacement]
            output += [item if hasattr(item, "lineno") else ast.copy_location(item, node) for item in statements]
        return output

    def _checked(self, name: str) -> ast.expr:
        """A read of a variable that raises where it is unbound."""
        flag = [load(IS_BOUND_PREFIX + name)] if self.has_flag.get(name) else []
        reader = "check_bound" if name in self.own else "check_free_bound"
        return call_hook(reader, ast.Constant(name), load(name), *flag)

    def _set_flags(self, names: Names, *, has: bool = True) -> list[ast.stmt]:
        """Set the flags of variables that have been assigned, or clear those of deleted ones."""
        return [assign(IS_BOUND_PREFIX + name, has) for name in sorted(names) if self.has_flag.get(name)]

    def _unbind(self, name: str) -> list[ast.stmt]:
        return [assign(name, hook("UNSET")), *self._set_flags(frozenset({name}), has=False)]

    def visit(self, node: ast.AST) -> Any:
        """The node rewritten, or the statements in its place."""
        match node:
            case ast.FunctionDef():
                node.args = self.generic_visit(node.args)  # type: ignore[assignment]
                self.function(node)
                return [node, *self._set_flags(frozenset({node.name}))]
            case ast.Lambda():
                return self._inside(node, parameters_of(node))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = self.visit(node.generators[0].iter)
                node.generators[0].iter = ast.Constant(None)  # evaluated outside the comprehension's scope
                self._inside(node, frozenset().union(*(stored_in(generator.target) for generator in node.generators)))
                node.generators[0].iter = first
                return node
            case ast.Name(id=name, ctx=ast.Load()) if hasattr(node, MAYBE_UNBOUND):
                return ast.copy_location(self._checked(name), node)
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr=attr)) if attr in LIST_METHODS:
                node.args = [self.visit(argument) for argument in node.args]
                node.keywords = [self.visit(keyword) for keyword in node.keywords]
                return node
            case ast.stmt():
                return self._statement(node)
        return self.generic_visit(node)

    def _inside(self, node: ast.AST, own: Names) -> ast.AST:
        outside = self.has_flag, self.own
        self.has_flag = {name: has for name, has in self.has_flag.items() if name not in own}
        is_function = isinstance(node, ast.Lambda | ast.GeneratorExp) or sys.version_info < (3, 12)
        self.own = frozenset() if is_function else self.own - own
        self.generic_visit(node)
        self.has_flag, self.own = outside
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Delete(targets=targets) if all(isinstance(item, ast.Name) for item in targets):
                output: list[ast.stmt] = []
                for item in targets:
                    assert isinstance(item, ast.Name), "the case tests it"
                    output += [ast.Expr(self._checked(item.id))] if hasattr(item, MAYBE_UNBOUND) else []
                    output += self._unbind(item.id)
                return located(output, node)
            case ast.Break() | ast.Continue():
                return [*(item for name in self.caught for item in self._unbind(name)), node]
            case ast.AugAssign(target=ast.Name(id=name) as target) if hasattr(target, MAYBE_UNBOUND):
                self.generic_visit(node)
                return [ast.copy_location(ast.Expr(self._checked(name)), node), node]
        self._visit_fields(node)
        match node:
            case ast.For():
                node.body = [*self._set_flags(stored_in(node.target)), *node.body]
            case ast.With(items=items):
                targets_of = [stored_in(item.optional_vars) for item in items if item.optional_vars]
                node.body = [*self._set_flags(frozenset().union(*targets_of)), *node.body]
            case ast.If() | ast.While() | ast.Try():
                pass
            case _:
                return [node, *self._set_flags(stored_in(node))]
        return [node]

    def _visit_fields(self, node: ast.stmt) -> None:
        """Rewrite the blocks, handlers and expressions of a statement."""
        for name in BLOCKS:
            blocks = getattr(node, name, None)
            if isinstance(blocks, list):
                setattr(node, name, self._block(blocks))
        for name, value in ast.iter_fields(node):
            if name == "handlers":
                for item in value:
                    self._handler(item)
            elif name not in BLOCKS:
                inner = value if isinstance(value, list) else [value]
                visited = [self.visit(item) if isinstance(item, ast.AST) else item for item in inner]
                setattr(node, name, visited if isinstance(value, list) else visited[0])

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            node.type = self.visit(node.type)
        if node.name is None:
            node.body = self._block(node.body)
            return
        name = node.name
        node.name = CAUGHT_PREFIX + name
        self.caught.append(name)
        body = self._block(node.body)
        self.caught.pop()
        begin = [assign(name, call_hook("check_caught", load(node.name))), *self._set_flags(frozenset({name}))]
        node.body = [*begin, *body, *self._unbind(name)]
