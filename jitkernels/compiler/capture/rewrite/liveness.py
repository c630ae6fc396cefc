"""Liveness analysis, backwards over the statements: the live variables that a loop or branch changes are its state.

Variables that a body assigns and nothing reads afterwards stay local to the body.
"""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.compiler.capture.rewrite.ast_builder import parameters_of
from jitkernels.compiler.capture.rewrite.definite_assignment import never_suppresses
from jitkernels.compiler.capture.rewrite.eliminate_jumps import STOPS

STATE, GEN_KILL = "jk_state", "jk_passing"
"""AST attributes: the state variables of a loop or branch; the cached gen/kill sets of a statement."""
STORED_NAMES = "jk_stored"
"""AST attribute: all names that a loop or branch assigns."""
SCOPES = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
"""Expressions with variables of their own."""
Names = frozenset[str]
NONE: Names = frozenset()


def read_in(node: ast.AST | Sequence[ast.AST] | None) -> Names:
    return _names(node, ast.Load)


def stored_in(node: ast.AST | Sequence[ast.AST] | None) -> Names:
    """All names that a node assigns, nested functions left out."""
    return _names(node, ast.Store)


def _names(node: ast.AST | Sequence[ast.AST] | None, context: type[ast.expr_context]) -> Names:
    if node is None:
        return NONE
    if not isinstance(node, ast.AST):
        return NONE.union(*(_names(part, context) for part in node))
    cache = f"jk_{context.__name__}"  # cached per statement: nested loops are visited repeatedly
    if not hasattr(node, cache):
        setattr(node, cache, frozenset(_collect(node, context)))
    return getattr(node, cache)  # type: ignore[no-any-return]


def _collect(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    names: set[str] = set()
    worklist = [node]
    while worklist:
        child = worklist.pop()
        if isinstance(child, ast.stmt) and child is not node:
            names |= _names(child, context)
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, context):
            names.add(child.id)
        if isinstance(child, ast.AugAssign) and isinstance(child.target, ast.Name):
            names.add(child.target.id)
        if isinstance(child, ast.FunctionDef) and context is ast.Store:
            names.add(child.name)
            continue
        if isinstance(child, SCOPES) and context is ast.Store:
            continue
        if isinstance(child, ast.Import | ast.ImportFrom) and context is ast.Store:
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in child.names}
        worklist += ast.iter_child_nodes(child)
    return names


class GenKill(NamedTuple):
    """Gen and kill sets of statements: names read before assignment (`read`) and definitely assigned (`killed`)."""

    read: Names
    killed: Names

    def before(self, after: Names) -> Names:
        """The live names before the statements, given those live after them."""
        return self.read | (after - self.killed)


def note_states(body: Sequence[ast.stmt]) -> None:
    """Annotate the loops and branches of a function with their states.

    Variables of nested functions are always live.
    """
    captured: set[str] = set()
    for statement in [inner for node in body for inner in ast.walk(node)]:
        if isinstance(statement, ast.FunctionDef | ast.Lambda):
            captured |= read_in(statement.body) - parameters_of(statement)
    live_before(body, NONE)
    for statement in [inner for node in body for inner in ast.walk(node)]:
        always_live = getattr(statement, STORED_NAMES, NONE) & captured
        if always_live:
            setattr(statement, STATE, sorted({*getattr(statement, STATE), *always_live}))


def live_before(nodes: Sequence[ast.stmt], after: Names, always: Names = NONE) -> Names:
    """The live names before statements, given those live after them. Annotates states.

    `always`: names that are live wherever an exception may leave the statements.
    """
    after |= always
    for node in reversed(nodes):
        _note_state(node, after, always)
        after = _gen_kill(node).before(after) | always
    return after


def _gen_kill_all(nodes: Sequence[ast.stmt]) -> GenKill:
    total = GenKill(NONE, NONE)
    for node in reversed(nodes):
        current = _gen_kill(node)
        total = GenKill(current.before(total.read), current.killed | total.killed)
    return total


def _gen_kill(node: ast.stmt) -> GenKill:
    """The gen and kill sets of one statement, cached."""
    if not hasattr(node, GEN_KILL):
        setattr(node, GEN_KILL, _compute_gen_kill(node))
    return getattr(node, GEN_KILL)  # type: ignore[no-any-return]


def _compute_gen_kill(node: ast.stmt) -> GenKill:
    match node:
        case ast.If():
            yes, no = _gen_kill_all(node.body), _gen_kill_all(node.orelse)
            return GenKill(yes.read | no.read | read_in(node.test), yes.killed & no.killed)
        case ast.While():
            return GenKill(_read_by_condition(node) | _gen_kill_all(node.body).read, NONE)
        case ast.For():
            inside = _gen_kill_all(node.body).read - stored_in(node.target)
            return GenKill(_read_by_condition(node) | inside | read_in(node.iter) | read_in(node.target), NONE)
        case ast.With():
            result = NONE.union(*(stored_in(item.optional_vars) for item in node.items))
            read = NONE.union(*(read_in(item.context_expr) for item in node.items))
            inside_with = _gen_kill_all(node.body)
            killed_inside = inside_with.killed if never_suppresses(node) else NONE
            return GenKill((inside_with.read - result) | read, killed_inside | result)
        case ast.Try():
            parts = [node.body, *(part.body for part in node.handlers), node.orelse, node.finalbody]
            handler_types = NONE.union(*(read_in(part.type) for part in node.handlers))
            return GenKill(handler_types.union(*(_gen_kill_all(part).read for part in parts)), NONE)
    return GenKill(read_in(node), stored_in(node))


def _read_by_condition(node: ast.For | ast.While) -> Names:
    """Names that are read before each iteration, besides the iterable."""
    own = read_in(node.test) if isinstance(node, ast.While) else NONE
    return own | frozenset(getattr(node, STOPS, ()))


def _note_state(node: ast.stmt, after: Names, always: Names) -> None:
    """Annotate the states of loops and branches in a statement."""
    match node:
        case ast.If():
            inside = live_before(node.body, after, always) | live_before(node.orelse, after, always)
            _set_state(node, stored_in(node.body) | stored_in(node.orelse), after | inside)
        case ast.While() | ast.For():
            target = stored_in(node.target) if isinstance(node, ast.For) else NONE
            # A read at the beginning of an iteration may see the value of the previous one.
            head = after | _read_by_condition(node) | (_gen_kill_all(node.body).read - target)
            live_before(node.body, head, always)
            _set_state(node, stored_in(node.body) | target, head)
        case ast.With():
            live_before(node.body, after, NONE if never_suppresses(node) else after | always)
        case ast.Try():
            last = live_before(node.finalbody, after, always)
            live_after_body = last.union(
                *(live_before(handler.body, last, always) | read_in(handler.type) for handler in node.handlers),
                live_before(node.orelse, last, always),
            )
            live_before(node.body, live_after_body, live_after_body | always)


def _set_state(node: ast.stmt, stored: Names, live: Names) -> None:
    setattr(node, STATE, sorted(stored & live))
    setattr(node, STORED_NAMES, stored)
