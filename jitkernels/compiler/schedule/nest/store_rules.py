"""Rules for stores: which are streaming stores, and for which output iterations are peeled to align them."""

from collections.abc import Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule.nest.loop_order import COMPUTE_BOUND_COST, Loops
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

MIN_STREAMED_ROW_BYTES = 16 * CACHE_LINE_BYTES
"""The least bytes of a row that is stored by streaming stores: full cache lines are most of it."""
MIN_PEELED_VECTORS = 32
"""The least vectors for which peeling pays: a mispredicted branch and a masked vector take as long as 24 split stores,
at a cycle each (of 384 and 512 floats, 64 bytes at a time: 21 and 21 ns instead of 23 and 33)."""


def streamed_targets(own: Loops) -> tuple[int, ...]:
    """The outputs that are stored by streaming stores: all outputs of a nest, in full cache lines, or none.

    The nest has one loop, or rows along which a single output lies. Lines that are also read are in the caches
    anyway.
    """
    loops = [*own.order, *own.columns]
    if not own.chosen.stream_bytes or loops[-1:] != [own.lane_loop] or own.scanned or own.directions:
        return ()
    if own.gathered_run is not None:
        return ()
    if len(loops) == 2:
        return _streamed_rows(own, *loops)
    chosen = [i for i, target in enumerate(own.targets) if len(loops) == 1 and _fills_lines(own, target, loops)]
    arrays = [own.targets[i].output for i in chosen]
    sizes = {NUMBERS[array.dtype].size for array in arrays}
    is_read = {array.word for array in arrays} & own.read_words
    return tuple(chosen) if len(chosen) == len(own.targets) and len(sizes) == 1 and not is_read else ()


def _streamed_rows(own: Loops, row: int, column: int) -> tuple[int, ...]:
    """The same for rows, if they are large enough in total in the traced call."""
    roots = [i for i, target in enumerate(own.targets) if target.reduction is None]
    if len(roots) != 1 or not _fills_lines(own, own.targets[roots[0]], [row, column]):
        return ()
    array = own.targets[roots[0]].output
    length = symbolic_dims.value_of(own.extents[column]) * NUMBERS[array.dtype].size
    is_large = (
        length >= MIN_STREAMED_ROW_BYTES
        and symbolic_dims.value_of(own.extents[row]) * length >= own.chosen.stream_bytes
    )
    is_forced = own.chosen.stream_bytes == 1  # whatever sizes were traced
    return tuple(roots) if (is_forced or is_large) and array.word not in own.read_words else ()


def _fills_lines(own: Loops, target: NestTarget, loops: list[int]) -> bool:
    """Return whether iterations of the last loop fill cache lines of the target's array one after another."""
    array = target.array
    if array is None or target.reduction is not None or not same(array.first, 0):
        return False
    if target.node.operation == "placed":
        return False
    first, steps = array.coefficients(target.index_map)
    is_dense = same(first, 0) and len(steps) == len(loops) and same(steps.get(loops[-1], 0), 1)
    return is_dense and own.step_lanes * NUMBERS[array.dtype].size >= CACHE_LINE_BYTES


def aligned_target(own: Loops, streamed: tuple[int, ...]) -> int | None:
    """The output that the lane loop aligns: a streamed one, or the first one whose vectors may straddle lines."""
    loop = own.lane_loop
    if loop is None or loop in own.directions or loop in own.scanned:
        return None
    if streamed:
        return streamed[0]
    return next((i for i in range(len(own.targets)) if aligning_pays(own, i)), None)


def aligning_pays(own: Loops, index: int | None) -> bool:
    """Whether aligning an output pays in long loops: where its stores may straddle lines, and take all the time."""
    if index is None or own.lane_loop is None:
        return False
    target = own.targets[index]
    if target.reduction is not None or target.array is None:
        return False
    is_cheap = not own.reduces and own.nest.cost < COMPUTE_BOUND_COST
    return is_cheap and _may_be_long(own, own.lane_loop) and _may_straddle(own, target, own.lane_loop)


def loads_beside(own: Loops, index: int) -> list[tuple[StridedArray, IndexMap]]:
    """The loads of a target that straddle as its stores do: neighbours along the lanes, of elements of its size."""
    target, loop = own.targets[index], own.lane_loop
    size, found = NUMBERS[target.output.dtype].size, {}
    for node, index_map in own.values.needed(target.node, target.index_map):
        array = own.values.arrays.get(node)
        if array is None or loop is None or NUMBERS[array.dtype].size != size:
            continue
        if same(array.coefficients(index_map)[1].get(loop, 0), 1):
            found[array.word] = array, index_map
    return list(found.values())


def _may_be_long(own: Loops, loop: int) -> bool:
    """Whether the loop has so many iterations that peeling pays: in the traced call, or in others.

    Code around short rows would cost each of them.
    """
    extent = own.extents[loop]
    if isinstance(extent, symbolic_dims.Extent) and (own.any_size or loop == own.parallel_loop):
        return True
    return symbolic_dims.value_of(extent) >= MIN_PEELED_VECTORS * own.lanes


def _may_straddle(own: Loops, target: NestTarget, loop: int) -> bool:
    """Whether a target is stored in vectors of more than half a line: arrays are aligned to 16 bytes at least."""
    if target.node.operation == "placed":
        return False
    step = target.output.coefficients(target.where or target.index_map)[1].get(loop, 0)
    return same(step, 1) and own.lanes * NUMBERS[target.output.dtype].size >= CACHE_LINE_BYTES // 2


def prefetched_outputs(own: Loops, targets: Sequence[NestTarget], lanes: int) -> list[NestTarget]:
    """The outputs whose next lines are prefetched: of several with unit stride along lanes, those that nothing loads.

    An iteration of so many lanes stores at least half a line of each.
    """
    outputs = {
        target.array.word: target
        for target in targets
        if target.array is not None and _has_unit_stride(own, target, lanes)
    }
    unread = [target for word, target in outputs.items() if word not in own.read_words]
    return unread if len(outputs) > 1 else []


def _has_unit_stride(own: Loops, target: NestTarget, lanes: int) -> bool:
    if target.node.operation == "placed" or own.lane_loop is None:
        return False
    steps = target.output.coefficients(target.index_map)[1]
    size = lanes * NUMBERS[target.output.dtype].size
    return same(steps.get(own.lane_loop, 0), 1) and size >= CACHE_LINE_BYTES // 2


def prefetches_stores(own: Loops) -> bool:
    """Whether stores wait for their lines: where a processor prefetches for one stream of stores only."""
    return cpu_target.target().stalls_on_store_miss and own.nest.cost < COMPUTE_BOUND_COST
