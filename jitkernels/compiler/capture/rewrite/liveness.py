"""Which variables a loop or branch changes that are read later: its state, found from the end of a function backwards.

What a body assigns and nothing reads afterwards is the body's own.
"""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.frontends.rewriting.assigned import never_suppresses
from jitkernels.frontends.rewriting.jumps import STOPS

STATE, PASSING = "jk_state", "jk_passing"
"""The attributes of a loop or branch that has the names of its state, and of a statement that says what it reads."""
STORED = "jk_stored"
"""The attribute that has all names that are assigned in it."""
SCOPES = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
"""Expressions with variables of their own."""
Names = frozenset[str]
NONE: Names = frozenset()


def read_in(node: ast.AST | Sequence[ast.AST] | None) -> Names:
    """All names that are read somewhere in a node."""
    return _names(node, ast.Load)


def stored_in(node: ast.AST | Sequence[ast.AST] | None) -> Names:
    """All names that are assigned somewhere in a node, functions in it left out."""
    return _names(node, ast.Store)


def _names(node: ast.AST | Sequence[ast.AST] | None, context: type[ast.expr_context]) -> Names:
    if node is None:
        return NONE
    if not isinstance(node, ast.AST):
        return NONE.union(*(_names(one, context) for one in node))
    kept = f"jk_{context.__name__}"  # of each statement, as loops in loops are asked again and again
    if not hasattr(node, kept):
        setattr(node, kept, frozenset(_found(node, context)))
    found: Names = getattr(node, kept)
    return found


def _found(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    found: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.stmt) and one is not node:
            found |= _names(one, context)
            continue
        if isinstance(one, ast.Name) and isinstance(one.ctx, context):
            found.add(one.id)
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            found.add(one.target.id)
        if isinstance(one, ast.FunctionDef) and context is ast.Store:
            found.add(one.name)
            continue
        if isinstance(one, SCOPES) and context is ast.Store:
            continue
        if isinstance(one, ast.Import | ast.ImportFrom) and context is ast.Store:
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        waiting += ast.iter_child_nodes(one)
    return found


class Passing(NamedTuple):
    """Names that statements read of what was there before, and those that none that comes later reads of that."""

    read: Names
    made: Names

    def before(self, after: Names) -> Names:
        """What is read of what was there before, by these or by those that read some names afterwards."""
        return self.read | (after - self.made)


NOTHING = Passing(NONE, NONE)


def note_states(body: Sequence[ast.stmt]) -> None:
    """Note the states of the loops and branches of a function. What functions in it read may be read at any time."""
    captured: set[str] = set()
    for one in [inner for node in body for inner in ast.walk(node)]:
        if isinstance(one, ast.FunctionDef | ast.Lambda):
            captured |= read_in(one.body) - {
                given.arg for given in ast.walk(one.args) if isinstance(given, ast.arg)
            }
    before(body, NONE)
    for one in [inner for node in body for inner in ast.walk(node)]:
        found = getattr(one, STORED, NONE) & captured
        if found:
            setattr(one, STATE, sorted({*getattr(one, STATE), *found}))


def before(nodes: Sequence[ast.stmt], after: Names, always: Names = NONE) -> Names:
    """The names that statements, or what comes after them, read of what was there before. States are noted.

    `always`: what is read where an exception leaves them, at any place.
    """
    after |= always
    for node in reversed(nodes):
        _note(node, after, always)
        after = _passing(node).before(after) | always
    return after


def _passing_all(nodes: Sequence[ast.stmt]) -> Passing:
    found = NOTHING
    for node in reversed(nodes):
        one = _passing(node)
        found = Passing(one.before(found.read), one.made | found.made)
    return found


def _passing(node: ast.stmt) -> Passing:
    """Of one statement, found once."""
    if not hasattr(node, PASSING):
        setattr(node, PASSING, _passing_of(node))
    found: Passing = getattr(node, PASSING)
    return found


def _passing_of(node: ast.stmt) -> Passing:
    match node:
        case ast.If():
            yes, no = _passing_all(node.body), _passing_all(node.orelse)
            return Passing(yes.read | no.read | read_in(node.test), yes.made & no.made)
        case ast.While():
            return Passing(_asked(node) | _passing_all(node.body).read, NONE)
        case ast.For():
            inside = _passing_all(node.body).read - stored_in(node.target)
            return Passing(_asked(node) | inside | read_in(node.iter) | read_in(node.target), NONE)
        case ast.With():
            made = NONE.union(*(stored_in(item.optional_vars) for item in node.items))
            read = NONE.union(*(read_in(item.context_expr) for item in node.items))
            inside_with = _passing_all(node.body)
            behind = inside_with.made if never_suppresses(node) else NONE
            return Passing((inside_with.read - made) | read, behind | made)
        case ast.Try():
            parts = [node.body, *(one.body for one in node.handlers), node.orelse, node.finalbody]
            asked = NONE.union(*(read_in(one.type) for one in node.handlers))
            return Passing(asked.union(*(_passing_all(one).read for one in parts)), NONE)
    return Passing(read_in(node), stored_in(node))


def _asked(node: ast.For | ast.While) -> Names:
    """What is read before each round, beside what a loop goes along."""
    own = read_in(node.test) if isinstance(node, ast.While) else NONE
    return own | frozenset(getattr(node, STOPS, ()))


def _note(node: ast.stmt, after: Names, always: Names) -> None:
    """Note the states of loops and branches in a statement."""
    match node:
        case ast.If():
            inside = before(node.body, after, always) | before(node.orelse, after, always)
            _set(node, stored_in(node.body) | stored_in(node.orelse), after | inside)
        case ast.While() | ast.For():
            target = stored_in(node.target) if isinstance(node, ast.For) else NONE
            # What is read at the beginning of a round may be what the round before has made.
            head = after | _asked(node) | (_passing_all(node.body).read - target)
            before(node.body, head, always)
            _set(node, stored_in(node.body) | target, head)
        case ast.With():
            before(node.body, after, NONE if never_suppresses(node) else after | always)
        case ast.Try():
            last = before(node.finalbody, after, always)
            behind = last.union(
                *(before(one.body, last, always) | read_in(one.type) for one in node.handlers),
                before(node.orelse, last, always),
            )
            before(node.body, behind, behind | always)


def _set(node: ast.stmt, stored: Names, live: Names) -> None:
    setattr(node, STATE, sorted(stored & live))
    setattr(node, STORED, stored)
