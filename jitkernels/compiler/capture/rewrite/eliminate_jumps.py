"""``return``, ``break`` and ``continue`` as bools: what comes behind a jump runs only where none was taken.

``if c: break`` has what follows it in its ``else`` then, and no bool is asked. Elsewhere, what follows is put into an
``if`` that asks them. Loops ask those that end them before each round (`STOPS`).
"""

import ast
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

RETURNED, VALUE = "_jk_returned", "_jk_value"
STOPS = "jk_stops"
"""The attribute of a loop that has the names of the bools that end it."""
SIDES = "jk_sides"
"""The attribute of a branch that says whether its sides are left."""


class Left(IntEnum):
    """Whether a block is left before its end."""

    NEVER, MAYBE, ALWAYS = range(3)


class Leaving(NamedTuple):
    """Whether, and which bools are true then."""

    kind: Left
    flags: frozenset[str] = frozenset()


NO = Leaving(Left.NEVER)
RAISES = Leaving(Left.ALWAYS)


def without_jumps(tree: ast.FunctionDef, unset: ast.expr) -> None:
    """Take all jumps out of a function, but for one ``return`` at its end. `unset` is the value before any."""
    last = tree.body[-1]
    inside = [one for one in _own_nodes(tree) if isinstance(one, ast.Return) and one is not last]
    if not inside:
        kept = [tree.body.pop()] if isinstance(last, ast.Return) else []
        tree.body = [*Jumps().block(tree.body, "")[0], *kept]
        return
    returned = [one.value for one in [*inside, *([last] if isinstance(last, ast.Return) else [])]]
    count = _length_of_all(returned)
    body, leaving = Jumps(count).block(tree.body, "")
    if leaving.kind != Left.ALWAYS:  # Python gives None at the end
        if count is not None:
            body, leaving = Jumps().block(tree.body, "")
        body.append(ast.copy_location(guarded([RETURNED], [assigned(VALUE, ast.Constant(None))]), last))
        count = None
    value: ast.expr = ast.Name(VALUE, ast.Load())
    if count is not None:
        value = ast.Tuple([ast.Name(name, ast.Load()) for name in names_of(count)], ast.Load())
    tree.body = [
        assigned(RETURNED, ast.Constant(False)),
        *(assigned(name, unset) for name in (names_of(count) if count is not None else [VALUE])),
        *body,
        ast.Return(value),
    ]


def _length_of_all(values: Sequence[ast.expr | None]) -> int | None:
    """How many values a function returns, if each ``return`` lists as many."""
    lengths = {
        len(one.elts)
        if isinstance(one, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in one.elts)
        else None
        for one in values
    }
    return lengths.pop() if len(lengths) == 1 else None


def names_of(count: int) -> list[str]:
    """The names of so many values that are returned together."""
    return [f"{VALUE}{i}" for i in range(count)]


def assigned(name: str, value: ast.expr) -> ast.stmt:
    """``name = value``."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def guarded(flags: Sequence[str], body: list[ast.stmt]) -> ast.stmt:
    """``if not (one or other): body``."""
    return ast.If(none_of(flags), body, [])


def none_of(flags: Sequence[str]) -> ast.expr:
    """``not (one or other)``."""
    names: list[ast.expr] = [ast.Name(flag, ast.Load()) for flag in sorted(flags)]
    return ast.UnaryOp(ast.Not(), names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names))


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes of a function without those of functions in it."""
    found: list[ast.AST] = []
    waiting = [*ast.iter_child_nodes(node)]
    while waiting:
        one = waiting.pop()
        found.append(one)
        if not isinstance(one, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)
    return found


class Jumps:
    """Rewrites the blocks of one function, which returns so many values at a time, or one."""

    def __init__(self, count: int | None = None) -> None:
        self.loops, self.count = 0, count

    def block(self, nodes: Sequence[ast.stmt], loop: str) -> tuple[list[ast.stmt], Leaving]:
        """Statements without jumps, and whether they are left early. `loop` is the number of the loop around."""
        made: list[ast.stmt] = []
        for place, node in enumerate(nodes):
            leaving = self.statement(node, loop, made)
            if leaving.kind == Left.NEVER:
                continue
            rest = nodes[place + 1 :]
            if leaving.kind == Left.ALWAYS or not rest:
                return made, leaving
            body, then = self.block(rest, loop)
            last = made[-1]
            sides: Sequence[Leaving] = getattr(last, SIDES, ())
            if isinstance(last, ast.If) and {Left.ALWAYS, Left.NEVER} == {one.kind for one in sides}:
                # What follows a choice one side of which always jumps is a part of the other side.
                other = last.orelse if sides[0].kind == Left.ALWAYS else last.body
                other += body
                flags = leaving.flags | then.flags
                if then.kind == Left.ALWAYS:
                    return made, Leaving(Left.ALWAYS, flags)
                return made, Leaving(Left.MAYBE, flags) if flags else NO
            made.append(ast.copy_location(guarded(sorted(leaving.flags), body), rest[0]))
            always = then.kind == Left.ALWAYS
            return made, Leaving(Left.ALWAYS if always else Left.MAYBE, leaving.flags | then.flags)
        return made, NO

    def statement(self, node: ast.stmt, loop: str, made: list[ast.stmt]) -> Leaving:
        """Add a statement without its jumps."""
        match node:
            case ast.Return(value=value):
                target: ast.expr = ast.Name(VALUE, ast.Store())
                if self.count is not None:
                    target = ast.Tuple(
                        [ast.Name(name, ast.Store()) for name in names_of(self.count)], ast.Store()
                    )
                made.append(ast.copy_location(ast.Assign([target], value or ast.Constant(None)), node))
                made.append(assigned(RETURNED, ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({RETURNED}))
            case ast.Break():
                made.append(assigned(f"_jk_broken{loop}", ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({f"_jk_broken{loop}"}))
            case ast.Continue():
                made.append(assigned(f"_jk_next{loop}", ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({f"_jk_next{loop}"}))
            case ast.Raise():
                made.append(node)
                return RAISES
            case ast.Assert(test=test, msg=text):
                given = [text] if text else []
                raised = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), given, []))
                made.append(ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), [raised], []), node))
                return NO
            case ast.If(test=test):
                body, yes = self.block(node.body, loop)
                orelse, no = self.block(node.orelse, loop)
                if RAISES in (yes, no):  # the other side is what follows, and so may make arrays
                    if yes != RAISES:
                        test, body, orelse, no = ast.UnaryOp(ast.Not(), test), orelse, body, yes
                    made += [ast.copy_location(ast.If(test, body, []), node), *orelse]
                    return no
                chosen = ast.If(test, body or [ast.Pass()], orelse)
                setattr(chosen, SIDES, (yes, no))
                made.append(ast.copy_location(chosen, node))
                if yes.kind == no.kind:
                    return Leaving(yes.kind, yes.flags | no.flags)
                return Leaving(Left.MAYBE, yes.flags | no.flags)
            case ast.With(items=items):
                body, leaving = self.block(node.body, loop)
                made.append(ast.copy_location(ast.With(items, body), node))
                return leaving
            case ast.Try():
                return self._try(node, loop, made)
            case ast.For() | ast.While():
                return self._loop(node, loop, made)
        made.append(node)
        return NO

    def _try(self, node: ast.Try, loop: str, made: list[ast.stmt]) -> Leaving:
        """A block that exceptions may leave for a handler: then no bool that it would have set is true."""
        body, leaving = self.block(node.body, loop)
        orelse: list[ast.stmt] = []
        if node.orelse and leaving.kind != Left.ALWAYS:
            orelse, then = self.block(node.orelse, loop)
            if leaving.flags:
                orelse = [ast.copy_location(guarded(sorted(leaving.flags), orelse), node)]
            leaving = Leaving(max(leaving.kind, then.kind), leaving.flags | then.flags)
        parts, handlers = [leaving], []
        for one in node.handlers:
            inside, left = self.block(one.body, loop)
            handlers.append(ast.copy_location(ast.ExceptHandler(one.type, one.name, inside), one))
            parts.append(left)
        last, _ = self.block(node.finalbody, loop)
        made.append(ast.copy_location(ast.Try(body or [ast.Pass()], handlers, orelse, last), node))
        flags = frozenset().union(*(one.flags for one in parts))
        if all(one.kind == Left.ALWAYS for one in parts):
            return Leaving(Left.ALWAYS, flags)
        return Leaving(Left.MAYBE, flags) if flags else NO

    def _loop(self, node: ast.For | ast.While, around: str, made: list[ast.stmt]) -> Leaving:
        self.loops += 1
        number = str(self.loops)
        body, leaving = self.block(node.body, number)
        broken, following = f"_jk_broken{number}", f"_jk_next{number}"
        if following in leaving.flags:
            body.insert(0, assigned(following, ast.Constant(False)))
        stops = sorted(leaving.flags & {broken, RETURNED})
        if broken in leaving.flags:
            made.append(assigned(broken, ast.Constant(False)))
        new: ast.For | ast.While = (
            ast.For(node.target, node.iter, body or [ast.Pass()], [])
            if isinstance(node, ast.For)
            else ast.While(node.test, body or [ast.Pass()], [])
        )
        setattr(new, STOPS, stops)
        made.append(ast.copy_location(new, node))
        returned = leaving.flags & {RETURNED}
        found = Leaving(Left.MAYBE, frozenset(returned)) if returned else NO
        if node.orelse:
            orelse, then = self.block(node.orelse, around)  # a `break` here ends the loop around
            behind = guarded(stops, orelse) if stops else ast.If(ast.Constant(True), orelse, [])
            made.append(ast.copy_location(behind, node))
            if then.kind != Left.NEVER:
                found = Leaving(Left.MAYBE, found.flags | then.flags)
        return found
