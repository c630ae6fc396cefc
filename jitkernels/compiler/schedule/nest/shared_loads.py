"""Common loads of a stencil's rows: loads that several rows share, or that are a few elements apart.

Loads less than half a vector apart come from one vector and the few elements behind it, shifted by some lanes: such
loops are bound by vectors that straddle two cache lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.schedule.nest.heuristics import is_stencil
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget, Targets
from jitkernels.compiler.schedule.nest.nest_values import NestValues, Pair
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

LOAD_COMPUTE_BOUND_COST = 24
"""The cost of an element, in additions, from which on the loop is bound by computation, not by loads."""
MOVED = (4, 8)
"""Sizes of elements that processors with 64-byte vectors shift by lanes in one instruction."""
MIN_UNCOLLAPSED_VECTORS = 2
"""The least vectors of a row for which contiguous rows are not collapsed."""


@dataclass
class LoadGroup:
    """Loads of one array that are a few elements apart, by their distance from the first one."""

    array: StridedArray
    first: Number
    moves: Any
    reads: dict[int, list[Pair]] = field(default_factory=dict)


def may_share_loads(own: Targets) -> bool:
    """Whether rows may share loads: those of long stencils in loops, which are bound by loads and not unrolled."""
    if not own.is_in_loop or own.any_size or own.chosen.unroll > 1 or own.nest.cost >= LOAD_COMPUTE_BOUND_COST:
        return False
    if own.nest.has_short_rows or not is_stencil(own.nest):
        return False
    is_excluded = any(node.operation in ("gather", "placed", "scan") for node in own.nest.nodes)
    return not own.directions and not is_excluded


def keeps_rows(own: Targets, outer: int, inner: int) -> bool:
    """Return whether an iteration of the outer loop loads what the previous one did, in rows long enough.

    Then the two loops are not collapsed.
    """
    count = own.extents[inner]
    if not may_share_loads(own):
        return False
    least = MIN_UNCOLLAPSED_VECTORS * cpu_target.target().vector_bytes
    if symbolic_dims.is_loop_variant(count) or symbolic_dims.value_of(count) * own.nest.widest < least:
        return False
    offsets_by_array: dict[Any, list[Number]] = {}
    for node, access_map in array_loads(own.values, own.targets):
        array = own.values.arrays[node]
        first, steps = array.coefficients(access_map)
        if outer in steps:
            offsets_by_array.setdefault(word_of(array, steps), [steps[outer]]).append(first + array.first)
    return any(
        same(earlier + step, later)
        for step, *firsts in offsets_by_array.values()
        for earlier, later in product(firsts, firsts)
    )


def array_loads(values: NestValues, targets: Sequence[NestTarget]) -> list[Pair]:
    """The array loads of targets, each access map once."""
    pairs = [pair for target in targets for pair in values.needed(target.node, target.index_map)]
    loads = {values.key(*pair): pair for pair in pairs}.values()
    return [(node, access_map) for node, access_map in loads if access_map and node in values.arrays]


def rows_share(values: NestValues, targets: Sequence[NestTarget], rows: int, inner: int, lanes: int) -> bool:
    """Return whether two iterations of the loop `rows` load less than twice as much as one."""
    both = load_groups(values, two_rows(targets, rows), inner, lanes)
    return len(both) < 2 * len(load_groups(values, targets, inner, lanes))


def two_rows(targets: Sequence[NestTarget], loop: int) -> list[NestTarget]:
    """The targets of two iterations of a loop."""
    return [
        *targets,
        *(
            replace(target, index_map=_next(target.index_map, loop), where=_next(target.where, loop))
            for target in targets
        ),
    ]  # fmt: skip


def load_groups(values: NestValues, targets: Sequence[NestTarget], inner: int, lanes: int) -> list[LoadGroup]:
    """The loads of an iteration of all loops by vectors; loads less than half a vector apart are one group."""
    result = list[LoadGroup]()
    for node, access_map in array_loads(values, targets):
        array = values.arrays[node]
        first, steps = array.coefficients(access_map)
        if not steps:
            continue
        size = NUMBERS[array.dtype].size
        coefficients = word_of(array, steps)
        is_shiftable = same(steps.get(inner, 0), 1) and lanes * size == CACHE_LINE_BYTES and size in MOVED
        most = lanes // 2 if is_shiftable else 0
        for group in result:
            distance = first + array.first - group.first
            if group.moves == coefficients and not isinstance(distance, Extent):
                distances = [*group.reads, int(distance)]
                if max(distances) - min(distances) <= most:
                    group.reads.setdefault(int(distance), []).append((node, access_map))
                    break
        else:
            result.append(LoadGroup(array, first + array.first, coefficients, {0: [(node, access_map)]}))
    return result


def word_of(array: StridedArray, steps: dict[int, Number]) -> Any:
    """The key of loads whose distance is the same in all iterations."""
    return array.word, tuple((loop, symbolic_dims.key_of(steps[loop])) for loop in sorted(steps))


def _next(access_map: IndexMap, loop: int) -> IndexMap:
    """The access map one iteration of a loop later."""
    return tuple(
        (start + sum((step for number, step in coefficients if number == loop), 0), coefficients)
        for start, coefficients in access_map
    )
