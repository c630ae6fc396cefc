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
import builtins
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeVar

from jitkernels.compiler.capture.graph_breaks.break_sites import BreakSites, heads
from jitkernels.compiler.capture.graph_breaks.live_variables import (
    NONE,
    DefiniteAssignment,
    LiveVariables,
    captured_by,
    functions_in,
    read_in,
)
from jitkernels.compiler.capture.rewrite.ast_builder import assign, function, load, loads, stores
from jitkernels.compiler.capture.rewrite.definite_assignment import Names, stored_in

CALLED, RESULT, UNBOUND = "_jk_call_", "_jk_result", "_jk_unbound"
"""Names in divided functions: prefix of their parts; results of a part that may leave variables unbound; such one."""
MIN_WEIGHT = 2
"""Operations from which on a run is worth a call: one operation alone gains nothing by code."""
LOOP_WEIGHT, CALL_WEIGHT = 8, 2
MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "reverse",
    "popleft", "appendleft",
})  # fmt: skip
"""Methods that change the length of a container: each length would need code of its own."""
BUILTINS = frozenset(vars(builtins))
"""Names whose calls are cheap in Python."""
Key = tuple[int, int, int, int]
"""Where a run of statements begins and ends: lines and columns."""
Origin = int | tuple[Any, int]
"""What tells a statement of the function from others; pairs for operands that are computed before it."""
ORIGIN = "jk_origin"
"""AST attribute of a statement: its `Origin`."""
Statement = TypeVar("Statement", bound=ast.AST)


class Part(NamedTuple):
    """A run of statements as a function.

    `traced` and `plain`: its definitions for the trace and for Python, which differ where one of the `outputs` may stay
    unbound. `loop`: the line of the loop around it that stays Python, or 0.
    """

    key: Key
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    traced: ast.FunctionDef
    plain: ast.FunctionDef
    loop: int

    @property
    def identity(self) -> Any:
        """What its code depends on."""
        return self.key, self.inputs, self.outputs, ast.dump(self.traced)

    @property
    def lines(self) -> tuple[int, int]:
        """The first and last line."""
        return self.key[0], self.key[2]

    @property
    def weight(self) -> int:
        """An estimate of its operations, see `weight_of`."""
        return weight_of(self.traced.body)

    @property
    def has_loops(self) -> bool:
        """Whether Python would run loops in it."""
        return any(isinstance(node, ast.For | ast.While | ast.comprehension) for node in ast.walk(self.traced))


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
        self.outside = _declared_outside(tree)
        self.imports = _imports(tree)
        self.locals = self.assigned.names - self.outside - {*self.imports}
        self.resized = _resized(tree)
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
            can_join = self._is_whole(node) and not _leaves(node) and _is_atomic(node, protected)
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
        while start > 0 and self._is_whole(nodes[start - 1]) and not _jumps_out(nodes[start - 1]):
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
        part = self._part(nodes, inputs, tuple(outputs), maybe, loop)
        self.parts.append(part)
        call = self._call(part, maybe, is_tail=is_tail)
        unsure = sorted(read - before)
        statements = [*_if_bound(unsure, call, plain)] if unsure else call
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
            if is_closure or escapes or captured & stored_in(parts) or resized & read_in(parts):
                kept.append(getattr(node, ORIGIN))
        self.kept.update(kept)
        return not kept

    def _part(
        self, nodes: Sequence[ast.stmt], inputs: tuple[str, ...], outputs: tuple[str, ...], maybe: Names | tuple[str, ...], loop: int
    ) -> Part:
        key = key_of(nodes)
        result = load(outputs[0]) if len(outputs) == 1 else loads(outputs)
        end: list[ast.stmt] = [ast.Return(result)] if outputs else []
        checks: list[ast.stmt] = [_replace_unbound(name) for name in maybe]
        head = [copied(statement) for name, statement in self.imports.items() if name in read_in(nodes)]

        def defined(last: list[ast.stmt]) -> ast.FunctionDef:
            body = [*head, *(copied(node) for node in nodes)]
            located = [ast.copy_location(one, nodes[-1]) for one in last]
            made = ast.copy_location(function(self.tree.name, inputs, [*body, *located]), nodes[0])
            return ast.fix_missing_locations(made)

        name = CALLED + "_".join(map(str, key))
        traced = defined(end)
        return Part(key, name, inputs, outputs, traced, defined([*checks, *end]) if checks else traced, loop)

    def _call(self, part: Part, maybe: Sequence[str], *, is_tail: bool) -> list[ast.stmt]:
        """The statements that call a part and assign its results."""
        call: ast.expr = ast.Call(load(part.name), [load(name) for name in part.inputs], [])
        if is_tail:
            return [ast.Return(call)]
        if not part.outputs:
            return [ast.Expr(call)]
        names = {name: f"{RESULT}_{name}" if name in maybe else name for name in part.outputs}
        targets: ast.expr = stores(names.values())
        if len(names) == 1:
            targets = ast.Name(*names.values(), ast.Store())
        output: list[ast.stmt] = [ast.Assign([targets], call)]
        for name in maybe:
            is_bound = ast.Compare(load(names[name]), [ast.IsNot()], [load(UNBOUND)])
            output.append(ast.If(is_bound, [assign(name, load(names[name]))], []))
        return output


def _if_bound(names: Sequence[str], call: list[ast.stmt], plain: list[ast.stmt]) -> list[ast.stmt]:
    """Call a part if all variables that it takes are bound; else run its statements, which may not read them."""
    flag = f"{RESULT}_is_bound"
    unbound = ast.ExceptHandler(load("NameError"), None, [assign(flag, False)])
    test = ast.Try([ast.Expr(loads(names)), assign(flag, True)], [unbound], [], [])
    return [test, ast.If(load(flag), call, plain)]


def _replace_unbound(name: str) -> ast.stmt:
    """``try: name; except NameError: name = unbound``: what a part returns for a variable that it has not assigned."""
    handler = ast.ExceptHandler(load("NameError"), None, [assign(name, load(UNBOUND))])
    return ast.Try([ast.Expr(load(name))], [handler], [], [])


def copied(node: Statement) -> Statement:
    """A copy of a tree without what analyses noted at its nodes."""
    fields = {name: _copied_value(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def _copied_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied_value(inner) for inner in value]
    return copied(value) if isinstance(value, ast.AST) else value


def key_of(nodes: Sequence[ast.stmt]) -> Key:
    """Where a run begins and ends."""
    first, last = nodes[0], nodes[-1]
    return first.lineno, first.col_offset, last.end_lineno or last.lineno, last.end_col_offset or 0


def statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in its blocks, but for those of nested functions."""
    yield node
    if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
        yield from inner_statements(node.body)
        yield from inner_statements(getattr(node, "orelse", ()))
        yield from inner_statements(getattr(node, "finalbody", ()))
        for handler in getattr(node, "handlers", ()):
            yield from inner_statements(handler.body)


def inner_statements(nodes: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block, but for those of nested functions."""
    for node in nodes:
        yield from statements_in(node)


def _leaves(node: ast.stmt) -> bool:
    """Whether a statement may end the function or an iteration of a loop around it."""
    return any(isinstance(inner, ast.Return) for inner in statements_in(node)) or _jumps_out(node)


def _jumps_out(node: ast.stmt) -> bool:
    """Whether a statement may break or continue a loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.For | ast.While):
        return any(map(_jumps_out, node.orelse))
    blocks = [*_blocks(node)]
    return any(_jumps_out(inner) for block in blocks for inner in block)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.With | ast.Try):
        yield node.body
        yield getattr(node, "orelse", [])
        yield getattr(node, "finalbody", [])
        for handler in getattr(node, "handlers", ()):
            yield handler.body


def _is_atomic(node: ast.stmt, protected: Names) -> bool:
    """Whether an exception in a statement leaves the protected variables as they were."""
    if not stored_in(node) & protected:
        return True
    match node:
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()) | ast.AugAssign(target=ast.Name()):
            return not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
        case ast.Assign(targets=[ast.Tuple(elts=elements)]):
            return all(isinstance(element, ast.Name) for element in elements)
    return False


def weight_of(nodes: Sequence[ast.AST]) -> int:
    """An estimate of the operations of statements that code may speed up."""
    weight = 0
    for node in nodes:
        for inner in ast.walk(node):
            match inner:
                case ast.For() | ast.While() | ast.ListComp() | ast.GeneratorExp():
                    weight += LOOP_WEIGHT
                case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                    continue
                case ast.Call():
                    weight += CALL_WEIGHT
                case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.AugAssign() | ast.BoolOp() | ast.Slice():
                    weight += 1
    return weight


def _resized(tree: ast.FunctionDef) -> Names:
    """Variables whose lengths change: each would need code of its own where it crosses a break."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in MUTATORS:
                names.add(name)
    return frozenset(names)


def _declared_outside(tree: ast.FunctionDef) -> Names:
    """Names that the function declares global or nonlocal."""
    declared = (node for node in inner_statements(tree.body) if isinstance(node, ast.Global | ast.Nonlocal))
    return frozenset(name for node in declared for name in node.names)


def _imports(tree: ast.FunctionDef) -> dict[str, ast.stmt]:
    """Modules that the function imports before all else that it does: parts import them again."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Import():
                found |= dict.fromkeys(stored_in(node), node)
            case _:
                break
    stores = [inner.id for inner in ast.walk(tree) if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)]
    return {name: node for name, node in found.items() if name not in stores}
