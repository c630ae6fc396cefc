"""Partition a function at its break sites: runs of statements between them become parts, the rest stays Python.

::

    def f(x, log):                       def f(x, log):
        y = np.exp(x) * 2                    y, z = part_0(x)
        z = y + x
        log.info("done")                     log.info("done")
        return (y - z).sum()                 return part_1(y, z)

Loops and branches around a break stay Python, with the runs inside them as parts; whole loops are part of a run. A part
takes the variables that it reads before it assigns them, and returns those that are read behind it.
"""

import ast
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from jitkernels.compiler.capture.graph_breaks.break_sites import BreakSites, heads
from jitkernels.compiler.capture.graph_breaks.live_variables import (
    NONE,
    DefiniteAssignment,
    LiveVariables,
    captured_by,
    functions_in,
    read_in,
)
from jitkernels.compiler.capture.graph_breaks.part import Interface, Part, call_of, if_bound, part_of
from jitkernels.compiler.capture.graph_breaks.statements import (
    MIN_WEIGHT,
    ORIGIN,
    Key,
    Origin,
    copied,
    declared_outside,
    has_loop,
    imports,
    inner_statements,
    is_atomic,
    jumps_out,
    key_of,
    leaves,
    resized,
    statements_in,
    weight_of,
)
from jitkernels.compiler.capture.rewrite.definite_assignment import Names, deleted_in, stored_in


class Partition:
    """The statements of a function divided at `sites`; runs in `inlined` stay Python.

    `body`: its new statements; `parts`: what they call; `broken`: the lines of the statements that Python runs because
    they cannot be compiled, each with the line of the loop around it or 0. `kept`: what else Python has to run.
    """

    def __init__(
        self, tree: ast.FunctionDef, sites: BreakSites, inlined: AbstractSet[Key], kept: AbstractSet[Origin]
    ) -> None:
        self.tree, self.sites, self.inlined, self.kept = tree, sites, inlined, {*kept}
        self.functions = [*functions_in(tree.body)]
        captured = NONE.union(*map(captured_by, self.functions))
        self.live, self.assigned = LiveVariables(tree.body, captured), DefiniteAssignment(tree)
        self.outside = declared_outside(tree)
        self.imports = imports(tree)
        self.locals = self.assigned.names - self.outside - {*self.imports}
        self.resized = resized(tree)
        self.parts: list[Part] = []
        self.broken: dict[int, int] = {}
        self.body = self._block(tree.body, 0, is_end=True)

    def _is_kept(self, node: ast.stmt) -> bool:
        """Whether Python runs a statement, or the head of one."""
        return getattr(node, ORIGIN) in self.kept or self.sites.hits(node) or bool(self.outside & stored_in(node))

    def _is_whole(self, node: ast.stmt) -> bool:
        """Whether all of a statement may be part of a run."""
        return not any(self._is_kept(inner) for inner in statements_in(node))

    def _block(self, nodes: Sequence[ast.stmt], loop: int, *, is_end: bool = False) -> list[ast.stmt]:
        """The statements of a block divided; `is_end`: the function ends behind it."""
        start = self._tail(nodes, is_end=is_end)
        output: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for node in nodes[:start]:
            protected = self._protected(node)
            may_leave = not protected and has_loop([node]) and not jumps_out(node)
            can_join = self._is_whole(node) and (may_leave or not leaves(node)) and is_atomic(node, protected)
            if run and (not can_join or protected & stored_in(run)):
                output += self._run(run, loop)
                run = []
            if can_join:
                run.append(node)
            else:
                output += self._open(node, loop)
        output += self._run(run, loop)
        return output + (self._run(nodes[start:], loop, is_tail=True) if start < len(nodes) else [])

    def _tail(self, nodes: Sequence[ast.stmt], *, is_end: bool) -> int:
        """Where the run begins with which a block ends, if the function ends with it."""
        start = len(nodes)
        if not nodes or not (is_end or isinstance(nodes[-1], ast.Return)):
            return start
        while start > 0 and self._is_whole(nodes[start - 1]) and not jumps_out(nodes[start - 1]):
            start -= 1
        return start if start == len(nodes) or not self.live.handled[id(nodes[-1])] else len(nodes)

    def _protected(self, node: ast.stmt) -> Names:
        """The variables that a handler around a statement may read: no exception must lose what was assigned before."""
        return self.live.handled[id(node)] & self.locals

    def _open(self, node: ast.stmt, loop: int) -> list[ast.stmt]:
        """A statement that Python runs, with its blocks divided."""
        if self.sites.hits(node) and not isinstance(node, ast.Global | ast.Nonlocal):
            self.broken.setdefault(node.lineno, loop)
        if not isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
            return [copied(node)]
        inside = node.lineno if isinstance(node, ast.For | ast.While) else loop
        result = copied(node)
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(result, field, self._block(getattr(node, field), inside))
        if isinstance(node, ast.Try) and isinstance(result, ast.Try):
            for handler, other in zip(node.handlers, result.handlers, strict=True):
                other.body = self._block(handler.body, inside)
        return [result]

    def _run(self, nodes: Sequence[ast.stmt], loop: int, *, is_tail: bool = False) -> list[ast.stmt]:
        """The call of a part in place of statements, or the statements where no call is worth it."""
        if not nodes:
            return []
        plain: list[ast.stmt] = [copied(node) for node in nodes]
        before = self.assigned.before.get(id(nodes[0]))
        after = NONE if is_tail else self.live.after[id(nodes[-1])]
        key = key_of(nodes)
        if before is None or key in self.inlined or weight_of(nodes) < MIN_WEIGHT or not self._is_movable(nodes, after):
            return plain
        read = LiveVariables(nodes, NONE).before & self.locals
        stored = stored_in(nodes) & self.locals
        outputs = sorted(stored & after)
        assigned = self.assigned.after(nodes, NONE)
        kept = frozenset(outputs) - assigned
        maybe = tuple(name for name in outputs if name in kept - before)
        inputs = tuple(sorted(read | (kept & before)))
        across = Interface(inputs, tuple(outputs), maybe, loop, is_tail)
        part = part_of(self.tree.name, nodes, across, self.imports)
        self.parts.append(part)
        call = call_of(part, across)
        unsure = sorted(read - before)
        statements = [*if_bound(unsure, call, plain)] if unsure else call
        return [ast.fix_missing_locations(ast.copy_location(one, nodes[0])) for one in statements]

    def _is_movable(self, nodes: Sequence[ast.stmt], behind: Names) -> bool:
        """Whether a run may become a function; statements that keep it from that are `kept`, for the next attempt."""
        own = {id(node) for node in functions_in(nodes)}
        captured = NONE.union(*(captured_by(node) for node in self.functions if id(node) not in own))
        resized = LiveVariables(nodes, NONE).before & self.resized
        kept = []
        for node in inner_statements(nodes):
            parts = heads(node)
            is_closure = isinstance(node, ast.FunctionDef) and node.name in behind
            escapes = any(inner is getattr(node, "value", None) for inner in functions_in(parts))
            is_unbound = isinstance(node, ast.Delete | ast.Try) and deleted_in([node]) & behind
            if is_closure or escapes or is_unbound or captured & stored_in(parts) or resized & read_in(parts):
                kept.append(getattr(node, ORIGIN))
        self.kept.update(kept)
        return not kept
