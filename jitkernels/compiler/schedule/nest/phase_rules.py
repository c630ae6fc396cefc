"""Rules for the inner loops of one phase: blocked sums, jammed rows, recent stores, prefetches and vector runs."""

from collections import Counter
from collections.abc import Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_loop_variant, same
from jitkernels.compiler.schedule.nest import vector_runs
from jitkernels.compiler.schedule.nest.loop_order import COMPUTE_BOUND_COST, Loops
from jitkernels.compiler.schedule.nest.nest_schedule import PhaseSchedule, RecentStore, RowJam
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.scratch_values import scratch_of
from jitkernels.compiler.schedule.nest.serpentine_rule import bytes_along
from jitkernels.compiler.schedule.nest.shared_loads import array_loads, load_groups, may_share_loads, rows_share
from jitkernels.compiler.schedule.nest.trip_bounds import least_steps, most_steps
from jitkernels.core import cpu_target
from jitkernels.microkernels.maths.blocked_summation import ADDS
from jitkernels.microkernels.tuning_space import STREAM_BYTES

MAX_ALIASED_BYTES = 256
"""Bytes of a step whose loads are all before its stores, from which on few wait for stores of the one before."""
MAX_HALVED = 8
"""The most lanes of vectors whose remainder is halved: each half is code of its own."""
MAX_UNROLLED_VECTORS = 6
"""The most vectors of a row that is fully unrolled, if registers hold their results."""
MIN_LOOP_VECTORS = 8
"""The least vectors of a row for which two at a time are worth a loop of its own, in the traced call."""
FIRST_CACHE = 48 << 10
"""The L1 bytes of processors whose stores wait for lines."""


def phase_schedules(own: Loops, *, streams: bool, doubles: bool) -> tuple[PhaseSchedule, ...]:
    """The schedules of all phases. The values of a phase are known in those behind it."""
    results = []
    for inner, _ in own.phase_loops():
        for _, targets in inner:
            scratch = scratch_of(own.scratch_values, targets[0])
            results.append(_phase_schedule(own, targets, scratch, streams=streams, doubles=doubles))
            for target in targets:
                if target.reduction is not None:
                    own.values.reduced[own.values.key(*target.reduction)] = None
            for value in scratch:
                own.values.scratch_of_value[own.values.key(value.node, value.index_map)] = value.output
    own.values.reduced.clear()
    own.values.scratch_of_value.clear()
    return tuple(results)


def _phase_schedule(
    own: Loops, targets: list[NestTarget], scratch: list[NestTarget], *, streams: bool, doubles: bool
) -> PhaseSchedule:
    number, loops = targets[0].phase, own.inner_order(targets[0].loops)
    reductions = [target for target in targets if target.reduction is not None]
    phases = max((target.phase for target in own.targets if target.loops), default=0)
    read_prefetch = 0
    from_memory = streams or 0 < own.chosen.stream_bytes < STREAM_BYTES  # the latter was measured to pay
    if from_memory and own.reduces and own.lane_loop in loops and number == min(phases, 2):
        # Processors fetch lines in pairs, and each of several phases is short.
        read_prefetch = 2 if phases > 1 and not streams else 1
    jam = None if reductions or scratch else _row_jam(own, loops, targets, streams=streams)
    if jam is not None or own.lane_loop in loops or len(loops) > 1:
        runs, lanes = frozenset[int](), (0, 0)
    else:
        runs = vector_runs.prefetched_runs(own, loops[0], targets)
        lanes = vector_runs.run_lanes(own, loops[0], [*targets, *scratch], doubles=doubles)
    blocked, recent = _is_blocked(own, loops, reductions), _recent_store(own, loops, reductions)
    return PhaseSchedule(number, tuple(loops), blocked, jam, recent, read_prefetch, runs, *lanes)


def first_reads(own: Loops) -> dict[int, tuple[StridedArray, IndexMap, Number]]:
    """The arrays that the first phase of a row loads with unit stride, and their strides to the next row."""
    result = {}
    for target in own.targets:
        for node, access_map in own.values.needed(target.node, target.index_map) if target.phase == 1 else ():
            array = own.values.arrays.get(node)
            if array is not None and own.lane_loop is not None:
                _, steps = array.coefficients(access_map)
                step = steps.get(own.order[0], 0) if own.order else 0
                is_invariant = bool(own.order) and same(step, 0)  # loaded by all rows
                if same(steps.get(own.lane_loop, 0), 1) and not is_invariant:
                    result[array.word] = array, access_map, step
    return result


def _is_blocked(own: Loops, loops: Sequence[int], reductions: Sequence[NestTarget]) -> bool:
    """Return whether a reduction may have so many elements that it is blocked."""
    if not reductions:
        return False
    most = most_steps(own.extents[loops[0]]) if len(loops) == 1 else None
    finds = any(target.reduced[0].options["kind"] in ("argmin", "argmax") for target in reductions)
    return finds or most is None or most > ADDS


def _recent_store(own: Loops, loops: Sequence[int], reductions: Sequence[NestTarget]) -> RecentStore | None:
    """Which element of a row may just have been stored.

    Only for sums, whose halves take an addition or two. It is the first where the row's begin is loop-variant, and its
    end is not.
    """
    if own.recent_words.isdisjoint(own.read_words) or not own.nest.has_short_rows:
        return None
    if own.order or own.lanes != own.step_lanes or own.lanes > MAX_HALVED:
        return None
    if any(target.reduced[0].options["kind"] not in ("sum", "prod") for target in reductions):
        return None
    begins = any(
        dim_loop == loops[0] and is_loop_variant(start) and not is_loop_variant(start + own.extents[loops[0]] * step)
        for target in own.targets
        for node, access_map in own.values.needed(target.node, target.index_map)
        if node in own.values.arrays
        for start, steps in access_map
        for dim_loop, step in steps
    )
    return RecentStore.FIRST if begins else RecentStore.LAST


def _row_jam(own: Loops, loops: list[int], targets: list[NestTarget], *, streams: bool) -> RowJam | None:
    """How rows that share loads are jammed; None where they share none, or are shorter than the code requires."""
    if not may_share_loads(own) or len(loops) < 2 or loops[-1] != own.lane_loop or streams:
        return None
    *_, row, column = loops
    count, lanes = own.extents[column], max(cpu_target.target().vector_bytes // own.widest, 1)
    if is_loop_variant(count) or lanes < 2 or symbolic_dims.value_of(count) < lanes:
        return None
    share = rows_share(own.values, targets, row, column, lanes)
    if not share and all(len(group.reads) < 2 for group in load_groups(own.values, targets, column, lanes)):
        return None
    reads = [(own.values.arrays[node], access_map) for node, access_map in array_loads(own.values, targets)]
    writes = [(target.output, target.index_map) for target in targets]
    nbytes = sum(bytes_along(own, row, [*reads, *writes]).values())
    return RowJam(
        2 if share else 1,
        lanes,
        _specialized_vectors(own, count, lanes),
        symbolic_dims.value_of(count) >= MIN_LOOP_VECTORS * lanes,
        cpu_target.target().stalls_on_store_miss and nbytes >= FIRST_CACHE,
    )


def _specialized_vectors(own: Loops, count: Number, lanes: int) -> int:
    """The vectors of a row that is fully unrolled, which guards make sure of; 0 for all longer rows.

    Results of two rows are computed before they are stored: most registers hold them.
    """
    most = max(1, min(MAX_UNROLLED_VECTORS, cpu_target.target().registers * 3 // 8 // (2 * len(own.targets))))
    result = min(-(-symbolic_dims.value_of(count) // lanes), most + 1)
    if isinstance(count, Extent):
        least = max(lanes * (result - 1), lanes - 1)
        if least_steps(count) <= least:
            count.guard(count - least, ">", is_choice=True)
        if result <= most:
            count.guard(lanes * result - count, ">=", is_choice=True)
    return result if result <= most else 0


def doubles_steps(own: Loops) -> bool:
    """Return whether a first loop takes two unrolled iterations at a time."""
    return _loads_before_stores(own) or _lengthens_runs(own)


def _loads_before_stores(own: Loops) -> bool:
    """Return whether loads would wait for stores of the iterations before, which have nothing to do with them.

    Where an array lies a little behind another in their pages, the fewer lines are stored between loads the better.
    """
    if not cpu_target.target().stalls_on_aliases or own.reduces or own.scanned or own.directions:
        return False
    is_only = [*own.extents] == [own.lane_loop] and own.step_lanes > 1
    is_short = own.step_lanes * own.widest < MAX_ALIASED_BYTES
    return is_only and is_short and own.nest.cost < COMPUTE_BOUND_COST and not own.short_lanes


def _lengthens_runs(own: Loops) -> bool:
    """Return whether reduced rows, one per lane, are loaded in runs of two unrolled iterations.

    Caches deliver longer runs faster, and fewer lines straddle where arrays begin within a line.
    """
    sums, loop = [target for target in own.targets if target.reduction is not None], own.lane_loop
    if not sums or loop is None or loop not in own.order or own.any_size:
        return False
    lanes = 2 * own.step_lanes
    vectors = lanes // own.lanes * max(Counter(target.phase for target in sums).values())
    is_long = symbolic_dims.value_of(own.extents[loop]) >= lanes
    fits = vectors <= vector_runs.MAX_ACCUMULATOR_VECTORS
    return is_long and fits and not any(loop in target.loops for target in sums)


MIN_BLOCK_ELEMENTS = 16384
"""The least 4-byte elements of a block of a reduction of everything."""


def least_block(own: Loops) -> int:
    """The least elements of a block: more for narrow ones, as they take no longer."""
    sizes = [NUMBERS[leaf.dtype].size for leaf in own.nest.leaves]
    return MIN_BLOCK_ELEMENTS * max(4 // max(sizes, default=4), 1)


def is_in_blocks(own: Loops) -> bool:
    """Return whether a nest reduces everything, and may have more than one block: neither in loops nor in kernels."""
    if own.is_in_loop or own.any_size:
        return False
    results = [target for target in own.targets if target.loops]
    sizes = [symbolic_dims.product(own.extents[loop] for loop in target.loops) for target in results]
    is_large = any(isinstance(size, Extent) or size >= 2 * least_block(own) for size in sizes)
    return is_large and not own.order and not own.scanned and all(result.reduction for result in results)
