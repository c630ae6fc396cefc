"""Which variables a loop or branch changes that are read later: its state, found from the end of a function backwards.

What a body assigns and nothing reads afterwards is the body's own.
"""

import ast
from collections.abc import Sequence

from jitkernels.frontends.rewriting.jumps import STOPS

STATE = "jk_state"
"""The attribute of a loop or branch that has the names of its state."""
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
    found: set[str] = set()
    waiting = list(node) if isinstance(node, list | tuple) else [node] if isinstance(node, ast.AST) else []
    while waiting:
        one = waiting.pop()
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
    return frozenset(found)


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


def before(nodes: Sequence[ast.stmt], after: Names) -> Names:
    """The names that statements, or what comes after them, read of what was there before. States are noted."""
    live = after
    for node in reversed(nodes):
        live = _before(node, live)
    return live


def _before(node: ast.stmt, after: Names) -> Names:
    match node:
        case ast.If():
            inside = before(node.body, after) | before(node.orelse, after)
            _note(node, stored_in(node.body) | stored_in(node.orelse), after | inside)
            return inside | read_in(node.test)
        case ast.While():
            asked = read_in(node.test) | frozenset(getattr(node, STOPS, ()))
            head = _head(node.body, after | asked, NONE)
            _note(node, stored_in(node.body), head)
            return head
        case ast.For():
            asked = frozenset(getattr(node, STOPS, ()))
            target = stored_in(node.target)
            head = _head(node.body, after | asked, target)
            _note(node, stored_in(node.body) | target, head)
            return head | read_in(node.iter) | read_in(node.target)
        case ast.With():
            made = frozenset().union(*(stored_in(item.optional_vars) for item in node.items))
            read = frozenset().union(*(read_in(item.context_expr) for item in node.items))
            return (before(node.body, after) - made) | read
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return (after - stored_in(node)) | read_in(node) | _changed(node)
    return (after - stored_in(node)) | read_in(node)


def _changed(node: ast.stmt) -> Names:
    return read_in(node) if isinstance(node, ast.AugAssign) else NONE


def _head(body: Sequence[ast.stmt], leaving: Names, target: Names) -> Names:
    """What is read at the beginning of a round, which may be what the round before has made."""
    head = leaving
    while True:
        found = leaving | (before(body, head) - target)
        if found == head:
            return head
        head = found


def _note(node: ast.stmt, stored: Names, live: Names) -> None:
    setattr(node, STATE, sorted(stored & live))
    setattr(node, STORED, stored)
