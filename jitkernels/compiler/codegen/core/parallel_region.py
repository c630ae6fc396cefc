"""Parallel regions: consecutive calls of a segment that one team runs, with barriers only where data crosses threads.

A barrier is needed if a call reads or writes what an earlier one has written or read, unless the dependence stays
within an iteration: if each iteration of both loops accesses its own contiguous range, the same thread runs the same
iterations of both, in order. Arrays may share memory, so what counts is the buffer, not the array.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jitkernels.compiler.codegen.core.cycle_counter import Clock
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.nest.nest_emitter import NestEmitter
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime.threads.parallel_for import MIN_THREAD_WORK, PHASE
from jitkernels.runtime.threads.team_size import SHARE_RUN

MAX_PHASES = 32
"""The most phases of a region."""
Access = tuple[int, Number | None]
"""The frame word of an array, and its elements per iteration; None where iterations share elements."""
Strides = dict[int, Number | None]
"""By frame word: an array's elements per iteration; None where iterations share elements."""
Overlap = Callable[[int, int], bool]
"""Whether the arrays of two frame words may alias."""


@frozen_dataclass
class Accesses:
    """The arrays that a call reads and writes."""

    reads: Mapping[int, Number | None]
    writes: Mapping[int, Number | None]


@frozen_dataclass
class SegmentCall:
    """One loop nest of a segment: its function, its parallel extent (None if it must run whole), and its work.

    `unit`: the grain of the extent. `checks`: the frame words of bools that the nest computes; a true one bails out.
    `bails_out`: its status may be a bailout. `clock`: its profile counters. `accesses`: its reads and writes, if it may
    join a parallel region. `serpentine_words`: the frame words of the arrays that it traverses in serpentine order.
    """

    name: str
    extent: Number | None
    work: Number
    unit: int = 1
    checks: tuple[int, ...] = ()
    bails_out: bool = False
    clock: Clock | None = None
    accesses: Accesses | None = None
    serpentine_words: frozenset[int] = frozenset()

    @property
    def trip_count(self) -> Number:
        return 1 if self.extent is None else self.extent


@dataclass
class Phase:
    """Calls that run iteration by iteration on the same thread, and whether a barrier stands before them."""

    calls: list[SegmentCall]
    waits: bool


def accesses_of(emitter: NestEmitter) -> Accesses:
    """Collect the arrays that a loop nest reads and writes."""
    reads: Strides = {}
    writes: Strides = {}
    for target in emitter.targets:
        if target.array is not None:
            _note(emitter, writes, target.array, target.where or target.index_map)
        for node, access_map in emitter.values.needed(target.node, target.index_map):
            if node in emitter.values.arrays:
                _note(emitter, reads, emitter.values.arrays[node], access_map)
            elif node.operation == "gather":
                reads[emitter.values.indexed(node).word] = None
    return Accesses(reads, writes)


def _note(emitter: NestEmitter, accesses: Strides, array: StridedArray, access_map: IndexMap) -> None:
    stride = _disjoint_stride(emitter, array, access_map)
    if array.word in accesses:
        before = accesses[array.word]
        stride = stride if stride is not None and before is not None and same(before, stride) else None
    accesses[array.word] = stride


def _disjoint_stride(emitter: NestEmitter, array: StridedArray, access_map: IndexMap) -> Number | None:
    """The elements per iteration of the parallel loop, if iterations access adjacent disjoint ranges; else None."""
    first, strides = array.coefficients(access_map)
    stride = strides.pop(emitter.parallel_loop, None) if emitter.parallel_loop is not None else None
    if stride is None or not same(first + array.first, 0) or any(loop not in emitter.extents for loop in strides):
        return None
    last_offset = sum((other * (emitter.extents[loop] - 1) for loop, other in strides.items()), 0)
    return stride if same(stride, last_offset + 1) else None


def phases_of(calls: Sequence[SegmentCall], overlap: Overlap) -> list[Phase]:
    """Group consecutive calls into phases."""
    results: list[Phase] = []
    candidates: list[tuple[Phase, SegmentCall]] = []
    for call in calls:
        dependences = [(phase, earlier) for phase, earlier in candidates if _depends(earlier, call, overlap)]
        last = results[-1] if results else None
        if (
            last is not None
            and same(last.calls[0].trip_count, call.trip_count)
            and (all(phase is last and _is_iteration_local(earlier, call, overlap) for phase, earlier in dependences))
        ):
            last.calls.append(call)
        else:
            results.append(Phase([call], waits=bool(dependences)))
            if dependences:
                candidates = []
        candidates.append((results[-1], call))
    return results


def _depends(earlier: SegmentCall, later: SegmentCall, overlap: Overlap) -> bool:
    """Return whether one call writes what the other reads or writes."""
    return any(_conflicts(earlier, later, overlap))


def _is_iteration_local(earlier: SegmentCall, later: SegmentCall, overlap: Overlap) -> bool:
    """Return whether different iterations of two loops of the same trip count are independent."""
    return all(
        word == other_word and stride is not None and other_stride is not None and same(stride, other_stride)
        for (word, stride), (other_word, other_stride) in _conflicts(earlier, later, overlap)
    )


def _conflicts(earlier: SegmentCall, later: SegmentCall, overlap: Overlap) -> Iterator[tuple[Access, Access]]:
    """Yield the accesses of two calls that may be to the same elements, of which one is a write."""
    a, b = earlier.accesses, later.accesses
    assert a is not None, "in a region"
    assert b is not None, "in a region"
    for earlier_strides, later_strides in ((a.writes, b.reads), (a.writes, b.writes), (a.reads, b.writes)):
        yield from (
            (access, other)
            for access, other in itertools.product(earlier_strides.items(), later_strides.items())
            if overlap(access[0], other[0])
        )


def regions_of(calls: Sequence[SegmentCall], overlap: Overlap) -> Iterator[SegmentCall | list[Phase]]:
    """Yield calls by themselves, and the phases of those that form one parallel region."""
    for is_part, several in itertools.groupby(calls, lambda call: call.accesses is not None):
        region = [*several]
        phases = phases_of(region, overlap) if is_part and _is_worth_it(region) else []
        if not phases:
            yield from region
        for first in range(0, len(phases), MAX_PHASES):
            yield phases[first : first + MAX_PHASES]


def _is_worth_it(calls: Sequence[SegmentCall]) -> bool:
    """Return whether a region may have work for several threads."""
    total = sum((call.work for call in calls), 0)
    return len(calls) > 1 and (isinstance(total, Extent) or total >= 2 * MIN_THREAD_WORK)


def region_text(function: FunctionBuilder, phases: Sequence[Phase], name: str) -> tuple[list[str], str]:
    """Return the functions of phases with several calls, and the status of the region in the current function."""
    texts, names = [], []
    for number, phase in enumerate(phases):
        names.append(phase.calls[0].name)
        if len(phase.calls) > 1:
            names[-1] = f"{name}.{number}"
            texts.append(_phase_function(phase, names[-1]))
    new, block = function.new, function.block
    status = function.variable("i64")
    calls = [call for phase in phases for call in phase.calls]
    work = function.extent(sum((call.work for call in calls), 0))
    parallel, serial, done = (function.label() for _ in range(3))
    large = new(block, f"icmp sge i64 {work}, {2 * MIN_THREAD_WORK}")
    block.lines += [f"  br i1 {large}, label %{parallel}, label %{serial}", f"{serial}:"]
    known = dict(block.known)
    statuses = "0"
    for call in calls:
        end = function.extent(call.trip_count)
        call_status = new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 {end})")
        statuses = new(block, f"or i64 {statuses}, {call_status}")
    block.lines += [f"  store i64 {statuses}, ptr {status}", f"  br label %{done}", f"{parallel}:"]
    block.known = dict(known)
    table = function.variable(f"[{len(phases)} x {PHASE}]")
    for number, (phase, symbol) in enumerate(zip(phases, names, strict=True)):
        unit = math.lcm(*(call.unit for call in phase.calls))
        words = (
            ("ptr", f"@{symbol}"),
            ("i64", function.extent(phase.calls[0].trip_count)),
            ("i64", unit),
            ("i64", function.extent(sum((call.work for call in phase.calls), 0))),
            ("i64", int(phase.waits)),
        )
        for field, (kind, value) in enumerate(words):
            at = new(block, f"getelementptr {PHASE}, ptr {table}, i64 {number}, i32 {field}")
            block.lines.append(f"  store {kind} {value}, ptr {at}")
    region_status = new(block, f"call i64 @{SHARE_RUN}(ptr %frame, ptr {table}, i64 {len(phases)})")
    block.lines += [f"  store i64 {region_status}, ptr {status}", f"  br label %{done}", f"{done}:"]
    block.known = known
    return texts, new(block, f"load i64, ptr {status}")


def _phase_function(phase: Phase, name: str) -> str:
    """Return the function that makes the calls of a phase for a range of iterations."""
    lines, statuses = [], "0"
    for number, call in enumerate(phase.calls):
        lines.append(f"  %status{number} = call i64 @{call.name}(ptr %frame, i64 %begin, i64 %end)")
        lines.append(f"  %either{number} = or i64 {statuses}, %status{number}")
        statuses = f"%either{number}"
    head = f"define internal i64 @{name}(ptr noalias readonly %frame, i64 %begin, i64 %end) noinline nounwind"
    return "\n".join([f"{head} {{", *lines, f"  ret i64 {statuses}", "}"])
