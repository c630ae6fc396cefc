"""Liveness with jumps and exceptions: the variables that are read after each statement of a function as users write it.

`compiler.capture.rewrite.liveness` analyses functions whose jumps are gone. Here a part of the function has to return
what is read on any path behind it: after ``break`` and ``continue``, in handlers, and in the next iteration.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jitkernels.compiler.capture.rewrite.ast_builder import parameters_of
from jitkernels.compiler.capture.rewrite.definite_assignment import (
    AssignmentChecker,
    Names,
    State,
    deleted_in,
    locals_of,
    never_suppresses,
    stored_in,
)

NONE: Names = frozenset()
LATER = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.GeneratorExp
"""Nodes whose inside runs later than they do."""


class JumpTargets(NamedTuple):
    """The live variables where jumps lead: ``break``, ``continue``, and exceptions that the function may handle."""

    at_break: Names = NONE
    at_continue: Names = NONE
    at_exception: Names = NONE


def read_in(node: ast.AST | Sequence[ast.AST] | None) -> Names:
    """The names that a node reads, in nested functions too."""
    if node is None:
        return NONE
    if not isinstance(node, ast.AST):
        return NONE.union(*map(read_in, node))
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    updated = (inner.target for inner in ast.walk(node) if isinstance(inner, ast.AugAssign))
    return frozenset(names | {target.id for target in updated if isinstance(target, ast.Name)})


class LiveVariables:
    """Live variables of one function: `after` each statement, and where an exception leaves it (`handled`), by id.

    `before`: those before the first statement; `captured`: variables that nested functions read, which are always live.
    """

    def __init__(self, body: Sequence[ast.stmt], captured: Names) -> None:
        self.after: dict[int, Names] = {}
        self.handled: dict[int, Names] = {}
        self.captured = captured
        self.before = self.block(body, NONE, JumpTargets())

    def block(self, nodes: Sequence[ast.stmt], after: Names, jumps: JumpTargets) -> Names:
        """The live variables before statements, given those after them."""
        for node in reversed(nodes):
            after |= jumps.at_exception | self.captured
            self.after[id(node)] = self.after.get(id(node), NONE) | after
            self.handled[id(node)] = self.handled.get(id(node), NONE) | jumps.at_exception
            after = self.statement(node, after, jumps) | jumps.at_exception
        return after

    def statement(self, node: ast.stmt, after: Names, jumps: JumpTargets) -> Names:
        match node:
            case ast.If():
                both = self.block(node.body, after, jumps) | self.block(node.orelse, after, jumps)
                return read_in(node.test) | both
            case ast.While() | ast.For():
                return self._loop(node, after, jumps)
            case ast.With():
                handled = jumps if never_suppresses(node) else jumps._replace(at_exception=jumps.at_exception | after)
                targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
                inside = self.block(node.body, after, handled) - stored_in(targets)
                return inside | read_in([item.context_expr for item in node.items]) | read_in(targets)
            case ast.Try():
                return self._try(node, after, jumps)
            case ast.Return() | ast.Raise():
                return read_in(node)
            case ast.Break():
                return jumps.at_break
            case ast.Continue():
                return jumps.at_continue
            case ast.Delete():
                return (after - stored_in(node)) | read_in(node) | deleted_in([node])
            case ast.Assign() | ast.AnnAssign() | ast.Import() | ast.ImportFrom():
                return (after - stored_in(node)) | read_in(node)
        return after | read_in(node)

    def _loop(self, node: ast.While | ast.For, after: Names, jumps: JumpTargets) -> Names:
        first = read_in(node.test) if isinstance(node, ast.While) else NONE
        targets = stored_in(node.target) if isinstance(node, ast.For) else NONE
        head = first | self.block(node.orelse, after, jumps)
        while True:
            inside = jumps._replace(at_break=after, at_continue=head)
            wider = head | (self.block(node.body, head, inside) - targets)
            if wider == head:
                return head | (read_in(node.iter) | read_in(node.target) if isinstance(node, ast.For) else NONE)
            head = wider

    def _try(self, node: ast.Try, after: Names, jumps: JumpTargets) -> Names:
        last = self.block(node.finalbody, after | jumps.at_break | jumps.at_continue, jumps)
        inside = jumps._replace(at_exception=jumps.at_exception | last)
        caught = NONE
        for handler in node.handlers:
            own = frozenset({handler.name} if handler.name else ())
            caught |= (self.block(handler.body, last, inside) - own) | read_in(handler.type)
        behind = self.block(node.orelse, last, inside)
        return self.block(node.body, behind, inside._replace(at_exception=inside.at_exception | caught))


class DefiniteAssignment(AssignmentChecker):
    """The variables that are surely assigned `before` each statement, by id."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.before: dict[int, Names] = {}
        self._is_recorded = True
        super().__init__(tree, assumes_nonzero_trips=False)
        self._is_recorded = False

    def statement(self, node: ast.stmt, state: Names) -> State:
        if self._is_recorded:
            self.before[id(node)] = self.before.get(id(node), state) & state  # states shrink until they are fixed
        return super().statement(node, state)

    def after(self, nodes: Sequence[ast.stmt], state: Names) -> Names:
        """The variables that are surely assigned behind statements; all, where their end is not reached."""
        end = self.block(nodes, state)
        return self.names if end is None else end


def functions_in(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nested functions whose inside may run later than the statement that makes them."""
    for node in nodes:
        consumed = {
            id(argument) for inner in ast.walk(node) if isinstance(inner, ast.Call) for argument in inner.args
            if isinstance(argument, ast.GeneratorExp)
        }  # fmt: skip
        for inner in ast.walk(node):
            if isinstance(inner, LATER) and id(inner) not in consumed:
                yield inner


def captured_by(node: ast.AST) -> Names:
    """The names that a nested function reads or assigns outside of itself."""
    inside: Names = NONE
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        own = parameters_of(node) if isinstance(node, ast.Lambda) else locals_of(node) - _nonlocals(node)
        inside = read_in(node.body) | (_nonlocals(node) if isinstance(node, ast.FunctionDef) else NONE)
        return inside - own
    return read_in(node)


def _nonlocals(node: ast.FunctionDef) -> Names:
    return frozenset(name for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names)
