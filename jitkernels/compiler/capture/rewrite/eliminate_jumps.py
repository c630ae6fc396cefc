"""Eliminate ``return``, ``break`` and ``continue``: boolean flags guard the statements that follow a jump.

After ``if c: break`` the following statements move into the ``else`` branch, without a flag test. Elsewhere they move
into an ``if`` that tests the flags. Loops test the flags that end them before each iteration (`STOPS`).
"""

import ast
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from jitkernels.compiler.capture.rewrite.ast_builder import assign, hook, load, loads, negate, stores

RETURNED, VALUE = "_jk_returned", "_jk_value"
RETURNED_TO_FINALLY = "_jk_returned_to_finally"
"""The flag in functions with `finally`, which reads variables after a `return`; RETURNED in others."""
STOPS = "jk_stops"
"""AST attribute of a loop: the names of the flags that end it."""
SIDES = "jk_sides"
"""AST attribute of a branch: how each side is left."""


class Jumps(IntEnum):
    """Whether a jump leaves a block before its end."""

    NEVER, MAYBE, ALWAYS = range(3)


class BlockExit(NamedTuple):
    """Whether a jump leaves a block, and which flags are set then."""

    jumps: Jumps
    flags: frozenset[str] = frozenset()


FALLS_THROUGH = BlockExit(Jumps.NEVER)
RAISES = BlockExit(Jumps.ALWAYS)


def _may_jump(flags: frozenset[str]) -> BlockExit:
    return BlockExit(Jumps.MAYBE, flags) if flags else FALLS_THROUGH


def eliminate_jumps(tree: ast.FunctionDef) -> None:
    """Eliminate all jumps of a function except one ``return`` at its end."""
    last = tree.body[-1]
    early_returns = [node for node in _own_nodes(tree) if isinstance(node, ast.Return) and node is not last]
    if not early_returns:
        final_return = [tree.body.pop()] if isinstance(last, ast.Return) else []
        tree.body = [*JumpEliminator().block(tree.body, "")[0], *final_return]
        return
    returned = [node.value for node in [*early_returns, *([last] if isinstance(last, ast.Return) else [])]]
    count = _length_of_all(returned)
    has_finally = any(isinstance(node, ast.Try) and node.finalbody for node in _own_nodes(tree))
    flag = RETURNED_TO_FINALLY if has_finally else RETURNED
    body, end = JumpEliminator(count, flag).block(tree.body, "")
    if end.jumps != Jumps.ALWAYS:  # falling off the end returns None
        if count is not None:
            body, end = JumpEliminator(None, flag).block(tree.body, "")
        body.append(ast.copy_location(guard([flag], [assign(VALUE, None)]), last))
        count = None
    names = [VALUE] if count is None else names_of(count)
    tree.body = [
        assign(flag, False),
        *(assign(name, hook("UNSET")) for name in names),
        *body,
        ast.Return(load(VALUE) if count is None else loads(names)),
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


def guard(flags: Iterable[str], body: list[ast.stmt]) -> ast.stmt:
    """``if not (a or b): body``."""
    return ast.If(none_of(flags), body, [])


def none_of(flags: Iterable[str]) -> ast.expr:
    """``not (a or b)``."""
    names = [load(flag) for flag in sorted(flags)]
    return negate(names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names))


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


class JumpEliminator:
    """Rewrites the blocks of one function, which returns `count` values at a time, or one.

    `returned` is the name of the flag that it has returned.
    """

    def __init__(self, count: int | None = None, returned: str = RETURNED) -> None:
        self.loops, self.count, self.returned = 0, count, returned

    def block(self, nodes: Sequence[ast.stmt], loop: str) -> tuple[list[ast.stmt], BlockExit]:
        """Statements without jumps, and whether they are left early. `loop` is the number of the enclosing loop."""
        output: list[ast.stmt] = []
        for index, node in enumerate(nodes):
            end = self.statement(node, loop, output)
            if end.jumps == Jumps.NEVER:
                continue
            rest = nodes[index + 1 :]
            if end.jumps == Jumps.ALWAYS or not rest:
                return output, end
            body, then = self.block(rest, loop)
            flags, last = end.flags | then.flags, output[-1]
            sides: Sequence[BlockExit] = getattr(last, SIDES, ())
            if isinstance(last, ast.If) and {Jumps.ALWAYS, Jumps.NEVER} == {side.jumps for side in sides}:
                # Statements after a branch one side of which always jumps belong to the other side.
                other = last.orelse if sides[0].jumps == Jumps.ALWAYS else last.body
                other += body
                return output, BlockExit(Jumps.ALWAYS, flags) if then.jumps == Jumps.ALWAYS else _may_jump(flags)
            output.append(ast.copy_location(guard(end.flags, body), rest[0]))
            return output, BlockExit(Jumps.ALWAYS if then.jumps == Jumps.ALWAYS else Jumps.MAYBE, flags)
        return output, FALLS_THROUGH

    def statement(self, node: ast.stmt, loop: str, output: list[ast.stmt]) -> BlockExit:
        """Append a statement without its jumps to `output`."""
        match node:
            case ast.Return(value=value):
                target = ast.Name(VALUE, ast.Store()) if self.count is None else stores(names_of(self.count))
                output.append(ast.copy_location(ast.Assign([target], value or ast.Constant(None)), node))
                return self._jump(self.returned, output)
            case ast.Break():
                return self._jump(f"_jk_broken{loop}", output)
            case ast.Continue():
                return self._jump(f"_jk_next{loop}", output)
            case ast.Raise():
                output.append(node)
                return RAISES
            case ast.Assert(test=test, msg=text):
                raised = ast.Raise(ast.Call(load("AssertionError"), [text] if text else [], []))
                output.append(ast.copy_location(ast.If(negate(test), [raised], []), node))
                return FALLS_THROUGH
            case ast.If():
                return self._branch(node, loop, output)
            case ast.With(items=items):
                body, end = self.block(node.body, loop)
                output.append(ast.copy_location(ast.With(items, body), node))
                return end
            case ast.Try():
                return self._try(node, loop, output)
            case ast.For() | ast.While():
                return self._loop(node, loop, output)
        output.append(node)
        return FALLS_THROUGH

    def _jump(self, flag: str, output: list[ast.stmt]) -> BlockExit:
        output.append(assign(flag, True))
        return BlockExit(Jumps.ALWAYS, frozenset({flag}))

    def _branch(self, node: ast.If, loop: str, output: list[ast.stmt]) -> BlockExit:
        test = node.test
        (body, yes), (orelse, no) = self.block(node.body, loop), self.block(node.orelse, loop)
        # The other side continues after the branch, and so may bind variables to new arrays.
        if RAISES in (yes, no):
            if yes != RAISES:
                test, body, orelse, no = negate(test), orelse, body, yes
            output += [ast.copy_location(ast.If(test, body, []), node), *orelse]
            return no
        branch = ast.If(test, body or [ast.Pass()], orelse)
        setattr(branch, SIDES, (yes, no))
        output.append(ast.copy_location(branch, node))
        return BlockExit(yes.jumps if yes.jumps == no.jumps else Jumps.MAYBE, yes.flags | no.flags)

    def _try(self, node: ast.Try, loop: str, output: list[ast.stmt]) -> BlockExit:
        """A block that exceptions may leave for a handler: flags that it would have set stay false then."""
        body, end = self.block(node.body, loop)
        orelse: list[ast.stmt] = []
        if node.orelse and end.jumps != Jumps.ALWAYS:
            orelse, then = self.block(node.orelse, loop)
            if end.flags:
                orelse = [ast.copy_location(guard(end.flags, orelse), node)]
            end = BlockExit(max(end.jumps, then.jumps), end.flags | then.flags)
        parts, handlers = [end], []
        for handler in node.handlers:
            inside, handler_end = self.block(handler.body, loop)
            handlers.append(ast.copy_location(ast.ExceptHandler(handler.type, handler.name, inside), handler))
            parts.append(handler_end)
        last, _ = self.block(node.finalbody, loop)
        output.append(ast.copy_location(ast.Try(body or [ast.Pass()], handlers, orelse, last), node))
        flags = frozenset().union(*(part.flags for part in parts))
        is_always = all(part.jumps == Jumps.ALWAYS for part in parts)
        return BlockExit(Jumps.ALWAYS, flags) if is_always else _may_jump(flags)

    def _loop(self, node: ast.For | ast.While, outer_loop: str, output: list[ast.stmt]) -> BlockExit:
        self.loops += 1
        number = str(self.loops)
        body, end = self.block(node.body, number)
        broken, following = f"_jk_broken{number}", f"_jk_next{number}"
        if following in end.flags:
            body.insert(0, assign(following, False))
        stops = sorted(end.flags & {broken, self.returned})
        if broken in end.flags:
            output.append(assign(broken, False))
        body = body or [ast.Pass()]
        new: ast.stmt = ast.While(node.test, body, []) if isinstance(node, ast.While) else node
        if isinstance(node, ast.For):
            new = ast.For(node.target, node.iter, body, [])
        setattr(new, STOPS, stops)
        output.append(ast.copy_location(new, node))
        flags = end.flags & {self.returned}
        if node.orelse:
            orelse, then = self.block(node.orelse, outer_loop)  # a `break` here ends the enclosing loop
            guarded_else = guard(stops, orelse) if stops else ast.If(ast.Constant(True), orelse, [])
            output.append(ast.copy_location(guarded_else, node))
            flags |= then.flags  # none where it raises
        return _may_jump(flags)
