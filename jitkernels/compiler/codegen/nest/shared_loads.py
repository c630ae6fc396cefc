"""Common loads of a stencil's rows: loads that several rows share, or that are a few elements apart.

Loads less than half a vector apart come from one vector and the few elements behind it, shifted by some lanes: such
loops are bound by vectors that straddle two cache lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, memory_type
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter
from jitkernels.compiler.codegen.nest.nest_targets import NestTarget
from jitkernels.compiler.codegen.nest.value_emitter import Pair
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
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


class SharedLoads(LoopEmitter):
    """Finds the loads that rows share, and emits them once."""

    @property
    def may_share_loads(self) -> bool:
        """Whether rows may share loads: the schedule allows it, and the loop is bound by loads."""
        if not self.variant.jams_rows or self.variant.any_size or self.nest.cost >= LOAD_COMPUTE_BOUND_COST:
            return False
        is_excluded = any(node.operation in ("gather", "placed", "scan") for node in self.nest.nodes)
        return not self.directions and not is_excluded

    def keeps_rows(self, outer: int, inner: int) -> bool:
        """Return whether an iteration of the outer loop loads what the previous one did, in rows long enough."""
        count = self.extents[inner]
        if not self.may_share_loads:
            return False
        least = MIN_UNCOLLAPSED_VECTORS * cpu_target.target().vector_bytes
        if symbolic_dims.is_loop_variant(count) or symbolic_dims.value_of(count) * self.nest.widest < least:
            return False
        offsets_by_array: dict[Any, list[Number]] = {}
        for node, access_map in self.reads(self.targets):
            array = self.values.arrays[node]
            first, steps = self.values.coefficients(array.strides, access_map)
            if outer in steps:
                offsets_by_array.setdefault(word_of(array, steps), [steps[outer]]).append(first + array.first)
        return any(
            same(earlier + step, later)
            for step, *firsts in offsets_by_array.values()
            for earlier, later in product(firsts, firsts)
        )

    def reads(self, targets: Sequence[NestTarget]) -> list[Pair]:
        """The array loads of targets, each access map once."""
        pairs = [pair for target in targets for pair in self.values.needed(target.node, target.index_map)]
        loads = {self.values.key(*pair): pair for pair in pairs}.values()
        return [(node, access_map) for node, access_map in loads if access_map and node in self.values.arrays]

    def load_group(self, block: Block, group: LoadGroup) -> None:
        """Load a vector, and shift it for the loads that begin at some of its lanes."""
        lanes, new, dtype = self.values.lanes(block), self.function.new, group.array.dtype
        begin, size = min(group.reads), NUMBERS[dtype].size
        span = max(group.reads) - begin
        kind, tail_type = memory_type(dtype, lanes), memory_type(dtype, span)
        home, pointer, _ = self.values.address(block, group.array, group.reads[begin][0][1])
        first = self.values.load_at(home, block, group.array, pointer, 1).text
        tail_address = new(home, f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {lanes}")
        tail = new(home, f"load {tail_type}, ptr {tail_address}, align {size}")
        if span == 1:
            tail = new(home, f"insertelement {kind} poison, {tail_type} {tail}, i64 0")
        else:
            padded = (lane if lane < span else "poison" for lane in range(lanes))
            tail = self.function.shuffle(home, memory_type(dtype), span, tail, "poison", padded)
        for distance, pairs in group.reads.items():
            text = first
            if distance > begin:
                numbers = (lane + distance - begin for lane in range(lanes))
                text = self.function.shuffle(home, memory_type(dtype), lanes, first, tail, numbers)
            for pair in pairs:
                home.known[self.values.key(*pair)] = home, Register(text, dtype, lanes)

    def whole_vector(self) -> int:
        """The lanes of the widest vector."""
        return max(cpu_target.target().vector_bytes // self._widest, 1)

    def rows_share(self, loop: int, targets: Sequence[NestTarget]) -> bool:
        """Return whether two iterations of a loop load less than twice as much as one."""
        return len(self.load_groups_of(self.two_rows(loop, targets))) < 2 * len(self.load_groups_of(targets))

    def two_rows(self, loop: int, targets: Sequence[NestTarget]) -> list[NestTarget]:
        return [
            *targets,
            *(
                replace(target, index_map=_next(target.index_map, loop), where=_next(target.where, loop))
                for target in targets
            ),
        ]  # fmt: skip

    def load_groups_of(self, targets: Sequence[NestTarget]) -> list[LoadGroup]:
        """The loads of an iteration of all loops; loads less than half a vector apart are one group."""
        lanes, result, inner = self.whole_vector(), list[LoadGroup](), self.vector_loop
        for node, access_map in self.reads(targets):
            array = self.values.arrays[node]
            first, steps = self.values.coefficients(array.strides, access_map)
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
