"""Eliminate ``return``, ``break`` and ``continue``: boolean flags guard the statements that follow a jump.

After ``if c: break`` the following statements move into the ``else`` branch, without a flag test. Elsewhere they move
into an ``if`` that tests the flags. Loops test the flags that end them before each iteration (`STOPS`).
"""

import ast
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

RETURNED, VALUE = "_jk_returned", "_jk_value"
STOPS = "jk_stops"
"""AST attribute of a loop: the names of the flags that end it."""
SIDES = "jk_sides"
"""AST attribute of a branch: how each side is left."""


class Left(IntEnum):
    """Whether a jump leaves a block before its end."""

    NEVER, MAYBE, ALWAYS = range(3)


class Leaving(NamedTuple):
    """Whether a jump leaves a block, and which flags are set then."""

    kind: Left
    flags: frozenset[str] = frozenset()


NO = Leaving(Left.NEVER)
RAISES = Leaving(Left.ALWAYS)


def without_jumps(tree: ast.FunctionDef, unset: ast.expr) -> None:
    """Eliminate all jumps of a function except one ``return`` at its end. `unset` is the initial result value."""
    last = tree.body[-1]
    early_returns = [node for node in _own_nodes(tree) if isinstance(node, ast.Return) and node is not last]
    if not early_returns:
        final_return = [tree.body.pop()] if isinstance(last, ast.Return) else []
        tree.body = [*Jumps().block(tree.body, "")[0], *final_return]
        return
    returned = [node.value for node in [*early_returns, *([last] if isinstance(last, ast.Return) else [])]]
    count = _length_of_all(returned)
    body, leaving = Jumps(count).block(tree.body, "")
    if leaving.kind != Left.ALWAYS:  # falling off the end returns None
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
    """The number of values that every ``return`` lists, if it is the same for all."""
    lengths = {
        len(value.elts)
        if isinstance(value, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in value.elts)
        else None
        for value in values
    }
    return lengths.pop() if len(lengths) == 1 else None


def names_of(count: int) -> list[str]:
    """The names of `count` values that are returned together."""
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
    """The nodes of a function, without those of nested functions."""
    nodes: list[ast.AST] = []
    worklist = [*ast.iter_child_nodes(node)]
    while worklist:
        child = worklist.pop()
        nodes.append(child)
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            worklist += ast.iter_child_nodes(child)
    return nodes


class Jumps:
    """Rewrites the blocks of one function, which returns `count` values at a time, or one."""

    def __init__(self, count: int | None = None) -> None:
        self.loops, self.count = 0, count

    def block(self, nodes: Sequence[ast.stmt], loop: str) -> tuple[list[ast.stmt], Leaving]:
        """Statements without jumps, and whether they are left early. `loop` is the number of the enclosing loop."""
        output: list[ast.stmt] = []
        for index, node in enumerate(nodes):
            leaving = self.statement(node, loop, output)
            if leaving.kind == Left.NEVER:
                continue
            rest = nodes[index + 1 :]
            if leaving.kind == Left.ALWAYS or not rest:
                return output, leaving
            body, then = self.block(rest, loop)
            last = output[-1]
            sides: Sequence[Leaving] = getattr(last, SIDES, ())
            if isinstance(last, ast.If) and {Left.ALWAYS, Left.NEVER} == {side.kind for side in sides}:
                # Statements after a branch one side of which always jumps belong to the other side.
                other = last.orelse if sides[0].kind == Left.ALWAYS else last.body
                other += body
                flags = leaving.flags | then.flags
                if then.kind == Left.ALWAYS:
                    return output, Leaving(Left.ALWAYS, flags)
                return output, Leaving(Left.MAYBE, flags) if flags else NO
            output.append(ast.copy_location(guarded(sorted(leaving.flags), body), rest[0]))
            always = then.kind == Left.ALWAYS
            return output, Leaving(Left.ALWAYS if always else Left.MAYBE, leaving.flags | then.flags)
        return output, NO

    def statement(self, node: ast.stmt, loop: str, output: list[ast.stmt]) -> Leaving:
        """Append a statement without its jumps to `made`."""
        match node:
            case ast.Return(value=value):
                target: ast.expr = ast.Name(VALUE, ast.Store())
                if self.count is not None:
                    target = ast.Tuple([ast.Name(name, ast.Store()) for name in names_of(self.count)], ast.Store())
                output.append(ast.copy_location(ast.Assign([target], value or ast.Constant(None)), node))
                output.append(assigned(RETURNED, ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({RETURNED}))
            case ast.Break():
                output.append(assigned(f"_jk_broken{loop}", ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({f"_jk_broken{loop}"}))
            case ast.Continue():
                output.append(assigned(f"_jk_next{loop}", ast.Constant(True)))
                return Leaving(Left.ALWAYS, frozenset({f"_jk_next{loop}"}))
            case ast.Raise():
                output.append(node)
                return RAISES
            case ast.Assert(test=test, msg=text):
                arguments = [text] if text else []
                raised = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), arguments, []))
                output.append(ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), [raised], []), node))
                return NO
            case ast.If(test=test):
                body, yes = self.block(node.body, loop)
                orelse, no = self.block(node.orelse, loop)
                # The other side continues after the branch, and so may bind variables to new arrays.
                if RAISES in (yes, no):
                    if yes != RAISES:
                        test, body, orelse, no = ast.UnaryOp(ast.Not(), test), orelse, body, yes
                    output += [ast.copy_location(ast.If(test, body, []), node), *orelse]
                    return no
                chosen = ast.If(test, body or [ast.Pass()], orelse)
                setattr(chosen, SIDES, (yes, no))
                output.append(ast.copy_location(chosen, node))
                if yes.kind == no.kind:
                    return Leaving(yes.kind, yes.flags | no.flags)
                return Leaving(Left.MAYBE, yes.flags | no.flags)
            case ast.With(items=items):
                body, leaving = self.block(node.body, loop)
                output.append(ast.copy_location(ast.With(items, body), node))
                return leaving
            case ast.Try():
                return self._try(node, loop, output)
            case ast.For() | ast.While():
                return self._loop(node, loop, output)
        output.append(node)
        return NO

    def _try(self, node: ast.Try, loop: str, output: list[ast.stmt]) -> Leaving:
        """A block that exceptions may leave for a handler: flags that it would have set stay false then."""
        body, leaving = self.block(node.body, loop)
        orelse: list[ast.stmt] = []
        if node.orelse and leaving.kind != Left.ALWAYS:
            orelse, then = self.block(node.orelse, loop)
            if leaving.flags:
                orelse = [ast.copy_location(guarded(sorted(leaving.flags), orelse), node)]
            leaving = Leaving(max(leaving.kind, then.kind), leaving.flags | then.flags)
        parts, handlers = [leaving], []
        for handler in node.handlers:
            inside, handler_leaving = self.block(handler.body, loop)
            handlers.append(ast.copy_location(ast.ExceptHandler(handler.type, handler.name, inside), handler))
            parts.append(handler_leaving)
        last, _ = self.block(node.finalbody, loop)
        output.append(ast.copy_location(ast.Try(body or [ast.Pass()], handlers, orelse, last), node))
        flags = frozenset().union(*(part.flags for part in parts))
        if all(part.kind == Left.ALWAYS for part in parts):
            return Leaving(Left.ALWAYS, flags)
        return Leaving(Left.MAYBE, flags) if flags else NO

    def _loop(self, node: ast.For | ast.While, outer_loop: str, output: list[ast.stmt]) -> Leaving:
        self.loops += 1
        number = str(self.loops)
        body, leaving = self.block(node.body, number)
        broken, following = f"_jk_broken{number}", f"_jk_next{number}"
        if following in leaving.flags:
            body.insert(0, assigned(following, ast.Constant(False)))
        stops = sorted(leaving.flags & {broken, RETURNED})
        if broken in leaving.flags:
            output.append(assigned(broken, ast.Constant(False)))
        new: ast.For | ast.While = (
            ast.For(node.target, node.iter, body or [ast.Pass()], [])
            if isinstance(node, ast.For)
            else ast.While(node.test, body or [ast.Pass()], [])
        )
        setattr(new, STOPS, stops)
        output.append(ast.copy_location(new, node))
        returned = leaving.flags & {RETURNED}
        result_leaving = Leaving(Left.MAYBE, frozenset(returned)) if returned else NO
        if node.orelse:
            orelse, then = self.block(node.orelse, outer_loop)  # a `break` here ends the enclosing loop
            guarded_else = guarded(stops, orelse) if stops else ast.If(ast.Constant(True), orelse, [])
            output.append(ast.copy_location(guarded_else, node))
            if then.kind != Left.NEVER:
                result_leaving = Leaving(Left.MAYBE, result_leaving.flags | then.flags)
        return result_leaving
