"""Vector runs: arrays of which a loop loads several adjacent vectors per iteration, as of a matrix in a product."""

from collections.abc import Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.nest_values import NestValues, Pair
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.frozen_dataclass import frozen_dataclass

MAX_ACCUMULATOR_VECTORS = 8
"""The most accumulator vectors: 32 registers have room for them and for their compensations."""
MIN_BEYOND_L2_BYTES = 1 << 20
"""The least bytes of an array that is not in L2."""
NOT_NEAR = 40 << 10
"""The least bytes of an array of which much is not in L1: from L1 plain loads are as fast as permuted ones."""
MIN_RUN_VECTORS = 4
"""The least vectors of a run for which an additional line pays."""
PERMUTED = frozenset({"float", "double", "i32", "i64"})
"""LLVM types of elements that AVX-512 permutes across two vectors in one instruction."""


@frozen_dataclass
class VectorRun:
    """An array that is loaded in runs: an access map, the stride between runs, and whether all are aligned."""

    array: StridedArray
    access_map: IndexMap
    step: Number
    begins_line: bool


def vector_runs(values: NestValues, loop: int, lane_loop: int | None, targets: Sequence[NestTarget]) -> list[VectorRun]:
    """The arrays that are loaded in runs. Constants of the code are aligned to cache lines."""
    results = []
    for node, index_map in loads_once(values, targets):
        array = values.arrays[node]
        first, steps = array.coefficients(index_map)
        if lane_loop is not None and same(steps.get(lane_loop, 0), 1) and loop in steps:
            begins = node.operation == "input" and "cache_aligned" in node.options and same(first, 0)
            results.append(VectorRun(array, index_map, steps[loop], begins))
    return results


def loads_once(values: NestValues, targets: Sequence[NestTarget]) -> list[Pair]:
    """The array elements that targets load, once each; without arrays that are accessed in other ways too."""
    pairs = {
        values.key(*pair): pair for target in targets for pair in values.needed(target.node, target.index_map)
    }  # fmt: skip
    other_ways = {array.word for array in values.scratch_of_value.values()}
    other_ways |= {values.indexed(node).word for node, _ in pairs.values() if node.operation == "gather"}
    return [
        pair for pair in pairs.values() if pair[0] in values.arrays and values.arrays[pair[0]].word not in other_ways
    ]


def held_scalars(
    values: NestValues, loop: int, lane_loop: int | None, targets: Sequence[NestTarget]
) -> list[tuple[StridedArray, IndexMap]]:
    """The arrays of scalars that are loaded beside runs with unit stride along the loop, by one access map."""
    result: dict[int, list[tuple[StridedArray, IndexMap, bool]]] = {}
    for node, index_map in loads_once(values, targets):
        array = values.arrays[node]
        steps = array.coefficients(index_map)[1]
        is_next = same(steps.get(loop, 0), 1) and lane_loop not in steps and _is_permuted(array)
        result.setdefault(array.word, []).append((array, index_map, is_next))
    return [(array, index_map) for ((array, index_map, is_next), *others) in result.values() if is_next and not others]


def prefetched_runs(own: Loops, loop: int, targets: Sequence[NestTarget]) -> frozenset[int]:
    """The frame words of the arrays whose later runs are prefetched.

    Hardware prefetchers follow adjacent lines, not runs with a large stride. Data in L2 needs no prefetch: a heuristic
    from the traced call's sizes.
    """
    runs = vector_runs(own.values, loop, own.lane_loop, targets)
    return frozenset(run.array.word for run in runs if _bytes_now(own, loop, run.array) >= MIN_BEYOND_L2_BYTES)


def run_lanes(own: Loops, loop: int, targets: Sequence[NestTarget], *, doubles: bool) -> tuple[int, int]:
    """The least lanes of iterations that load runs by whole lines, and that hold scalars in vectors; 0 for never.

    Runs are long ones, from L2 or further away, whose stride is a multiple of a cache line: heuristics from the traced
    call's sizes. `doubles`: see `NestSchedule.doubles_steps`.
    """
    lane_loop = own.lane_loop
    if lane_loop is None or lane_loop in targets[0].loops or loop in own.directions:
        return 0, 0
    if own.chosen.vector_bytes != CACHE_LINE_BYTES or not cpu_target.target().is_x86 or own.any_size:
        return 0, 0
    runs = vector_runs(own.values, loop, lane_loop, targets)
    sizes = [NUMBERS[run.array.dtype].size for run in runs]
    strides = [symbolic_dims.value_of(run.step) * size for run, size in zip(runs, sizes, strict=True)]
    are_far = any(_bytes_now(own, loop, run.array) >= NOT_NEAR for run in runs)
    if not are_far or any(stride % CACHE_LINE_BYTES for stride in strides):
        return 0, 0
    # In rows most of which run in iterations of twice as many lanes, single ones are left out.
    left = symbolic_dims.value_of(own.extents[lane_loop]) % (2 * own.step_lanes)
    least = own.step_lanes + (left < own.step_lanes and doubles)
    lines = max(least, MIN_RUN_VECTORS * CACHE_LINE_BYTES // min(sizes))
    if all(run.begins_line for run in runs):
        scalars = held_scalars(own.values, loop, lane_loop, targets)
        return 0, max(least, MAX_ACCUMULATOR_VECTORS * CACHE_LINE_BYTES // min(sizes)) if scalars else 0
    words = [own.values.arrays[node].word for node, _ in loads_once(own.values, targets)]
    # Several access maps of an array, or several parts of one, have several misalignments.
    is_supported = all(_is_permuted(run.array) and words.count(run.array.word) == 1 for run in runs)
    return lines if is_supported else 0, 0


def _bytes_now(own: Loops, loop: int, array: StridedArray) -> int:
    """The bytes of all runs in the traced call."""
    assert own.lane_loop is not None, "runs are of lanes"
    lanes = symbolic_dims.value_of(own.extents[own.lane_loop])
    return symbolic_dims.value_of(own.extents[loop]) * lanes * NUMBERS[array.dtype].size


def _is_permuted(array: StridedArray) -> bool:
    return NUMBERS[array.dtype].memory in PERMUTED
