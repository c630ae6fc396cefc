"""Loop regions of a trace: trace the body until the loop-carried values and their types reach a fixpoint."""

from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import fresh
from jitkernels.compiler.capture.callee_monitor import watched
from jitkernels.compiler.capture.control_flow import carried_trees, loop_phi
from jitkernels.compiler.capture.control_flow.iterables import LoopRange
from jitkernels.compiler.capture.control_flow.loop_state import (
    KEEP,
    UNSET,
    State,
    Unset,
    as_number,
    describe_variable,
    dtype_of,
    is_number,
    is_user_variable,
    join_kinds,
    kind_of,
    may_be_unbound,
    node_of,
    note_maybe_unbound,
)  # fmt: skip
from jitkernels.compiler.capture.control_flow.loop_trace_cache import Facts, Position
from jitkernels.compiler.capture.control_flow.region_transaction import Attempt
from jitkernels.compiler.capture.control_flow.trace_branch import keep, refuse_unsupported, truth
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.ints import (
    branch_refinement,
    hoist_loads,
    induction_symbols,
    intervals,
    zero_trip_guard,
)  # fmt: skip
from jitkernels.compiler.capture.ints.induction_ranges import CarriedInts
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int, plain
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnknownError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import landed
from jitkernels.compiler.ir.regions import Closing, items, parameter
from jitkernels.compiler.ir.symbolic_dims import Number, is_moving

MAX_BODY_TRACES = 12
"""Traces of the body until types must have reached a fixpoint."""


class Loop:
    """One loop. `test` computes the loop condition; `body` takes the induction variable if there is a `loop_range`."""

    def __init__(
        self,
        tracer: Tracer,
        state: State,
        count: LoopRange | None,
        test: Callable[[], Any] | None,
        body: Callable[..., Any],
    ) -> None:
        self.tracer, self.state, self.count = tracer, state, count
        self.test, self.body = test, body
        self.entry_values = state.read()
        self.initial = list(self.entry_values)
        self.is_owner = loop_phi.sole_owners(self.entry_values, self.entry_values)
        self.maybe_unbound = [
            may_be_unbound(tracer, value) and state.names[slot] not in state.guarded
            for slot, value in enumerate(self.entry_values)
        ]
        self.kinds = [kind_of(value) for value in self.initial]
        self.storages: list[Storage] = []
        max_trips = intervals.max_trip_count(tracer, *count) if count is not None else None
        self.ints = CarriedInts(tracer, self.initial, self.kinds, max_trips)
        self.rebound: list[int] = []
        self.depth, self.start, self.iteration_traces = tracer.depth + 1, 0, 0
        self.induction_value: Any = None
        self.lists: list[Any] = []
        self.exit_aliases: dict[int, list[Storage]] = {}
        self.exit_storages: dict[int, Storage] = {}
        self.maybe_replaced: set[int] = set()
        self.position = Position(tracer, state.line, state.names)
        self._recall(self.position.recall())

    def _recall(self, facts: Facts | None) -> None:
        """Start from the loop-carried facts found in an earlier trace of the enclosing loop's body."""
        if facts is None:
            return
        for slot, kind in enumerate(facts.kinds):
            if is_number(kind) and self.kinds[slot] is not None:
                self.kinds[slot] = join_kinds(self.state.names[slot], self.kinds[slot], kind)
                self.ints.bounds.pop(slot, None)
        self.ints.recall(facts.bounds)
        self.storages = list(facts.storages)
        if facts.is_owner == tuple(self.is_owner):
            for slot in facts.rebound:
                if loop_phi.is_array(self.initial[slot]):
                    self._rebind(slot)

    def trace(self) -> None:
        """Build the loop node and bind the variables to its results.

        Raises UnknownError where no node can express the loop.
        """
        try:
            for _ in range(MAX_BODY_TRACES):
                if self._trace_body():
                    return
        except BaseException:
            self.state.put(self.entry_values)
            raise
        self.state.put(self.entry_values)
        raise UnknownError("the types of variables differ between iterations: give each variable one type throughout")

    @property
    def trip_count(self) -> Number | None:
        """The number of iterations; None where the call decides it, or an early exit may end the loop."""
        return None if self.count is None or self.test is not None else self.count.extent

    @property
    def iteration_number(self) -> Any:
        """The number of completed iterations."""
        assert self.count is not None, "the trip count is known"
        return self.count.iteration_number(self.induction_value)

    def _run_iteration(self, arguments: Sequence[Any]) -> None:
        """Trace one iteration."""
        self.iteration_traces += 1
        self.induction_value = arguments[0] if arguments else None
        self.tracer.loops.append(self)
        try:
            watched(self.body, *arguments)
        finally:
            self.tracer.loops.pop()

    def _trace_body(self) -> bool:
        """Trace the body once; return whether the result describes every iteration."""
        tracer, state, count = self.tracer, self.state, self.count
        with Attempt(tracer) as attempt, self.position:
            parameters: list[Node] = []
            arguments: list[Any] = []
            if count is not None:
                parameters.append(parameter("int64", (), 0, induction_symbols.name(tracer)))
                begin, end = (intervals.interval(tracer, limit) for limit in count[:2])
                intervals.note(tracer, parameters[0], intervals.range_interval(begin, end, count.step))
                induction_symbols.note(tracer, parameters[0], count)
                arguments.append(plain(tracer, parameters[0]))
            first = len(parameters)
            values = list(self.initial)
            for slot, kind in enumerate(self.kinds):
                if is_number(kind):
                    symbol = induction_symbols.name(tracer) if kind is int else ""
                    node = parameter(dtype_of(kind), (), len(parameters), symbol)
                    parameters.append(node)
                    values[slot] = as_number(tracer, node, kind)
                    if self.maybe_unbound[slot]:
                        note_maybe_unbound(tracer, node)
                    if kind is int:
                        self.ints.begin(node, slot)
            rebound = len(parameters)
            for slot in self.rebound:
                node, parameters = loop_phi.parameter_of(self.initial[slot], parameters)
                values[slot] = fresh(tracer, node)
                if self.maybe_unbound[slot]:
                    note_maybe_unbound(tracer, node)
            for storage in self.storages:
                parameters.append(parameter(storage.node.dtype, storage.node.shape, len(parameters)))
                attempt.hold(storage, parameters[-1])
            state.put(tuple(values))
            condition = builder.constant(True, "bool") if self.test is None else truth(tracer, watched(self.test))
            condition_checks = list(attempt.checks)
            with branch_refinement.Assumed(tracer, condition, truth=True):
                for carried in parameters[first:]:
                    induction_symbols.note(tracer, carried)
                self.start = attempt.start
                self.lists.clear()
                originals = [self.initial[slot].view.storage for slot in self.rebound]
                for storage in originals:
                    storage.is_read = False
                self._run_iteration(arguments)
            attempt.finish(state.entries, state.line)
            for slot, original in zip(self.rebound, originals, strict=True):
                is_written = attempt.has_written(values[slot].view.storage)
                if self.lists and is_written:
                    raise UnknownError(f"{state.names[slot]} is written to, and an element of a list")
                # The first iteration has the array from before the loop; others may alias it and see the writes:
                # user variables, iterables of loops, and default arguments of functions.
                is_shared = original.is_read and attempt.has_written(original)
                if is_shared or (is_written and (original.is_read or not self.is_owner[slot])):
                    raise self._error(slot, "is written to, and bound to another array later: take a copy before")
            after = state.read()
            if not self._is_fixpoint(attempt, values, after, parameters[first:]):
                return False
            outputs = self._numbers(after)
            starts = [values[i].view.storage for i in self.rebound]
            ends = {i: after[i].view.storage for i in self.rebound}
            self.exit_storages = {i: end for i, end in ends.items() if end.may_be(starts)}
            self.maybe_replaced = {i for i, end in self.exit_storages.items() if end.may_replace(starts)}
            self.exit_aliases = {i: after[i].view.storage.may_aliases for i in self.rebound}
            outputs += loop_phi.outputs(
                [after[i] for i in self.rebound], parameters[rebound : rebound + len(self.rebound)]
            )
            homes = parameters[len(parameters) - len(self.storages) :]
            pairs = zip(self.storages, homes, strict=True)
            outputs += [landed(storage.node, home) for storage, home in pairs]
        checks = attempt.checks[len(condition_checks) :]
        hoisted = self._hoist_loads(attempt, parameters, [*outputs, *checks])
        if attempt.checks:  # see `branches.keep`
            parameters.append(parameter("bool", (), len(parameters)))
        self.position.remember(self._current_facts())
        closing = Closing(parameters, attempt.start)
        closing.hoisted = hoisted
        self._build_node(closing, (condition, condition_checks), (outputs, checks))
        return True

    def _numbers(self, values: Sequence[Any]) -> list[Node]:
        """The nodes of the values that are loop-carried numbers."""
        pairs = zip(values, self.kinds, strict=True)
        return [node_of(self.tracer, value, kind) for value, kind in pairs if is_number(kind)]

    def _current_facts(self) -> Facts:
        rebound, owners = tuple(self.rebound), tuple(self.is_owner)
        return Facts(tuple(self.kinds), self.ints.bounds, tuple(self.storages), rebound, owners)

    def _hoist_loads(self, attempt: Attempt, parameters: list[Node], roots: list[Node]) -> dict[int, Node]:
        """Loop-invariant element reads to hoist out of the loop: no iteration writes these elements."""
        if self.count is None or self.test is not None or not self.storages or not self.tracer.depth:
            return {}
        before = [storage.node for storage in self.storages]
        first = sum(is_number(kind) for kind in self.kinds) + len(self.rebound)
        arrays = [*map(hoist_loads.Carried, parameters[-len(before) :], roots[first:], before)]
        begin = as_int(self.tracer, self.count.begin)
        counting = hoist_loads.Counting(parameters[0], begin, self.count.step > 0)
        return hoist_loads.hoisted(self.tracer, roots, arrays, counting, attempt.start)

    def _is_fixpoint(
        self, attempt: Attempt, values: Sequence[Any], after: Sequence[Any], carried: Sequence[Node]
    ) -> bool:
        known_ids = {id(storage) for storage in self.storages}
        new = [storage for storage in attempt.written() if id(storage) not in known_ids]
        self.storages = [*self.storages, *new]
        known = len(self.rebound)
        for slot, (before, now) in enumerate(zip(self.initial, after, strict=True)):
            is_new = before is UNSET and loop_phi.is_whole(now) and now.view.storage.born > attempt.start
            if is_new and not any(map(is_moving, now.extents)):
                # Nothing reads the value before the first iteration.
                nothing = builder.broadcast_to(builder.constant(0, now.node.dtype), now.extents)
                self.initial[slot], self.kinds[slot] = fresh(self.tracer, nothing), None
            if loop_phi.fits(self.initial[slot], now) and now.view.storage.born > attempt.start:
                self._rebind(slot)
        if len(self.rebound) > known:
            return False
        slots = tuple(self.rebound)
        kinds = []
        numbers = iter(carried)
        is_fixpoint = not new
        for slot, (name, before, now, kind) in enumerate(zip(self.state.names, values, after, self.kinds, strict=True)):
            if kind is None or kind_of(now) is None:
                if self._is_rebound(slot, now):
                    self._rebind(slot)
                elif now is not before:
                    carried_trees.flatten_variable(self.tracer, self.state, slot, (before, now))
                    if before is UNSET and not is_user_variable(name):
                        kinds.append(kind)
                        continue
                    text = f"is another array or object in each iteration: {KEEP}, or assign to its elements"
                    raise self._error(slot, text)
                kinds.append(kind)
                continue
            kinds.append(join_kinds(name, kind, kind_of(now), self.state.line))
            if kind is not Unset:
                node = next(numbers)
                if kind is int:
                    has_checks = bool(attempt.checks)
                    is_fixpoint &= self.ints.is_within(slot, node, now, has_checks=has_checks)
        # The slots of the loop-carried values determine the parameters of an iteration.
        is_fixpoint = is_fixpoint and kinds == self.kinds and slots == tuple(self.rebound)
        self.kinds = kinds
        return is_fixpoint

    def _error(self, slot: int, text: str) -> UnknownError:
        """An error about a variable, with the line on which the loop changes it."""
        name = self.state.names[slot]
        return UnknownError(f"{describe_variable(name)} {text}", line_of(name, self.state.line))

    def _is_rebound(self, slot: int, now: Any) -> bool:
        """Whether a variable holds another array now that the loop can carry: a new one, or another variable's."""
        before = self.initial[slot]
        if not loop_phi.fits(before, now):
            return False
        storage = now.view.storage
        if slot in self.rebound:
            return True
        if now is before:
            return False
        others = [i for i, value in enumerate(self.initial) if loop_phi.has(value, storage)]
        slots = (slot, *others)
        if len(others) != 1 or not all(self.is_owner[i] or self.entry_values[i] is UNSET for i in slots):
            return False
        self._rebind(others[0])
        return True

    def _rebind(self, slot: int) -> None:
        if slot not in self.rebound:
            self.rebound.append(slot)
            storage = self.initial[slot].view.storage
            self.storages = [carried for carried in self.storages if carried is not storage]

    def _build_node(self, closing: Closing, conditions_of: Any, results_of: Any) -> None:
        """Build the loop node; bind variables and storages to its results."""
        tracer = self.tracer
        if self._is_zero_trip():
            self.state.put(self.entry_values)
            return
        (condition, condition_checks), (outputs, checks) = conditions_of, results_of
        is_risky = bool(condition_checks or checks)
        outputs = [*outputs, *([builder.constant(False, "bool")] if is_risky else [])]
        captured = closing.inside([condition, *condition_checks]), closing.inside([*outputs, *checks])
        carried_count = len(outputs)
        options = {
            "counts": self.count is not None,
            "carried": carried_count,
            "condition": closing.graph(captured[0][:1], captured[0][1:]),
            "body": closing.graph(captured[1][:carried_count], captured[1][carried_count:]),
        }
        limits = [as_int(tracer, limit) for limit in self.count] if self.count else []
        carried = self._numbers(self.initial)
        own = [self.is_owner[slot] or self.entry_values[slot] is UNSET for slot in self.rebound]
        carried += loop_phi.begun(tracer, [self.initial[i] for i in self.rebound], own, closing.taken)
        carried += loop_phi.inputs(self.storages, closing.taken)
        carried += [builder.constant(False, "bool")] if is_risky else []
        refuse_unsupported(tracer, options)
        node = tracer.placed(Node("loop", [*limits, *carried, *closing.taken], "int64", (), options))
        results = items(node, outputs)
        if is_risky:
            keep(tracer, results.pop())
        remaining = iter(results)
        values = list(self.initial)
        for slot, kind in enumerate(self.kinds):
            if not is_number(kind):
                continue
            result = next(remaining)
            values[slot] = as_number(tracer, result, kind)
            if self.maybe_unbound[slot] and is_user_variable(self.state.names[slot]):
                self._guard_nonzero_trips(slot)
            if kind is int:
                self.ints.after(slot, result)
        for slot in self.rebound:
            values[slot] = fresh(tracer, next(remaining))
            grown = [growing.array.view.storage for growing in self.lists]
            after = values[slot].view.storage
            after.may_aliases += grown
            for alias in self.exit_aliases.get(slot, ()):
                if all(alias is not storage for storage in grown):
                    after.note_may_alias(alias)
            for i in self.rebound if slot in self.exit_storages else ():
                end, may_replace = self.exit_storages[slot], slot in self.maybe_replaced
                is_owner = self.is_owner[i]
                loop_phi.note_initial_alias(after, end, self.initial[i], is_owner=is_owner, may_replace=may_replace)
            # After zero iterations it has no value, or still aliases an array that others hold.
            if self.maybe_unbound[slot] or not self.is_owner[slot]:
                if not tracer.differentiates:
                    self._guard_nonzero_trips(slot)
                elif not zero_trip_guard.is_decided(self.count):  # derivatives have no NumPy fallback
                    after.note_may_alias(self.initial[slot].view.storage)
        for storage, result in zip(self.storages, remaining, strict=True):
            storage.change(result)
        self.state.put(tuple(values))

    def _guard_nonzero_trips(self, slot: int) -> None:
        name = self.state.names[slot]
        if self.count is None and self.test is not None and not self.tracer.differentiates:
            self.state.put(self.entry_values)
            self.tracer.checks.append(elementwise("logical_not", truth(self.tracer, watched(self.test))))
            return
        zero_trip_guard.expect(self.tracer, self.count, name, line_of(name, self.state.line))

    def _is_zero_trip(self) -> bool:
        """Whether the trip count of this call is zero and that matters, as variables (and arguments) keep their values.

        For derivatives only, which have no NumPy fallback for such a call.
        """
        if not self.tracer.differentiates or self.count is None or not zero_trip_guard.is_decided(self.count):
            return False
        matters = any(not self.is_owner[slot] for slot in self.rebound)
        if not matters and not any(value is UNSET for value in self.entry_values):
            return False
        return not zero_trip_guard.is_there(self.count)
