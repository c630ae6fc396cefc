"""Loops of a trace. What is carried from round to round is found by tracing a round until nothing new comes up."""

from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.frontends.flow import facts, first_round, hoisting, moving, ranges, rebinding, structures
from jitkernels.frontends.flow.along import Count
from jitkernels.frontends.flow.branches import keep, refuse_unsupported, truth
from jitkernels.frontends.flow.carried_ints import CarriedInts
from jitkernels.frontends.flow.ints import as_int, plain
from jitkernels.frontends.flow.remembering import Facts, Position
from jitkernels.frontends.flow.state import (
    KEEP,
    UNSET,
    State,
    Unset,
    dtype_of,
    is_number,
    is_of_function,
    joined,
    kind_of,
    may_lack,
    node_of,
    note_lacking,
    number,
    told,
)
from jitkernels.frontends.flow.tracing import Attempt
from jitkernels.frontends.places import line_of
from jitkernels.frontends.storage import Storage
from jitkernels.frontends.traced import fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.watching import watched
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.extents import Number, is_moving
from jitkernels.graph.flows import landed
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import Closing, items, parameter

ROUNDS = 12
"""How often a round is traced at most until all types are known."""


class Loop:
    """One loop. `test` says whether another round begins, `body` takes the count if there is one."""

    def __init__(
        self,
        tracer: Tracer,
        state: State,
        count: Count | None,
        test: Callable[[], Any] | None,
        body: Callable[..., Any],
    ) -> None:
        self.tracer, self.state, self.count = tracer, state, count
        self.test, self.body = test, body
        self.given = state.read()
        self.before = list(self.given)
        self.own = rebinding.own(self.given, self.given)
        self.lacking = [
            may_lack(tracer, one) and state.names[place] not in state.guarded
            for place, one in enumerate(self.given)
        ]
        self.kinds = [kind_of(one) for one in self.before]
        self.storages: list[Storage] = []
        rounds = ranges.most_rounds(tracer, *count) if count is not None else None
        self.ints = CarriedInts(tracer, self.before, self.kinds, rounds)
        self.rebound: list[int] = []
        self.depth, self.start, self.passes = tracer.depth + 1, 0, 0
        self.now: Any = None
        self.lists: list[Any] = []
        self.doubts: dict[int, list[Storage]] = {}
        self.stays: dict[int, Storage] = {}
        self.replaced: set[int] = set()
        self.position = Position(tracer, state.line, state.names)
        self._recall(self.position.recall())

    def _recall(self, facts: Facts | None) -> None:
        """Begin with what was found in a round of the loop around."""
        if facts is None:
            return
        for place, kind in enumerate(facts.kinds):
            if is_number(kind) and self.kinds[place] is not None:
                self.kinds[place] = joined(self.state.names[place], self.kinds[place], kind)
                self.ints.bounds.pop(place, None)
        self.ints.recall(facts.bounds)
        self.storages = list(facts.storages)
        if facts.own == tuple(self.own):
            for place in facts.rebound:
                if rebinding.is_array(self.before[place]):
                    self._rebind(place)

    def trace(self) -> None:
        """Make the node, and give the variables its results. Raises UnknownError where this cannot be."""
        try:
            for _ in range(ROUNDS):
                if self._traced():
                    return
        except BaseException:
            self.state.put(self.given)
            raise
        self.state.put(self.given)
        raise UnknownError(
            "the types of variables differ from round to round: give each the one that it keeps"
        )

    @property
    def rounds(self) -> Number | None:
        """How many rounds there are; None where that is not known, or the loop may be left before."""
        return None if self.count is None or self.test is not None else self.count.extent

    @property
    def rank(self) -> Any:
        """How many rounds there have been."""
        assert self.count is not None, "asked only where rounds are known"
        return self.count.rank(self.now)

    def _run(self, given: Sequence[Any]) -> None:
        """A round."""
        self.passes += 1
        self.now = given[0] if given else None
        self.tracer.loops.append(self)
        try:
            watched(self.body, *given)
        finally:
            self.tracer.loops.pop()

    def _traced(self) -> bool:
        """Trace a round; whether that is what all rounds are."""
        tracer, state, count = self.tracer, self.state, self.count
        with Attempt(tracer) as attempt, self.position:
            parameters: list[Node] = []
            given: list[Any] = []
            if count is not None:
                parameters.append(parameter("int64", (), 0, moving.name(tracer)))
                begin, end = (ranges.interval(tracer, one) for one in count[:2])
                ranges.note(tracer, parameters[0], ranges.counted(begin, end, count.step))
                moving.note(tracer, parameters[0], count)
                given.append(plain(tracer, parameters[0]))
            first = len(parameters)
            values = list(self.before)
            for place, kind in enumerate(self.kinds):
                if is_number(kind):
                    symbol = moving.name(tracer) if kind is int else ""
                    made = parameter(dtype_of(kind), (), len(parameters), symbol)
                    parameters.append(made)
                    values[place] = number(tracer, made, kind)
                    if self.lacking[place]:
                        note_lacking(tracer, made)
                    if kind is int:
                        self.ints.begin(made, place)
            rebound = len(parameters)
            for place in self.rebound:
                made, parameters = rebinding.parameter_of(self.before[place], parameters)
                values[place] = fresh(tracer, made)
                if self.lacking[place]:
                    note_lacking(tracer, made)
            for storage in self.storages:
                parameters.append(parameter(storage.node.dtype, storage.node.shape, len(parameters)))
                attempt.hold(storage, parameters[-1])
            state.put(tuple(values))
            condition = (
                construct.constant(True, "bool") if self.test is None else truth(tracer, watched(self.test))
            )
            asked = list(attempt.checks)
            with facts.Assumed(tracer, condition, truth=True):
                for one in parameters[first:]:
                    moving.note(tracer, one)
                self.start = attempt.start
                self.lists.clear()
                originals = [self.before[place].view.storage for place in self.rebound]
                for storage in originals:
                    storage.is_read = False
                self._run(given)
            attempt.finish(state.entries, state.line)
            for place, original in zip(self.rebound, originals, strict=True):
                is_written = attempt.has_written(values[place].view.storage)
                if self.lists and is_written:
                    raise UnknownError(f"{state.names[place]} is written to, and in a list")
                # The first round has the array from before the loop, which others see being written to:
                # variables that are known, and what loops go along, or functions have as defaults.
                is_shared = original.is_read and attempt.has_written(original)
                if is_shared or (is_written and (original.is_read or not self.own[place])):
                    raise self._error(place, "is written to, and another array after it: take a copy before")
            after = state.read()
            if not self._is_settled(attempt, values, after, parameters[first:]):
                return False
            outputs = [
                node_of(tracer, one, kind)
                for one, kind in zip(after, self.kinds, strict=True)
                if is_number(kind)
            ]
            begun = [values[i].view.storage for i in self.rebound]
            ends = {i: after[i].view.storage for i in self.rebound}
            self.stays = {i: one for i, one in ends.items() if one.may_be(begun)}
            self.replaced = {i for i, one in self.stays.items() if one.may_replace(begun)}
            self.doubts = {i: after[i].view.storage.doubts for i in self.rebound}
            outputs += rebinding.outputs(
                [after[i] for i in self.rebound], parameters[rebound : rebound + len(self.rebound)]
            )
            homes = parameters[len(parameters) - len(self.storages) :]
            outputs += [
                landed(storage.node, home) for storage, home in zip(self.storages, homes, strict=True)
            ]
        checks = attempt.checks[len(asked) :]
        hoisted = self._hoisted(attempt, parameters, [*outputs, *checks])
        if attempt.checks:  # see `branches.keep`
            parameters.append(parameter("bool", (), len(parameters)))
        self.position.remember(self._facts())
        closing = Closing(parameters, attempt.start)
        closing.hoisted = hoisted
        self._made(closing, (condition, asked), (outputs, checks))
        return True

    def _facts(self) -> Facts:
        return Facts(
            tuple(self.kinds), self.ints.bounds, tuple(self.storages), tuple(self.rebound), tuple(self.own)
        )

    def _hoisted(self, attempt: Attempt, parameters: list[Node], roots: list[Node]) -> dict[int, Node]:
        """What is read before the loop, once, as no round writes it."""
        if self.count is None or self.test is not None or not self.storages or not self.tracer.depth:
            return {}
        many = len(self.storages)
        last = sum(is_number(kind) for kind in self.kinds) + len(self.rebound)
        arrays = [
            hoisting.Carried(*one)
            for one in zip(
                parameters[-many:], roots[last : last + many], [s.node for s in self.storages], strict=True
            )
        ]
        begin = as_int(self.tracer, self.count.begin)
        counting = hoisting.Counting(parameters[0], begin, self.count.step > 0)
        return hoisting.hoisted(self.tracer, roots, arrays, counting, attempt.start)

    def _is_settled(
        self, attempt: Attempt, values: Sequence[Any], after: Sequence[Any], carried: Sequence[Node]
    ) -> bool:
        new = [one for one in attempt.written() if not any(one is other for other in self.storages)]
        self.storages = [*self.storages, *new]
        known = len(self.rebound)
        for place, (before, now) in enumerate(zip(self.before, after, strict=True)):
            is_new = before is UNSET and rebinding.is_whole(now) and now.view.storage.born > attempt.start
            if is_new and not any(map(is_moving, now.extents)):
                # What is before the first round is never looked at.
                nothing = construct.broadcast_to(construct.constant(0, now.node.dtype), now.extents)
                self.before[place], self.kinds[place] = fresh(self.tracer, nothing), None
            if rebinding.fits(self.before[place], now) and now.view.storage.born > attempt.start:
                self._rebind(place)
        if len(self.rebound) > known:
            return False
        places = tuple(self.rebound)
        kinds = []
        numbers = iter(carried)
        fits = not new
        for place, (name, before, now, kind) in enumerate(
            zip(self.state.names, values, after, self.kinds, strict=True)
        ):
            if kind is None or kind_of(now) is None:
                if self._is_rebound(place, now):
                    self._rebind(place)
                elif now is not before:
                    structures.taken_apart(self.tracer, self.state, place, (before, now))
                    if before is UNSET and not is_of_function(name):
                        kinds.append(kind)
                        continue
                    raise self._error(
                        place, f"is another array or object in each round: {KEEP}, or assign to its elements"
                    )
                kinds.append(kind)
                continue
            kinds.append(joined(name, kind, kind_of(now), self.state.line))
            if kind is not Unset:
                made = next(numbers)
                if kind is int:
                    fits = self.ints.is_within(place, made, now, has_checks=bool(attempt.checks)) and fits
        # By the places of what is carried a round has its inputs.
        fits = fits and kinds == self.kinds and places == tuple(self.rebound)
        self.kinds = kinds
        return fits

    def _error(self, place: int, text: str) -> UnknownError:
        """What is told of a variable, with the line on which the loop changes it."""
        name = self.state.names[place]
        return UnknownError(f"{told(name)} {text}", line_of(name, self.state.line))

    def _is_rebound(self, place: int, now: Any) -> bool:
        """Whether a variable has another array now that can be carried: one made anew, or another variable's."""
        before = self.before[place]
        if not rebinding.fits(before, now):
            return False
        storage = now.view.storage
        if place in self.rebound:
            return True
        if now is before:
            return False
        others = [i for i, one in enumerate(self.before) if rebinding.has(one, storage)]
        if len(others) != 1 or not all(self.own[i] or self.given[i] is UNSET for i in (place, *others)):
            return False
        self._rebind(others[0])
        return True

    def _rebind(self, place: int) -> None:
        if place not in self.rebound:
            self.rebound.append(place)
            storage = self.before[place].view.storage
            self.storages = [one for one in self.storages if one is not storage]

    def _made(self, closing: Closing, asked: Any, done: Any) -> None:
        """The node of the loop; variables and storages have its results from here on."""
        tracer = self.tracer
        if self._has_no_round():
            self.state.put(self.given)
            return
        (condition, conditions), (outputs, checks) = asked, done
        is_risky = bool(conditions or checks)
        outputs = [*outputs, *([construct.constant(False, "bool")] if is_risky else [])]
        closed = closing.inside([condition, *conditions]), closing.inside([*outputs, *checks])
        count = len(outputs)
        options = {
            "counts": self.count is not None,
            "carried": count,
            "condition": closing.graph(closed[0][:1], closed[0][1:]),
            "body": closing.graph(closed[1][:count], closed[1][count:]),
        }
        limits = [as_int(tracer, one) for one in self.count] if self.count else []
        carried = [
            node_of(tracer, one, kind)
            for one, kind in zip(self.before, self.kinds, strict=True)
            if is_number(kind)
        ]
        own = [self.own[place] or self.given[place] is UNSET for place in self.rebound]
        carried += rebinding.begun(tracer, [self.before[i] for i in self.rebound], own, closing.taken)
        carried += rebinding.inputs(self.storages, closing.taken)
        carried += [construct.constant(False, "bool")] if is_risky else []
        refuse_unsupported(tracer, options)
        node = tracer.placed(Node("loop", [*limits, *carried, *closing.taken], "int64", (), options))
        results = items(node, outputs)
        if is_risky:
            keep(tracer, results.pop())
        found = iter(results)
        values = list(self.before)
        for place, kind in enumerate(self.kinds):
            if not is_number(kind):
                continue
            made = next(found)
            values[place] = number(tracer, made, kind)
            if self.lacking[place] and is_of_function(self.state.names[place]):
                self._expect_round(place)
            if kind is int:
                self.ints.after(place, made)
        for place in self.rebound:
            values[place] = fresh(tracer, next(found))
            values[place].view.storage.doubts += [one.array.view.storage for one in self.lists]
            grown = [one.array.view.storage for one in self.lists]
            for other in self.doubts.get(place, ()):
                if all(other is not one for one in grown):
                    values[place].view.storage.doubt(other)
            for other_place in self.rebound if place in self.stays else ():
                # What it, or another one that it had by turns, was before the loop: it is not written to.
                before, end, now = self.before[other_place].view.storage, self.stays[place], values[place]
                now.view.storage.choices.append(before)
                if not self.own[other_place] and end.choices:
                    is_whole = place in self.replaced and self.before[other_place].view.parent is None
                    now.view.storage.doubt(before, is_whole=is_whole)
                elif not self.own[other_place]:
                    now.view.storage.doubts.append(end)
                    before.doubts.append(end)
            # Without a round it has no value, or is still an array that others have as well.
            if self.lacking[place] or not self.own[place]:
                if not tracer.differentiates:
                    self._expect_round(place)
                elif not first_round.is_decided(self.count):  # there is no NumPy to leave it to
                    values[place].view.storage.doubt(self.before[place].view.storage)
        for storage, made in zip(self.storages, found, strict=True):
            storage.change(made)
        self.state.put(tuple(values))

    def _expect_round(self, place: int) -> None:
        name = self.state.names[place]
        if self.count is None and self.test is not None and not self.tracer.differentiates:
            self.state.put(self.given)
            self.tracer.checks.append(elementwise("logical_not", truth(self.tracer, watched(self.test))))
            return
        first_round.expect(self.tracer, self.count, name, line_of(name, self.state.line))

    def _has_no_round(self) -> bool:
        """Whether there is none in this call, and that matters: variables stay what they were, arguments too.

        Of derivatives alone, for which there is no NumPy to leave such a call to.
        """
        if not self.tracer.differentiates or self.count is None or not first_round.is_decided(self.count):
            return False
        matters = any(not self.own[place] for place in self.rebound)
        if not matters and not any(one is UNSET for one in self.given):
            return False
        return not first_round.is_there(self.count)
