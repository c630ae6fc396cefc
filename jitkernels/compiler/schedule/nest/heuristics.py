"""Default schedules of loop nests without measurements: heuristics from their operations and the traced sizes."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray, is_small_stride
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule, Remainder
from jitkernels.compiler.schedule.partial_stores import BY_NUMBERS
from jitkernels.core import cpu_target
from jitkernels.microkernels.tuning_space import MAX_STREAMED_COST, STREAM_BYTES

LONG_ROWS = 128
"""With at least so many columns, the work per row is negligible."""
SATURATING_COST = 12
"""With at least so many additions per column, two vectors at once saturate the processor as four do."""
MAX_FEW_ELEMENTS = 16
"""Elements up to which a nest is computed one by one where it runs in a loop."""
FEW_COST = 30
"""The cost of an element, in additions, from which on vectors are faster even if they are partly filled."""
REGISTERS = 16
"""Vectors that a step may load and store: computing takes as many again, and processors have 32."""
COSTLY_FUNCTIONS = frozenset({
    "log", "log2", "log10", "log1p", "cbrt", "sinh", "arcsinh", "arccosh", "arctan2", "tan", "arcsin", "arccos",
    "arctan", "hypot", "fmod", "remainder",
})  # fmt: skip
"""Functions with so many instructions that an unroll factor of 4 is no faster than 2, and doubles the compile time."""
COSTLY_FUNCTIONS_OF = {
    "float32": COSTLY_FUNCTIONS | {"sin", "cos", "power", "exp", "expm1"},
    "float64": COSTLY_FUNCTIONS | {"arctanh", "floor_divide"},
}
"""For each dtype, `COSTLY_FUNCTIONS` and the functions for which the same holds in this precision only."""


def default_schedule(nest: LoopNest, arrays: Mapping[Node, StridedArray], *, is_in_loop: bool) -> NestSchedule:
    """The schedule of a nest by its operations and sizes.

    Inside a loop, its data is cached since the last iteration, so that vectors across cache lines dominate the time of
    stencils; for short sums the remainder of a row does.
    """
    if is_in_loop and is_few_elements(nest):
        return NestSchedule(1, 1, 0, Remainder.HALVED)
    widest, reduces = cpu_target.target().vector_bytes, bool(nest.reductions)
    if is_in_loop and (reduces if nest.has_short_rows else is_stencil(nest)):
        halves = not reduces and nest.widest >= 8
        return NestSchedule(min(32, widest), 1, 0, Remainder.HALVED if halves else Remainder.MASKED)
    return NestSchedule(min(64, widest), unroll(nest, arrays), stream(nest))


def is_few_elements(nest: LoopNest) -> bool:
    """Whether a nest computes few elements whatever the arguments are: one by one if it is in a loop.

    They are stored and loaded again, maybe in another shape, in the same iteration and the next one: processors
    forward a number from its store to a load, but no vector from several stores. Where LLVM sees both, numbers stay in
    registers.
    """
    extents = [*nest.rows, *nest.columns, *reduced_extents(nest)]
    is_static = not any(isinstance(extent, symbolic_dims.Extent) for extent in extents)
    elements = math.prod(map(int, extents)) if is_static else math.inf
    return elements <= 1 or elements <= MAX_FEW_ELEMENTS and nest.cost < FEW_COST


def stream(nest: LoopNest) -> int:
    """The least bytes of a result for streaming stores; 0 for never, where computing takes longer than storing."""
    return STREAM_BYTES if nest.cost < MAX_STREAMED_COST else 0


def is_stencil(nest: LoopNest) -> bool:
    """Whether an array is read with several access maps for one result, most of them not aligned to cache lines."""
    return not nest.reductions and any(
        leaf.shape and _have_shifted_access([*region.access_maps[leaf].values()])
        for region in nest.regions
        for leaf in region.leaves
    )


def _have_shifted_access(access_maps: Sequence[IndexMap]) -> bool:
    """Whether two access maps start a number of elements apart, not whole parts or rows of an array."""
    return any(_is_shifted(first, second) for first, second in combinations(access_maps, 2))


def _is_shifted(first: IndexMap, second: IndexMap) -> bool:
    pairs = [*zip(first, second, strict=True)]
    if any(isinstance(a - b, symbolic_dims.Extent) for (a, _), (b, _) in pairs):
        return False
    return any(bool(terms or other_terms) for (a, terms), (b, other_terms) in pairs if terms != other_terms or a - b)


def reduced_extents(nest: LoopNest) -> list[symbolic_dims.Number]:
    """The extents over which a nest reduces."""
    return [node.inputs[0].shape[axis] for node in nest.reductions for axis in node.options["axes"]]


def unroll(nest: LoopNest, arrays: Mapping[Node, StridedArray]) -> int:
    """The unroll factor: vectors per step."""
    if any(access_map.adds(store.region.root) for store in nest.stores):
        return 1  # scatter-adds run lane by lane
    is_long = bool(nest.rows) and traced_product(nest.columns) >= LONG_ROWS
    cost = nest.cost_of_columns if is_long else nest.cost
    reduces = bool(nest.reductions)
    is_short = reduces and nest.has_short_rows
    most = 4
    # Code for a single row serves all lengths, also large arrays, which steps of two would slow down.
    if is_short and (nest.rows or nest.cost_of_columns >= SATURATING_COST):
        most = 2
    if not nest.rows and any(map(_is_long, nest.nodes)):
        most = 2
    most = most if cost < 24 else 2 if cost < 60 else 1
    vectors_moved = 0 if reduces else _moved(nest, arrays)
    while most > 1 and most * vectors_moved > REGISTERS:
        most //= 2
    return most


def _moved(nest: LoopNest, arrays: Mapping[Node, StridedArray]) -> int:
    """Vectors loaded and stored per result: several for lanes at small strides."""
    read: dict[Any, int] = {}
    written = 0
    for store in nest.stores:
        if store.target_map != BY_NUMBERS:
            own = store.target_map or access_map.identity(store.region.root.ndim)
            written += _vectors(arrays[store.target], own)
        for leaf in store.region.leaves:
            for name, index_map in store.region.access_maps[leaf].items() if leaf.shape and leaf in arrays else ():
                read[leaf, name] = _vectors(arrays[leaf], index_map)
    return written + sum(read.values())


def _vectors(array: StridedArray, index_map: IndexMap) -> int:
    """The smallest stride of an access map, in vectors per result."""
    strides = [
        coefficient * stride
        for stride, (_, terms) in zip(array.strides, index_map, strict=True)
        for _, coefficient in terms
    ]
    return min((abs(int(stride)) for stride in strides if is_small_stride(stride)), default=1)


def _is_long(node: Node) -> bool:
    return node.operation in COSTLY_FUNCTIONS_OF.get(node.dtype, COSTLY_FUNCTIONS)
