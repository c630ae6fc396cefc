"""Branch regions of a trace: trace both sides and select what either changes by a branch node (phi)."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import watched, without_monitor
from jitkernels.compiler.capture.control_flow import carried_trees, loop_state
from jitkernels.compiler.capture.control_flow.branch_phi import ArrayPhi, BranchMismatchError, merge_arrays
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State, Unset, as_number, is_number
from jitkernels.compiler.capture.control_flow.region_transaction import RegionRoots, RegionTransaction
from jitkernels.compiler.capture.control_flow.tagged_union import Undecided
from jitkernels.compiler.capture.ints import branch_refinement, intervals
from jitkernels.compiler.capture.rewrite.eliminate_jumps import RETURNED, VALUE
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import copy_to_home, unsupported
from jitkernels.compiler.ir.regions import RegionBuilder, items
from jitkernels.core import signal_exceptions


def truth(tracer: Tracer, value: Any) -> Node:
    if isinstance(value, Undecided) and not value.is_decided:
        return value.truth(lambda other: truth(tracer, other))
    if type(value) is not Traced:
        return builder.constant(bool(value), "bool")
    if value.ndim and not all(symbolic_dims.same(extent, 1) for extent in value.extents):
        raise UnsupportedError("the truth of an array with more than one element is ambiguous")
    node = value.node
    if node.ndim:
        node = builder.view(node, ((0, ()),) * node.ndim, ())
    return builder.cast(node, "bool")


def as_bool(tracer: Tracer, value: Any) -> Any:
    """The truth of a value as a Python bool."""
    if type(value) is not Traced and is_decided(value):
        return bool(value)
    return as_number(tracer, truth(tracer, value), bool)


def is_decided(value: Any) -> bool:
    """Whether tracing decides the truth of a value, or guards fix it for the specialization."""
    if isinstance(value, Undecided):
        return value.is_decided
    return type(value) is not Traced or value.tracer.is_known(value.node)


class TracedSide:
    """One traced side of a branch: the values of variables at its end, its writes and its runtime guards.

    `written`: the storages from before the branch that it writes to, with their values at its end.
    """

    def __init__(self, tracer: Tracer, state: State, run: Callable[[], Any], condition: Node, *, is_yes: bool) -> None:
        self.transaction = RegionTransaction(tracer)
        self.raises = False
        before = state.read()
        try:
            with self.transaction, branch_refinement.Assumed(tracer, condition, truth=is_yes):
                self._run(run)
                self.transaction.finish(state.entries, state.line)
                self.values = before if self.raises else state.read()
                self.arrays = {id(array): array.node for array in carried_trees.arrays_in(self.values)}
                self.written = {storage: storage.node for storage in self.transaction.outer_writes()}
        finally:
            state.put(before)

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            watched(run)
        except UnsupportedError:
            raise
        except BaseException as error:  # `SystemExit` too: the fallback raises it where control reaches this
            if signal_exceptions.end_calls(error):
                raise
            self.raises = True
            self.transaction.checks[:] = [builder.constant(True, "bool")]

    def array(self, value: Any, phi: ArrayPhi) -> Node:
        """The array of a variable at the end."""
        return phi.zeros() if self.raises or value is UNSET else builder.copy(self.arrays[id(value)])


@without_monitor
def trace_if(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()`` where only the compiled code knows the test."""
    condition = truth(tracer, test)
    sides = [TracedSide(tracer, state, run, condition, is_yes=run is yes) for run in (yes, no)]
    _Branch(tracer, condition, sides, state).build()


def select_value(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    result = loop_state.Variable("_jk_selected")
    trace_if(tracer, test, lambda: result.set(yes()), lambda: result.set(no()), result)
    return result.value


class _Branch:
    """A branch whose sides have been traced.

    `kinds`: by slot, the kind of a number, an `ArrayPhi`, `Unset`, or None for a variable with one value, that of
    `invariant` or the one from before.
    """

    def __init__(self, tracer: Tracer, condition: Node, sides: Sequence[TracedSide], state: State) -> None:
        self.tracer, self.condition, self.sides = tracer, condition, sides
        self.start = min(side.transaction.start for side in sides)
        self.alive = [side for side in sides if not side.raises] or sides
        self.state = self._flatten_differing(state)
        self.before = self.state.read()
        self.invariant: dict[int, Any] = {}
        self.kinds = [self._join_slot(slot) for slot in range(len(self.state.names))]
        self._drop_dead_arrays()
        written = list(dict.fromkeys(storage for side in sides for storage in side.written))
        self.numbers = [storage for storage in written if not storage.node.ndim]
        self.storages = [storage for storage in written if storage.node.ndim]

    def _flatten_differing(self, state: State) -> State:
        """The state, and the values of the sides, with pytrees flattened where the sides differ."""
        before = list(state.read())
        forms = {}
        for slot, value in enumerate(before):
            values = [side.values[slot] for side in self.alive]
            form = None if all(other is value for other in values) else carried_trees.common_form(values)
            if form is not None:
                forms[slot] = form
                if carried_trees.leaves_of(value, form) is None:
                    before[slot] = UNSET
        if not forms:
            return state
        base = State(state.names, lambda: tuple(before), state.put, state.line, state.guarded)
        flattened = carried_trees.FlattenedState(self.tracer, base, forms)
        for side in self.alive:
            side.values = flattened.leaves(side.values)
        return flattened

    def _join_slot(self, slot: int) -> Any:
        """The kind of a variable after the branch: unset if a side leaves it unbound and the variable is read there."""
        values, name, line = [side.values[slot] for side in self.alive], self.state.names[slot], self.state.line
        if all(value is values[0] for value in values) and _is_from_before(values[0], self.start):
            self.invariant[slot] = values[0]
            return None
        is_unchanged = all(value is self.before[slot] for value in values)
        if is_unchanged:
            return None
        kinds, joins = [loop_state.kind_of(value) for value in values], self.state.may_join(slot)
        if Unset in kinds and not joins:
            return Unset
        if None in kinds:
            try:
                return merge_arrays(name, values, joins=joins)
            except BranchMismatchError as error:
                error.line = line_of(name, line)
                raise
        kind = kinds[0]
        for other in kinds[1:]:
            kind = loop_state.join_kinds(name, kind, other, line)
        return kind

    @property
    def _arrays(self) -> list[tuple[int, ArrayPhi]]:
        return [(slot, kind) for slot, kind in enumerate(self.kinds) if type(kind) is ArrayPhi]

    def _drop_dead_arrays(self) -> None:
        """Unbind arrays on sides that return: nothing reads the variables of a function that has returned."""
        names = self.state.names
        if RETURNED not in names:
            return
        returned = names.index(RETURNED)
        has_returned = [side.values[returned] is True for side in self.alive]
        if all(has_returned):
            return
        for slot, phi in self._arrays:
            if not names[slot].startswith(VALUE):
                self.kinds[slot] = phi.without(has_returned)

    def _note_shared_arrays(self, results: Mapping[int, Traced]) -> None:
        """Record which results may be the same array, as on a side that binds two variables to one: none is written."""
        for (slot, phi), (other_slot, other_phi) in itertools.combinations(self._arrays, 2):
            if any(
                type(a) is type(b) is Traced and a.view.storage is b.view.storage
                for a, b in zip(phi.values, other_phi.values, strict=True)
            ):
                results[slot].view.storage.note_may_alias(results[other_slot].view.storage)

    def build(self) -> None:
        """Build the branch node; bind variables and storages to its results."""
        region_builder = RegionBuilder((), self.start)
        never = [builder.constant(False, "bool")] if any(side.transaction.checks for side in self.sides) else []
        regions = [self._roots(side, never).inside(region_builder) for side in self.sides]
        prototypes = regions[0].outputs
        if not prototypes:
            self.state.put(tuple(self.invariant.get(slot, value) for slot, value in enumerate(self.before)))
            return
        captured = [region_builder.capture(phi.zeros()) for _, phi in self._arrays]
        captured += region_builder.inside([storage.node for storage in self.storages])
        bases = [parameter.options["index"] for parameter in captured]
        numbers = len(prototypes) - len(bases) - len(never)
        options: dict[str, Any] = {"yes": region_builder.graph(*regions[0]), "no": region_builder.graph(*regions[1])}
        options["bases"] = (*[-1] * numbers, *bases, *[-1] * len(never))
        reject_unsupported_regions(self.tracer, options)
        results = items(Node("branch", (self.condition, *region_builder.captured), "int64", (), options), prototypes)
        if never:
            keep_alive(self.tracer, results.pop())
        self._bind_results(iter(results))

    def _roots(self, side: TracedSide, never: list[Node]) -> RegionRoots:
        """The results of a side: numbers, arrays without dimensions, arrays, storages, and whether it bails out."""
        roots = [
            builder.constant(0, loop_state.dtype_of(kind))
            if side.raises
            else loop_state.node_of(self.tracer, side.values[slot], kind)
            for slot, kind in enumerate(self.kinds)
            if is_number(kind)
        ]
        roots += [side.written.get(storage, storage.node) for storage in self.numbers]
        number = self.alive.index(side) if side in self.alive else None
        roots += [side.array(UNSET if number is None else phi.values[number], phi) for _, phi in self._arrays]
        for storage in self.storages:
            end = side.written.get(storage)
            roots.append(storage.node if end is None else copy_to_home(end, storage.node))
        return RegionRoots([*roots, *never], side.transaction.checks)

    def _bind_results(self, results: Iterator[Node]) -> None:
        """Bind variables and storages to the results of the branch."""
        after = [self.invariant.get(slot, value) for slot, value in enumerate(self.before)]
        for slot, kind in enumerate(self.kinds):
            if kind is Unset:
                after[slot] = UNSET
            elif is_number(kind):
                result = next(results)
                after[slot] = as_number(self.tracer, result, kind)
                if kind is int:
                    self._note_interval(result, [side.values[slot] for side in self.alive])
        for storage in self.numbers:
            storage.change(next(results))
        for slot, phi in self._arrays:
            after[slot] = phi.result(self.tracer, next(results), self.before, self.start)
        self._note_shared_arrays({slot: after[slot] for slot, _ in self._arrays})
        for slot, value in enumerate(after):
            if type(value) is Traced and any(
                loop_state.may_be_unbound(self.tracer, side.values[slot]) for side in self.alive
            ):
                self.tracer.unset.add(value.node)
        for storage, result in zip(self.storages, results, strict=True):
            storage.change(result)
        self.state.put(tuple(after))

    def _note_interval(self, item: Node, values: Sequence[Any]) -> None:
        """Record the interval of an int after the branch."""
        known = [value for value in values if value is not UNSET]
        bounds = [intervals.interval(self.tracer, value) for value in known]
        if bounds and None not in bounds:
            intervals.note(self.tracer, item, intervals.hull(bound for bound in bounds if bound is not None))
        steps = [self.tracer.recurrences.get(value.node) if type(value) is Traced else None for value in known]
        intervals.note_selection(self.tracer, item, steps, bounds)


def keep_alive(tracer: Tracer, item: Node) -> None:
    """Keep a loop or branch that may bail out alive even if nothing reads its results.

    `item` is its last result, which is never true.
    """
    (tracer.checks if tracer.depth else tracer.bailout_results).append(item)


def reject_unsupported_regions(tracer: Tracer, options: dict[str, Any]) -> None:
    """Raise UnsupportedError for regions that code generation does not support."""
    for option in options.values():
        operation = unsupported(option) if isinstance(option, Graph) else ""
        if operation:
            raise UnsupportedError(f"{operation} in a loop or branch")
    tracer.has_flows = True


def _is_from_before(value: Any, start: int) -> bool:
    """Whether the value on all sides is an array from before the branch, None, or a string."""
    if type(value) is Traced and value.ndim:
        return value.view.storage.born < start
    return value is None or type(value) is str
