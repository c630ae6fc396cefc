"""Loop regions of a trace: trace the body until the loop-carried values and their types reach a fixpoint."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import fresh
from jitkernels.compiler.capture.callee_monitor import watched
from jitkernels.compiler.capture.control_flow import carried_trees, loop_phi, loop_state
from jitkernels.compiler.capture.control_flow.iterables import LoopRange
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State, Unset, is_number, kind_of
from jitkernels.compiler.capture.control_flow.loop_trace_cache import LoopPosition, LoopSignature
from jitkernels.compiler.capture.control_flow.region_transaction import RegionRoots, RegionTransaction
from jitkernels.compiler.capture.control_flow.trace_branch import keep_alive, reject_unsupported_regions, truth
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.ints import branch_refinement, hoist_loads, induction_symbols, intervals
from jitkernels.compiler.capture.ints.induction_ranges import CarriedInts
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import copy_to_home
from jitkernels.compiler.ir.regions import RegionBuilder, items, parameter
from jitkernels.compiler.ir.symbolic_dims import Number, is_loop_variant

MAX_BODY_TRACES = 12
"""Traces of the body until types must have reached a fixpoint."""


class Parameters(NamedTuple):
    """The parameters of an iteration: the induction variable, if any, loop-carried numbers, rebound arrays, storages.

    `values` are those of the variables at the start of the iteration.
    """

    induction: list[Node]
    numbers: list[Node]
    rebound: list[Node]
    storages: list[Node]
    values: list[Any]

    @property
    def carried(self) -> list[Node]:
        return [*self.numbers, *self.rebound, *self.storages]


class Loop:
    """One loop. `test` computes the loop condition; `body` takes the induction variable if there is a `loop_range`."""

    def __init__(
        self,
        tracer: Tracer,
        state: State,
        loop_range: LoopRange | None,
        test: Callable[[], Any] | None,
        body: Callable[..., Any],
    ) -> None:
        self.tracer, self.state, self.loop_range = tracer, state, loop_range
        self.test, self.body = test, body
        self.entry_values = state.read()
        self.initial = list(self.entry_values)
        self.is_owner = loop_phi.sole_owners(self.entry_values, self.entry_values)
        self.maybe_unbound = [
            loop_state.may_be_unbound(tracer, value) and state.names[slot] not in state.guarded
            for slot, value in enumerate(self.entry_values)
        ]
        self.kinds = [kind_of(value) for value in self.initial]
        self.storages: list[Storage] = []
        max_trips = intervals.max_trip_count(tracer, *loop_range) if loop_range is not None else None
        self.ints = CarriedInts(tracer, self.initial, self.kinds, max_trips)
        self.rebound: list[int] = []
        self.depth, self.start, self.iteration_traces = tracer.depth + 1, 0, 0
        self.induction_value: Any = None
        self.lists: list[Any] = []
        self.exits: dict[int, loop_phi.IterationEnd] = {}
        self.position = LoopPosition(tracer, state.line, state.names)
        self._recall(self.position.recall())

    def _recall(self, signature: LoopSignature | None) -> None:
        """Start from what the loop carried in an earlier trace of the enclosing loop's body."""
        if signature is None:
            return
        for slot, kind in enumerate(signature.kinds):
            if is_number(kind) and self.kinds[slot] is not None:
                self.kinds[slot] = loop_state.join_kinds(self.state.names[slot], self.kinds[slot], kind)
                self.ints.bounds.pop(slot, None)
        self.ints.recall(signature.bounds)
        self.storages = list(signature.storages)
        if signature.is_owner == tuple(self.is_owner):
            for slot in signature.rebound:
                if loop_phi.is_array(self.initial[slot]):
                    self._rebind(slot)

    def trace(self) -> None:
        """Build the loop node and bind the variables to its results. UnsupportedError where that is impossible."""
        try:
            for kept in (self.tracer.operations for _ in range(MAX_BODY_TRACES)):
                if self._trace_body():
                    return
                self.tracer.discard_operations(kept)
        except BaseException:
            self.state.put(self.entry_values)
            raise
        self.state.put(self.entry_values)
        raise UnsupportedError(
            "the types of variables differ between iterations: give each variable one type throughout"
        )

    @property
    def trip_count(self) -> Number | None:
        """The number of iterations; None where the call decides it, or an early exit may end the loop."""
        return None if self.loop_range is None or self.test is not None else self.loop_range.extent

    @property
    def iteration_number(self) -> Any:
        """The number of completed iterations."""
        assert self.loop_range is not None, "the trip count is known"
        return self.loop_range.iteration_number(self.induction_value)

    def _trace_body(self) -> bool:
        """Trace the body once; return whether the result describes every iteration."""
        tracer, state = self.tracer, self.state
        with RegionTransaction(tracer) as transaction, self.position:
            parameters = self._bind_parameters(transaction)
            condition = builder.constant(True, "bool") if self.test is None else truth(tracer, watched(self.test))
            condition_checks = list(transaction.checks)
            with branch_refinement.Assumed(tracer, condition, truth=True):
                for carried in parameters.carried:
                    induction_symbols.note(tracer, carried)
                self.start = transaction.start
                self.lists.clear()
                originals = [self.initial[slot].view.storage for slot in self.rebound]
                for storage in originals:
                    storage.is_read = False
                self._run_iteration(parameters.induction)
            transaction.finish(state.entries, state.line)
            self._reject_shared_writes(transaction, parameters.values, originals)
            after = state.read()
            if not self._is_fixpoint(transaction, parameters, after):
                return False
            outputs = self._outputs(parameters, after)
        checks = transaction.checks[len(condition_checks) :]
        hoisted = self._hoist_loads(transaction, parameters, [*outputs, *checks])
        nodes = [*parameters.induction, *parameters.carried]
        if transaction.checks:  # see `trace_branch.keep_alive`
            nodes.append(parameter("bool", (), len(nodes)))
        self.position.remember(
            LoopSignature(
                tuple(self.kinds), self.ints.bounds, tuple(self.storages), tuple(self.rebound), tuple(self.is_owner)
            )
        )
        region_builder = RegionBuilder(nodes, transaction.start)
        region_builder.hoisted = hoisted | hoist_loads.invariant_tests([*outputs, *checks], transaction.start)
        self._build_node(region_builder, RegionRoots([condition], condition_checks), RegionRoots(outputs, checks))
        return True

    def _bind_parameters(self, transaction: RegionTransaction) -> Parameters:
        """Bind the variables and storages to the parameters of an iteration."""
        tracer, indices = self.tracer, itertools.count()
        induction, numbers, values = [], [], list(self.initial)
        if self.loop_range is not None:
            induction.append(parameter("int64", (), next(indices), induction_symbols.new_name(tracer)))
            begin, end = (intervals.interval(tracer, limit) for limit in self.loop_range[:2])
            intervals.note(tracer, induction[0], intervals.range_interval(begin, end, self.loop_range.step))
            induction_symbols.note(tracer, induction[0], self.loop_range)
        for slot, kind in enumerate(self.kinds):
            if is_number(kind):
                symbol = induction_symbols.new_name(tracer) if kind is int else ""
                node = parameter(loop_state.dtype_of(kind), (), next(indices), symbol)
                numbers.append(node)
                values[slot] = loop_state.as_number(tracer, node, kind)
                if self.maybe_unbound[slot]:
                    tracer.unset.add(node)
                if kind is int:
                    self.ints.begin(node, slot)
        rebound = []
        for slot in self.rebound:
            node = parameter(self.initial[slot].node.dtype, self.initial[slot].extents, next(indices))
            rebound.append(node)
            values[slot] = fresh(tracer, node)
            if self.maybe_unbound[slot]:
                tracer.unset.add(node)
        storages = [parameter(storage.node.dtype, storage.node.shape, next(indices)) for storage in self.storages]
        for storage, node in zip(self.storages, storages, strict=True):
            transaction.hold(storage, node)
        self.state.put(tuple(values))
        return Parameters(induction, numbers, rebound, storages, values)

    def _run_iteration(self, induction: Sequence[Node]) -> None:
        arguments = [loop_state.as_number(self.tracer, node, int) for node in induction]
        self.iteration_traces += 1
        self.induction_value = arguments[0] if arguments else None
        self.tracer.loops.append(self)
        try:
            watched(self.body, *arguments)
        finally:
            self.tracer.loops.pop()

    def _reject_shared_writes(
        self, transaction: RegionTransaction, values: Sequence[Any], originals: Sequence[Storage]
    ) -> None:
        """Raise UnsupportedError where an iteration writes to a rebound array that others may hold.

        The first iteration has the array from before the loop; others may alias it and see the writes: user variables,
        iterables of loops, and default arguments of functions.
        """
        for slot, original in zip(self.rebound, originals, strict=True):
            is_written = values[slot].view.storage in transaction.writes
            if self.lists and is_written:
                raise UnsupportedError(f"{self.state.names[slot]} is written to, and an element of a list")
            is_shared = original.is_read and original in transaction.writes
            if is_shared or (is_written and (original.is_read or not self.is_owner[slot])):
                raise self._error(slot, "is written to, and bound to another array later: take a copy before")

    def _outputs(self, parameters: Parameters, after: Sequence[Any]) -> list[Node]:
        """The values carried into the next iteration."""
        outputs = self._numbers(after)
        starts = [parameters.values[slot].view.storage for slot in self.rebound]
        self.exits |= {slot: loop_phi.IterationEnd.of(after[slot].view.storage, starts) for slot in self.rebound}
        outputs += loop_phi.outputs([after[slot] for slot in self.rebound], parameters.rebound)
        pairs = zip(self.storages, parameters.storages, strict=True)
        return outputs + [copy_to_home(storage.node, home) for storage, home in pairs]

    def _numbers(self, values: Sequence[Any]) -> list[Node]:
        """The nodes of the values that are loop-carried numbers."""
        pairs = zip(values, self.kinds, strict=True)
        return [loop_state.node_of(self.tracer, value, kind) for value, kind in pairs if is_number(kind)]

    def _hoist_loads(
        self, transaction: RegionTransaction, parameters: Parameters, roots: list[Node]
    ) -> dict[Node, Node]:
        """Loop-invariant element reads to hoist out of the loop: no iteration writes these elements."""
        if self.loop_range is None or self.test is not None or not self.storages or not self.tracer.depth:
            return {}
        initial = [storage.node for storage in self.storages]
        outputs = roots[len(parameters.numbers) + len(parameters.rebound) :]
        arrays = [*map(hoist_loads.CarriedArray, parameters.storages, outputs, initial)]
        begin = as_int(self.tracer, self.loop_range.begin)
        induction = hoist_loads.InductionVariable(parameters.induction[0], begin, self.loop_range.step > 0)
        return hoist_loads.hoist(self.tracer, roots, arrays, induction, transaction.start)

    def _is_fixpoint(self, transaction: RegionTransaction, parameters: Parameters, after: Sequence[Any]) -> bool:
        new = [storage for storage in transaction.outer_writes() if storage not in self.storages]
        self.storages = [*self.storages, *new]
        known = len(self.rebound)
        for slot, (before, now) in enumerate(zip(self.initial, after, strict=True)):
            is_new = before is UNSET and loop_phi.is_whole(now) and now.view.storage.born > transaction.start
            if is_new and not any(map(is_loop_variant, now.extents)):
                # Nothing reads the value before the first iteration.
                nothing = builder.broadcast_to(builder.constant(0, now.node.dtype), now.extents)
                self.initial[slot], self.kinds[slot] = fresh(self.tracer, nothing), None
            if loop_phi.can_carry(self.initial[slot], now) and now.view.storage.born > transaction.start:
                self._rebind(slot)
        if len(self.rebound) > known:
            return False
        slots = tuple(self.rebound)
        kinds = []
        numbers = iter(parameters.numbers)
        is_fixpoint = not new
        for slot, (before, now, kind) in enumerate(zip(parameters.values, after, self.kinds, strict=True)):
            if kind is None or kind_of(now) is None:
                self._join_objects(slot, before, now)
                kinds.append(kind)
                continue
            kinds.append(loop_state.join_kinds(self.state.names[slot], kind, kind_of(now), self.state.line))
            if kind is not Unset:
                node = next(numbers)
                if kind is int:
                    is_fixpoint &= self.ints.is_within(slot, node, now, has_checks=bool(transaction.checks))
        # The slots of the loop-carried values determine the parameters of an iteration.
        is_fixpoint = is_fixpoint and kinds == self.kinds and slots == tuple(self.rebound)
        self.kinds = kinds
        return is_fixpoint

    def _join_objects(self, slot: int, before: Any, now: Any) -> None:
        """Raise where a variable holds another object after an iteration: FormError or UnsupportedError."""
        if self._is_rebound(slot, now):
            self._rebind(slot)
        elif now is not before:
            carried_trees.flatten_variable(self.tracer, self.state, slot, (before, now))
            if before is not UNSET or loop_state.is_user_variable(self.state.names[slot]):
                text = f"is another array or object in each iteration: {loop_state.KEEP}, or assign to its elements"
                raise self._error(slot, text)

    def _error(self, slot: int, text: str) -> UnsupportedError:
        """An error about a variable, with the line on which the loop changes it."""
        name = self.state.names[slot]
        return UnsupportedError(f"{loop_state.describe_variable(name)} {text}", line_of(name, self.state.line))

    def _is_rebound(self, slot: int, now: Any) -> bool:
        """Whether a variable holds another array now that the loop can carry: a new one, or another variable's."""
        before = self.initial[slot]
        if not loop_phi.can_carry(before, now):
            return False
        storage = now.view.storage
        if slot in self.rebound:
            return True
        if now is before:
            return False
        others = [i for i, value in enumerate(self.initial) if loop_phi.holds(value, storage)]
        if len(others) != 1 or not all(self._is_replaceable(i) for i in (slot, *others)):
            return False
        self._rebind(others[0])
        return True

    def _is_replaceable(self, slot: int) -> bool:
        """Whether nothing else holds the initial array of a variable."""
        return self.is_owner[slot] or self.entry_values[slot] is UNSET

    def _rebind(self, slot: int) -> None:
        if slot not in self.rebound:
            self.rebound.append(slot)
            storage = self.initial[slot].view.storage
            self.storages = [carried for carried in self.storages if carried is not storage]

    def _build_node(self, region_builder: RegionBuilder, condition: RegionRoots, body: RegionRoots) -> None:
        """Build the loop node; bind variables and storages to its results."""
        tracer = self.tracer
        if self._is_zero_trip():
            self.state.put(self.entry_values)
            return
        never = [builder.constant(False, "bool")] if condition.checks or body.checks else []
        body = RegionRoots([*body.outputs, *never], body.checks)
        regions = condition.inside(region_builder), body.inside(region_builder)
        options = {
            "counts": self.loop_range is not None,
            "carried": len(body.outputs),
            "condition": region_builder.graph(*regions[0]),
            "body": region_builder.graph(*regions[1]),
        }
        limits = [as_int(tracer, limit) for limit in self.loop_range] if self.loop_range else []
        carried = self._numbers(self.initial)
        owned = [self._is_replaceable(slot) for slot in self.rebound]
        rebound = [self.initial[slot] for slot in self.rebound]
        carried += loop_phi.rebound_inputs(tracer, rebound, owned, region_builder.captured)
        carried += loop_phi.inputs(self.storages, region_builder.captured)
        reject_unsupported_regions(tracer, options)
        node = tracer.placed(Node("loop", [*limits, *carried, *never, *region_builder.captured], "int64", (), options))
        results = items(node, body.outputs)
        if never:
            keep_alive(tracer, results.pop())
        self._bind_results(iter(results))

    def _bind_results(self, results: Any) -> None:
        """Bind variables and storages to the results of the loop."""
        values = list(self.initial)
        for slot, kind in enumerate(self.kinds):
            if not is_number(kind):
                continue
            result = next(results)
            values[slot] = loop_state.as_number(self.tracer, result, kind)
            if self.maybe_unbound[slot] and loop_state.is_user_variable(self.state.names[slot]):
                self._guard_nonempty(slot)
            if kind is int:
                self.ints.after(slot, result)
        for slot in self.rebound:
            values[slot] = fresh(self.tracer, next(results))
            self._note_aliases(slot, values[slot].view.storage)
        for storage, result in zip(self.storages, results, strict=True):
            storage.change(result)
        self.state.put(tuple(values))

    def _note_aliases(self, slot: int, result: Storage) -> None:
        """Record what the array that a variable holds after the loop may alias."""
        list_storages = [growing.rows.array.view.storage for growing in self.lists if growing.rows is not None]
        result.may_aliases += list_storages
        initial = [(self.initial[i], self.is_owner[i]) for i in self.rebound]
        self.exits[slot].note_aliases(result, initial, list_storages)
        # After zero iterations it has no value, or still aliases an array that others hold.
        if self.maybe_unbound[slot] or not self.is_owner[slot]:
            if not self.tracer.differentiates:
                self._guard_nonempty(slot)
            elif self.loop_range is None or not self.loop_range.is_decided:  # derivatives have no NumPy fallback
                result.note_may_alias(self.initial[slot].view.storage)

    def _guard_nonempty(self, slot: int) -> None:
        """Guard that the loop runs: otherwise a variable is unbound, and Python raises."""
        name = self.state.names[slot]
        if self.loop_range is not None:
            self.loop_range.guard_nonempty(self.tracer)
        elif self.test is not None and not self.tracer.differentiates:
            self.state.put(self.entry_values)
            self.tracer.checks.append(elementwise("logical_not", truth(self.tracer, watched(self.test))))
        else:
            line = line_of(name, self.state.line)
            raise UnsupportedError(f"{name} may have no value after a loop: give it one before", line)

    def _is_zero_trip(self) -> bool:
        """Whether the trip count of this call is zero and that matters, as variables (and arguments) keep their values.

        For derivatives only, which have no NumPy fallback for such a call.
        """
        if not self.tracer.differentiates or self.loop_range is None or not self.loop_range.is_decided:
            return False
        matters = any(not self.is_owner[slot] for slot in self.rebound)
        if not matters and not any(value is UNSET for value in self.entry_values):
            return False
        return not self.loop_range.is_nonempty()
