"""Branches of a trace: both sides are traced, and what either changes is what the node chooses."""

from collections.abc import Callable, Sequence
from typing import Any

from jitkernels import handlers
from jitkernels.frontends.flow import facts, ranges, structures
from jitkernels.frontends.flow.alternatives import Undecided
from jitkernels.frontends.flow.sides import Sides, SidesError, sides_of
from jitkernels.frontends.flow.state import (
    UNSET,
    State,
    Unset,
    dtype_of,
    is_number,
    joined,
    kind_of,
    may_lack,
    merged,
    node_of,
    note_lacking,
    number,
)
from jitkernels.frontends.flow.tracing import Attempt
from jitkernels.frontends.places import line_of
from jitkernels.frontends.storage import Storage
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.watching import resting, watched
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.flows import landed, unsupported
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.regions import Closing, items


def truth(tracer: Tracer, value: Any) -> Node:
    """Whether a value is true, as a node."""
    if isinstance(value, Undecided) and not value.is_decided:
        return value.truth(lambda other: truth(tracer, other))
    if type(value) is not Traced:
        return construct.constant(bool(value), "bool")
    if value.ndim and not all(extents.same(one, 1) for one in value.extents):
        raise UnknownError("the truth of an array with more than one element is ambiguous")
    node = value.node
    if node.ndim:
        node = construct.view(node, ((0, ()),) * node.ndim, ())
    return construct.cast(node, "bool")


def is_decided(value: Any) -> bool:
    """Whether the trace knows if a value is true, or takes it to be so for all calls that it serves."""
    if isinstance(value, Undecided):
        return value.is_decided
    return type(value) is not Traced or value.tracer.is_known(value.node)


class Side:
    """One side of a branch, traced: the values of the variables behind it, what it writes and checks."""

    def __init__(
        self, tracer: Tracer, state: State, run: Callable[[], Any], condition: Node, *, is_yes: bool
    ) -> None:
        self.attempt = Attempt(tracer)
        self.raises = False
        self.arrays: dict[int, Node] = {}
        before = state.read()
        try:
            with self.attempt, facts.Assumed(tracer, condition, truth=is_yes):
                self._run(run)
                self.attempt.finish(state.entries, state.line)
                self.values = before if self.raises else state.read()
                self.arrays = {id(one): one.node for one in structures.arrays_in(self.values)}
                self.nodes = {id(one): one.node for one in self.attempt.written()}
        finally:
            state.put(before)

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            watched(run)
        except UnknownError:
            raise
        except BaseException as error:  # `SystemExit`, too: the plain function raises it where it comes here
            if handlers.end_calls(error):
                raise
            self.raises = True
            self.attempt.checks[:] = [construct.constant(True, "bool")]

    def storages(self) -> list[Storage]:
        return self.attempt.written()


@resting
def choose(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()`` where only the running code knows."""
    condition = truth(tracer, test)
    sides = [Side(tracer, state, run, condition, is_yes=run is yes) for run in (yes, no)]
    start = min(side.attempt.start for side in sides)
    alive = [side for side in sides if not side.raises] or sides
    state = _taken_apart(tracer, state, alive)
    before = state.read()
    kinds = []
    same: dict[int, Any] = {}
    for place, name in enumerate(state.names):
        found = [side.values[place] for side in alive]
        if all(one is found[0] for one in found) and _is_from_before(found[0], start):
            same[place] = found[0]
        kinds.append(
            None
            if place in same or all(one is before[place] for one in found)
            else _kind(name, found, before[place], state.line, joins=state.may_join(place))
        )
    _refuse_shared(kinds)
    storages: dict[int, Storage] = {}
    for side in sides:
        storages |= {id(one): one for one in side.storages()}
    if any(not one.node.ndim for one in storages.values()):
        raise UnknownError("an array without dimensions is changed in a branch")
    closing = Closing((), start)
    is_risky = any(side.attempt.checks for side in sides)
    made = []
    for side in sides:
        roots = [
            construct.constant(0, dtype_of(kind))
            if side.raises
            else node_of(tracer, side.values[place], kind)
            for place, kind in enumerate(kinds)
            if is_number(kind)
        ]
        roots += [
            kind.nothing()
            if side.raises or side.values[place] is UNSET
            else construct.copy(side.arrays[id(side.values[place])])
            for place, kind in enumerate(kinds)
            if type(kind) is Sides
        ]
        roots += [
            landed(side.nodes[key], one.node) if key in side.nodes else one.node
            for key, one in storages.items()
        ]
        roots += [construct.constant(False, "bool")] if is_risky else []
        made.append((closing.inside(roots), closing.inside(side.attempt.checks)))
    like = made[0][0]
    after = [same.get(place, one) for place, one in enumerate(before)]
    if not like:
        state.put(tuple(after))
        return
    captured = [closing.captured(kind.nothing()) for kind in kinds if type(kind) is Sides]
    captured += closing.inside([one.node for one in storages.values()])
    options: dict[str, Any] = {
        name: closing.graph(*one) for name, one in zip(("yes", "no"), made, strict=True)
    }
    places = [one.options["index"] for one in captured]
    options["bases"] = (*[-1] * (len(like) - len(places) - is_risky), *places, *[-1] * is_risky)
    refuse_unsupported(tracer, options)
    node = Node("branch", (condition, *closing.taken), "int64", (), options)
    results = items(node, like)
    if is_risky:
        keep(tracer, results.pop())
    remaining = iter(results)
    waiting: list[tuple[int, Sides]] = []
    for place, kind in enumerate(kinds):
        if kind is Unset:
            after[place] = UNSET
        elif type(kind) is Sides:
            waiting.append((place, kind))
        elif kind is not None:
            item = next(remaining)
            after[place] = number(tracer, item, kind)
            if kind is int:
                _bounds(tracer, item, [side.values[place] for side in alive])
    for place, one in waiting:
        after[place] = one.after(tracer, next(remaining), before, start)
    for place, one in enumerate(after):
        if type(one) is Traced and any(may_lack(tracer, side.values[place]) for side in alive):
            note_lacking(tracer, one.node)
    for storage, item in zip(storages.values(), remaining, strict=True):
        storage.change(item)
    state.put(tuple(after))


def _taken_apart(tracer: Tracer, state: State, sides: Sequence[Side]) -> State:
    """The state, and the values of the sides, with tuples and the like taken apart where sides have other ones."""
    before = state.read()
    forms = {}
    for place in range(len(before)):
        found = [side.values[place] for side in sides]
        form = None if all(one is before[place] for one in found) else structures.between(found)
        if form is None:
            continue
        forms[place] = form
        if structures.leaves_of(before[place], form) is None:
            before = (*before[:place], UNSET, *before[place + 1 :])
    if not forms:
        return state
    apart = structures.Apart(
        tracer, State(state.names, lambda: before, state.put, state.line, state.guarded), forms
    )
    for side in sides:
        side.values = apart.leaves(side.values)
    return apart


def keep(tracer: Tracer, item: Node) -> None:
    """Have a loop or branch that may be refused even if nobody reads what it gives: this result is never true."""
    if tracer.depth:
        tracer.checks.append(item)
    else:
        tracer.risky.append(item)


def refuse_unsupported(tracer: Tracer, options: dict[str, Any]) -> None:
    """Raise UnknownError for regions that no code is made for."""
    for one in options.values():
        found = unsupported(one) if isinstance(one, Graph) else ""
        if found:
            raise UnknownError(f"{found} in a loop or branch")
    tracer.has_flows = True


def _kind(name: str, values: list[Any], before: Any, line: int, *, joins: bool) -> Any:
    """The kind of a variable behind a branch. What has a value on one side only has none, unless nobody reads that."""
    kinds = [kind_of(one) for one in values]
    if Unset in kinds and not joins:
        return Unset
    if None in kinds and any(one is not before for one in values):
        try:
            return sides_of(name, values, joins=joins)
        except SidesError as error:
            error.line = line_of(name, line)
            raise
    kind = kinds[0]
    for other in kinds[1:]:
        kind = joined(name, kind, other, line)
    return kind


def _is_from_before(value: Any, start: int) -> bool:
    """Whether what all sides of a branch give a variable is an array from before it, or nothing that they have made."""
    if type(value) is Traced and value.ndim:
        return value.view.storage.born < start
    return value is None or type(value) is str


def _refuse_shared(kinds: list[Any]) -> None:
    """Raise UnknownError where two variables have one array on a side: writing to one would change the other."""
    chosen = [kind.values for kind in kinds if type(kind) is Sides]
    for side in zip(*chosen, strict=False):
        storages = [one.view.storage for one in side if type(one) is Traced]
        if len({id(one) for one in storages}) < len(storages):
            raise UnknownError("two variables have one array on a side of a branch")


def _bounds(tracer: Tracer, item: Node, values: list[Any]) -> None:
    """What is known of an int behind a branch."""
    ranges.note(tracer, item, merged(tracer, values))
    known = [one for one in values if one is not UNSET]
    moves = [ranges.move_of(tracer, one.node) if type(one) is Traced else None for one in known]
    ranges.either(tracer, item, moves, [ranges.interval(tracer, one) for one in known])


def value_of(tracer: Tracer, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    found: list[Any] = [UNSET]

    def put(values: tuple[Any, ...]) -> None:
        found[0] = values[0]

    state = State(("_jk_found",), lambda: (found[0],), put, 0)
    choose(tracer, test, lambda: put((yes(),)), lambda: put((no(),)), state)
    return found[0]


def as_bool(tracer: Tracer, value: Any) -> Any:
    """The truth of a value as a bool of Python."""
    if type(value) is not Traced and is_decided(value):
        return bool(value)
    return number(tracer, truth(tracer, value), bool)
