"""Calls of a segment that threads make in one region, and where they have to wait for one another between two of them.

They wait where a call reads or writes what another one before it has written or read, but for steps of its own: where
each step of both loops has elements of its own in an array, which lie behind those of the step before, the same steps
of both are done by the same thread, one after another. Arrays between calls may share memory, so that what counts is
where they are, and not whether they are the same.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.clock import Clock
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.native.openmp import SHARE_RUN
from jitkernels.native.sharing import PHASE, WORK
from jitkernels.records import record

MOST = 32
"""Phases of a region at most."""
Steps = dict[int, Number | None]
"""By words of the frame: how far a step goes in an array; None where elements of several steps are in one place."""
Overlap = Callable[[int, int], bool]
"""Whether the arrays of two words may be in the same memory."""


@record
class Touched:
    """What a call reads and writes."""

    reads: Mapping[int, Number | None]
    writes: Mapping[int, Number | None]


@record
class Call:
    """One nest of a segment: its function, its outermost loop (None if it has to run whole), and all its work.

    `unit`: steps of that loop that are done at once. `checks`: the frame's words of the bools that it computes, none of
    which may be true. `refuses`: its status may say that NumPy refuses what it is given. `clock`: what
    times it, where that is asked for. `touched`: what it reads and writes, where it may be part of a region. `turns`:
    the words of the arrays along which it goes backwards every second time.
    """

    name: str
    extent: Number | None
    work: Number
    unit: int = 1
    checks: tuple[int, ...] = ()
    refuses: bool = False
    clock: Clock | None = None
    touched: Touched | None = None
    turns: frozenset[int] = frozenset()

    @property
    def steps(self) -> Number:
        return 1 if self.extent is None else self.extent


@dataclass
class Phase:
    """Calls whose same steps are done one after another, and whether they wait for all that comes before them."""

    calls: list[Call]
    waits: bool


def touched(emitter: Emitter) -> Touched:
    """What a nest reads and writes."""
    reads: Steps = {}
    writes: Steps = {}
    for target in emitter.targets:
        if target.array is not None:
            _note(emitter, writes, target.array, target.where or target.place)
        for node, place in emitter.values.needed(target.node, target.place):
            if id(node) in emitter.values.arrays:
                _note(emitter, reads, emitter.values.arrays[id(node)], place)
            elif node.operation == "gather":
                reads[emitter.values.indexed(node).word] = None
    return Touched(reads, writes)


def _note(emitter: Emitter, found: Steps, array: Array, place: IndexMap) -> None:
    step = _own_step(emitter, array, place)
    if array.word in found:
        before = found[array.word]
        step = step if step is not None and before is not None and same(before, step) else None
    found[array.word] = step


def _own_step(emitter: Emitter, array: Array, place: IndexMap) -> Number | None:
    """How far a step of the loop that is shared goes, where what it comes by ends where the next one's begins."""
    first, steps = emitter.values.coefficients(array.strides, place)
    own = steps.pop(emitter.range_loop, None) if emitter.range_loop is not None else None
    if own is None or not same(first + array.first, 0) or any(one not in emitter.extents for one in steps):
        return None
    last = sum((step * (emitter.extents[loop] - 1) for loop, step in steps.items()), 0)
    return own if same(own, last + 1) else None


def phases_of(calls: Sequence[Call], overlap: Overlap) -> list[Phase]:
    """The phases of calls that come one after another."""
    found: list[Phase] = []
    since: list[tuple[Phase, Call]] = []
    for call in calls:
        against = [(phase, one) for phase, one in since if _meet(one, call, overlap)]
        last = found[-1] if found else None
        if (
            last is not None
            and same(last.calls[0].steps, call.steps)
            and (all(phase is last and _is_apart(one, call, overlap) for phase, one in against))
        ):
            last.calls.append(call)
        else:
            found.append(Phase([call], waits=bool(against)))
            if against:
                since = []
        since.append((found[-1], call))
    return found


def _meet(one: Call, other: Call, overlap: Overlap) -> bool:
    """Whether one call writes where another reads or writes."""
    a, b = one.touched, other.touched
    assert a is not None, "part of a run"
    assert b is not None, "part of a run"
    return any(
        overlap(word, own)
        for words, others in ((a.writes, {**b.reads, **b.writes}), (a.reads, b.writes))
        for word in words
        for own in others
    )


def _is_apart(one: Call, other: Call, overlap: Overlap) -> bool:
    """Whether other steps of two loops of as many steps do not meet."""
    a, b = one.touched, other.touched
    assert a is not None, "part of a run"
    assert b is not None, "part of a run"
    for mine, theirs in ((a.writes, b.reads), (a.writes, b.writes), (a.reads, b.writes)):
        for word, step in mine.items():
            for own, other_step in theirs.items():
                if not overlap(word, own):
                    continue
                if word != own or step is None or other_step is None or not same(step, other_step):
                    return False
    return True


def runs_of(calls: Sequence[Call], overlap: Overlap) -> Iterator[Call | list[Phase]]:
    """Calls by themselves, and the phases of those that are one region."""
    for is_part, several in itertools.groupby(calls, lambda one: one.touched is not None):
        own = [*several]
        phases = phases_of(own, overlap) if is_part and _is_worth_it(own) else []
        if not phases:
            yield from own
        for first in range(0, len(phases), MOST):
            yield phases[first : first + MOST]


def _is_worth_it(calls: Sequence[Call]) -> bool:
    """Whether a run may have work for several threads."""
    total = sum((call.work for call in calls), 0)
    return len(calls) > 1 and (isinstance(total, Extent) or total >= 2 * WORK)


def run_text(function: Function, phases: Sequence[Phase], name: str) -> tuple[list[str], str]:
    """Functions that make the calls of phases of several, and, in the function at hand, the status of the run."""
    texts, names = [], []
    for number, phase in enumerate(phases):
        names.append(phase.calls[0].name)
        if len(phase.calls) > 1:
            names[-1] = f"{name}.{number}"
            texts.append(_together(phase, names[-1]))
    new, block = function.new, function.block
    status = function.variable("i64")
    calls = [call for phase in phases for call in phase.calls]
    work = function.extent(sum((call.work for call in calls), 0))
    much, little, done = (function.label() for _ in range(3))
    large = new(block, f"icmp sge i64 {work}, {2 * WORK}")
    block.lines += [f"  br i1 {large}, label %{much}, label %{little}", f"{little}:"]
    known = dict(block.known)
    statuses = "0"
    for call in calls:
        end = function.extent(call.steps)
        one = new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 {end})")
        statuses = new(block, f"or i64 {statuses}, {one}")
    block.lines += [f"  store i64 {statuses}, ptr {status}", f"  br label %{done}", f"{much}:"]
    block.known = dict(known)
    table = function.variable(f"[{len(phases)} x {PHASE}]")
    for number, (phase, own) in enumerate(zip(phases, names, strict=True)):
        unit = math.lcm(*(call.unit for call in phase.calls))
        words = (
            ("ptr", f"@{own}"),
            ("i64", function.extent(phase.calls[0].steps)),
            ("i64", unit),
            ("i64", function.extent(sum((call.work for call in phase.calls), 0))),
            ("i64", int(phase.waits)),
        )
        for field, (kind, value) in enumerate(words):
            at = new(block, f"getelementptr {PHASE}, ptr {table}, i64 {number}, i32 {field}")
            block.lines.append(f"  store {kind} {value}, ptr {at}")
    found = new(block, f"call i64 @{SHARE_RUN}(ptr %frame, ptr {table}, i64 {len(phases)})")
    block.lines += [f"  store i64 {found}, ptr {status}", f"  br label %{done}", f"{done}:"]
    block.known = known
    return texts, new(block, f"load i64, ptr {status}")


def _together(phase: Phase, name: str) -> str:
    """The function that makes the calls of a phase for some steps."""
    lines, statuses = [], "0"
    for number, call in enumerate(phase.calls):
        lines.append(f"  %status{number} = call i64 @{call.name}(ptr %frame, i64 %begin, i64 %end)")
        lines.append(f"  %either{number} = or i64 {statuses}, %status{number}")
        statuses = f"%either{number}"
    head = f"define internal i64 @{name}(ptr noalias readonly %frame, i64 %begin, i64 %end) noinline nounwind"
    return "\n".join([f"{head} {{", *lines, f"  ret i64 {statuses}", "}"])
