"""Branch regions of a trace: trace both sides and select what either changes by a branch node (phi)."""

from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import watched, without_monitor
from jitkernels.compiler.capture.control_flow import carried_trees
from jitkernels.compiler.capture.control_flow.branch_phi import BranchMismatchError, Sides, merge_arrays
from jitkernels.compiler.capture.control_flow.loop_state import (
    UNSET,
    State,
    Unset,
    as_number,
    dtype_of,
    is_number,
    join_kinds,
    kind_of,
    may_be_unbound,
    merged_interval,
    node_of,
    note_maybe_unbound,
)
from jitkernels.compiler.capture.control_flow.region_transaction import Attempt
from jitkernels.compiler.capture.control_flow.tagged_union import Undecided
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.ints import branch_refinement, intervals
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import landed, unsupported
from jitkernels.compiler.ir.regions import Closing, items
from jitkernels.core import signal_exceptions


def truth(tracer: Tracer, value: Any) -> Node:
    """The truth of a value as a node."""
    if isinstance(value, Undecided) and not value.is_decided:
        return value.truth(lambda other: truth(tracer, other))
    if type(value) is not Traced:
        return builder.constant(bool(value), "bool")
    if value.ndim and not all(symbolic_dims.same(extent, 1) for extent in value.extents):
        raise UnknownError("the truth of an array with more than one element is ambiguous")
    node = value.node
    if node.ndim:
        node = builder.view(node, ((0, ()),) * node.ndim, ())
    return builder.cast(node, "bool")


def is_decided(value: Any) -> bool:
    """Whether tracing decides the truth of a value, or guards fix it for the specialization."""
    if isinstance(value, Undecided):
        return value.is_decided
    return type(value) is not Traced or value.tracer.is_known(value.node)


class Side:
    """One traced side of a branch: the values of variables at its end, its writes and its runtime guards."""

    def __init__(self, tracer: Tracer, state: State, run: Callable[[], Any], condition: Node, *, is_yes: bool) -> None:
        self.attempt = Attempt(tracer)
        self.raises = False
        self.arrays: dict[int, Node] = {}
        before = state.read()
        try:
            with self.attempt, branch_refinement.Assumed(tracer, condition, truth=is_yes):
                self._run(run)
                self.attempt.finish(state.entries, state.line)
                self.values = before if self.raises else state.read()
                self.arrays = {id(array): array.node for array in carried_trees.arrays_in(self.values)}
                self.nodes = {id(storage): storage.node for storage in self.attempt.written()}
        finally:
            state.put(before)

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            watched(run)
        except UnknownError:
            raise
        except BaseException as error:  # `SystemExit` too: the fallback raises it where control reaches this
            if signal_exceptions.end_calls(error):
                raise
            self.raises = True
            self.attempt.checks[:] = [builder.constant(True, "bool")]

    def storages(self) -> list[Storage]:
        return self.attempt.written()


@without_monitor
def choose(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()`` where only the compiled code knows the test."""
    condition = truth(tracer, test)
    sides = [Side(tracer, state, run, condition, is_yes=run is yes) for run in (yes, no)]
    start = min(side.attempt.start for side in sides)
    alive = [side for side in sides if not side.raises] or sides
    state = _flatten_differing(tracer, state, alive)
    before = state.read()
    kinds = []
    same: dict[int, Any] = {}
    for slot, name in enumerate(state.names):
        values = [side.values[slot] for side in alive]
        if all(value is values[0] for value in values) and _is_from_before(values[0], start):
            same[slot] = values[0]
        kinds.append(
            None
            if slot in same or all(value is before[slot] for value in values)
            else _kind(name, values, before[slot], state.line, joins=state.may_join(slot))
        )
    _refuse_shared(kinds)
    storages: dict[int, Storage] = {}
    for side in sides:
        storages |= {id(storage): storage for storage in side.storages()}
    if any(not storage.node.ndim for storage in storages.values()):
        raise UnknownError("an array without dimensions is changed in a branch")
    closing = Closing((), start)
    is_risky = any(side.attempt.checks for side in sides)
    regions = []
    for side in sides:
        roots = [
            builder.constant(0, dtype_of(kind)) if side.raises else node_of(tracer, side.values[slot], kind)
            for slot, kind in enumerate(kinds)
            if is_number(kind)
        ]
        roots += [
            kind.nothing()
            if side.raises or side.values[slot] is UNSET
            else builder.copy(side.arrays[id(side.values[slot])])
            for slot, kind in enumerate(kinds)
            if type(kind) is Sides
        ]
        roots += [
            landed(side.nodes[key], storage.node) if key in side.nodes else storage.node
            for key, storage in storages.items()
        ]
        roots += [builder.constant(False, "bool")] if is_risky else []
        regions.append((closing.inside(roots), closing.inside(side.attempt.checks)))
    prototypes = regions[0][0]
    after = [same.get(slot, value) for slot, value in enumerate(before)]
    if not prototypes:
        state.put(tuple(after))
        return
    captured = [closing.captured(kind.nothing()) for kind in kinds if type(kind) is Sides]
    captured += closing.inside([storage.node for storage in storages.values()])
    options: dict[str, Any] = {
        name: closing.graph(*region) for name, region in zip(("yes", "no"), regions, strict=True)
    }
    base_indices = [parameter.options["index"] for parameter in captured]
    options["bases"] = (*[-1] * (len(prototypes) - len(base_indices) - is_risky), *base_indices, *[-1] * is_risky)
    refuse_unsupported(tracer, options)
    node = Node("branch", (condition, *closing.taken), "int64", (), options)
    results = items(node, prototypes)
    if is_risky:
        keep(tracer, results.pop())
    remaining = iter(results)
    array_slots: list[tuple[int, Sides]] = []
    for slot, kind in enumerate(kinds):
        if kind is Unset:
            after[slot] = UNSET
        elif type(kind) is Sides:
            array_slots.append((slot, kind))
        elif kind is not None:
            result = next(remaining)
            after[slot] = as_number(tracer, result, kind)
            if kind is int:
                _bounds(tracer, result, [side.values[slot] for side in alive])
    for slot, merged_arrays in array_slots:
        after[slot] = merged_arrays.after(tracer, next(remaining), before, start)
    for slot, value in enumerate(after):
        if type(value) is Traced and any(may_be_unbound(tracer, side.values[slot]) for side in alive):
            note_maybe_unbound(tracer, value.node)
    for storage, result in zip(storages.values(), remaining, strict=True):
        storage.change(result)
    state.put(tuple(after))


def _flatten_differing(tracer: Tracer, state: State, sides: Sequence[Side]) -> State:
    """The state, and the values of the sides, with pytrees flattened where the sides differ."""
    before = state.read()
    forms = {}
    for slot in range(len(before)):
        side_values = [side.values[slot] for side in sides]
        form = None if all(value is before[slot] for value in side_values) else carried_trees.common_form(side_values)
        if form is None:
            continue
        forms[slot] = form
        if carried_trees.leaves_of(before[slot], form) is None:
            before = (*before[:slot], UNSET, *before[slot + 1 :])
    if not forms:
        return state
    flattened = carried_trees.FlattenedState(
        tracer, State(state.names, lambda: before, state.put, state.line, state.guarded), forms
    )
    for side in sides:
        side.values = flattened.leaves(side.values)
    return flattened


def keep(tracer: Tracer, item: Node) -> None:
    """Keep a loop or branch that may bail out alive even if nothing reads its results.

    `item` is its last result, which is never true.
    """
    if tracer.depth:
        tracer.checks.append(item)
    else:
        tracer.bailout_results.append(item)


def refuse_unsupported(tracer: Tracer, options: dict[str, Any]) -> None:
    """Raise UnknownError for regions that code generation does not support."""
    for option in options.values():
        operation = unsupported(option) if isinstance(option, Graph) else ""
        if operation:
            raise UnknownError(f"{operation} in a loop or branch")
    tracer.has_flows = True


def _kind(name: str, values: list[Any], before: Any, line: int, *, joins: bool) -> Any:
    """The kind of a variable after a branch: unset if one side leaves it unbound and the variable is read there."""
    kinds = [kind_of(value) for value in values]
    if Unset in kinds and not joins:
        return Unset
    if None in kinds and any(value is not before for value in values):
        try:
            return merge_arrays(name, values, joins=joins)
        except BranchMismatchError as error:
            error.line = line_of(name, line)
            raise
    kind = kinds[0]
    for other in kinds[1:]:
        kind = join_kinds(name, kind, other, line)
    return kind


def _is_from_before(value: Any, start: int) -> bool:
    """Whether the value on all sides is an array from before the branch, None, or a string."""
    if type(value) is Traced and value.ndim:
        return value.view.storage.born < start
    return value is None or type(value) is str


def _refuse_shared(kinds: list[Any]) -> None:
    """Raise UnknownError where two variables hold the same array on a side: a write to one would change the other."""
    chosen = [kind.values for kind in kinds if type(kind) is Sides]
    for side in zip(*chosen, strict=False):
        storages = [value.view.storage for value in side if type(value) is Traced]
        if len({id(value) for value in storages}) < len(storages):
            raise UnknownError("two variables hold the same array on a side of a branch")


def _bounds(tracer: Tracer, item: Node, values: list[Any]) -> None:
    """Record the interval of an int after a branch."""
    intervals.note(tracer, item, merged_interval(tracer, values))
    known = [value for value in values if value is not UNSET]
    moves = [intervals.move_of(tracer, value.node) if type(value) is Traced else None for value in known]
    intervals.either(tracer, item, moves, [intervals.interval(tracer, value) for value in known])


def value_of(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    result: list[Any] = [UNSET]

    def put(values: tuple[Any, ...]) -> None:
        result[0] = values[0]

    state = State(("_jk_found",), lambda: (result[0],), put, 0)
    choose(tracer, test, lambda: put((yes(),)), lambda: put((no(),)), state)
    return result[0]


def as_bool(tracer: Tracer, value: Any) -> Any:
    """The truth of a value as a Python bool."""
    if type(value) is not Traced and is_decided(value):
        return bool(value)
    return as_number(tracer, truth(tracer, value), bool)
