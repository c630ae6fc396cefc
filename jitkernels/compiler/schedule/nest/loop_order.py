"""The loops of a nest: collapse them, choose the lane loop (vectorization), and order the others.

The lane loop is the innermost one, except in transposes: there a loop runs inside of it along which the gathered array
is contiguous, so that the lines of one vector of lanes serve the next ones while they are in the L1 cache.
"""

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.static_dim_policy import MAX_SHORT_TRIP_COUNT, MIN_STATIC_ELEMENTS
from jitkernels.compiler.ir.strided_array import StridedArray, is_small_stride
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget, Targets
from jitkernels.compiler.schedule.nest.nest_values import scanned_loop
from jitkernels.compiler.schedule.nest.scratch_values import choose_scratch_values
from jitkernels.compiler.schedule.nest.shared_loads import keeps_rows
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

MAX_SCATTERED = 16
"""The most lanes of small elements that are stored one by one: each takes some instructions."""
COMPUTE_BOUND_COST = 12
"""The cost of an element, in additions, from which on the loop is bound by computation, not by stores."""
LONG_REDUCTION = 8
"""Elements from which on a reduction takes longer than storing its result in several vectors."""
CHEAP = 2.0
"""The cost of an element, in additions, up to which memory is the bottleneck."""


class Loops(Targets):
    """The loops of one nest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._interchange_loops()
        accesses = self._accesses()
        if self._reverse_backward_loops(accesses):
            accesses = self._accesses()
        self._collapse(accesses)
        self.scanned = self._scanned()
        if self.dropped:
            accesses = self._accesses()
        self.lane_loop = self._lane_loop(accesses)
        self.short_lanes = self._short_lanes()
        self.gathered_run = self._gathered_run(accesses)
        self.lanes, self.step_lanes = self._lanes()
        self.scratch_values = choose_scratch_values(self.nest, self.targets, self.values)

    @property
    def reduces(self) -> bool:
        return any(target.reduction is not None for target in self.targets)

    @property
    def _is_elementwise(self) -> bool:
        """Whether all iterations are independent, and each stores its elements at its own indices."""
        operations = {node.operation for node in self.nest.nodes}
        return operations.isdisjoint(("scan", "placed")) and all(target.array is not None for target in self.targets)

    def _scanned(self) -> set[int]:
        """The loops along which a scan runs: their iterations are sequential."""
        if not any(node.operation == "scan" for region in self.nest.regions for node in region.nodes):
            return set()
        loops = {
            scanned_loop(index_map, node.options["axis"])
            for target in self.targets
            for node, index_map in self.values.needed(target.node, target.index_map)
            if node.operation == "scan" and not self.values.is_leaf(node, index_map)
        }
        return {loop for loop in loops if loop is not None}

    def _accesses(self) -> list[dict[int, Number]]:
        """The coefficients of each loop, for every array that is loaded or stored and every iota."""
        results: list[dict[int, Number]] = []
        for target in self.targets:
            if target.array is not None:
                results.append(target.array.coefficients(target.where or target.index_map)[1])
            for node, index_map in self.values.needed(target.node, target.index_map):
                if node in self.values.arrays:
                    results.append(self.values.arrays[node].coefficients(index_map)[1])
                elif node.operation == "gather":
                    array = self.values.indexed(node)
                    results.append(array.coefficients(self.inside(node, 0, index_map))[1])
                elif node.operation == "iota":
                    results.append(dict(index_map[node.options["axis"]][1]))
                elif node.operation == "reduce" and node.options["kind"] in ("argmin", "argmax"):
                    results.append(dict.fromkeys(self.loops_of(node), 1))
        return results

    def _interchange_loops(self) -> None:
        """Order the loops of elementwise outputs by their strides in memory (loop interchange)."""
        if not self._is_elementwise:
            return
        first = self.targets[0]
        steps = first.output.coefficients(first.index_map)[1]
        for group in (self.rows, self.columns):
            group.sort(key=lambda loop: -abs(symbolic_dims.value_of(steps.get(loop, 0))))

    def _reverse_backward_loops(self, accesses: list[dict[int, Number]]) -> bool:
        """Reverse loops of elementwise outputs that run backwards in all arrays; return whether there are any."""
        if not self._is_elementwise:
            return False
        reversed_any = False
        for loop in (*self.rows, *self.columns):
            steps = [access[loop] for access in accesses if not same(access.get(loop, 0), 0)]
            if steps and all(symbolic_dims.value_of(step) < 0 for step in steps):
                reversed_any = True
                if loop in self.directions:
                    self.directions[loop] *= -1
                for target in self.targets:
                    target.index_map, target.where = (
                        self._reversed(where, loop) for where in (target.index_map, target.where)
                    )
        return reversed_any

    def _reversed(self, index_map: IndexMap, loop: int) -> IndexMap:
        last = self.extents[loop] - 1
        results = []
        for start, steps in index_map:
            whole = sum((step for number, step in steps if number == loop), 0)
            reversed_steps = tuple((number, -step if number == loop else step) for number, step in steps)
            results.append((start + whole * last, reversed_steps))
        return tuple(results)

    def _collapse(self, accesses: list[dict[int, Number]]) -> None:
        """Collapse adjacent loops where every array continues from the inner into the outer one."""
        for group in (self.rows, self.columns):  # drop loops of one iteration
            single = [loop for loop in group if same(self.extents[loop], 1) and not self._is_reduced(loop)]
            group[:] = [loop for loop in group if loop not in single]
            self.dropped |= frozenset(single)
        own = {target.loops for target in self.targets if target.loops and target.loops[0] >= access_map.INNER}
        for group in (self.rows, self.columns, *map(list, sorted(own))):
            inner = group[-1] if group else 0
            for outer in reversed(group[:-1]):
                extent = self.extents[inner]
                if (
                    not {inner, outer} & self.directions.keys()
                    and all(same(access.get(outer, 0), access.get(inner, 0) * extent) for access in accesses)
                    and not any((inner in target.loops) != (outer in target.loops) for target in self.targets)
                    and not keeps_rows(self, outer, inner)
                ):
                    self.extents[inner] = self.extents[outer] * extent
                    for access in accesses:
                        access.pop(outer, None)
                    group.remove(outer)
                    self.dropped |= {outer}
                else:
                    inner = outer
        if self.dropped:
            for target in self.targets:
                target.index_map, target.where = self._without(target.index_map), self._without(target.where)
                target.loops = tuple(loop for loop in target.loops if loop not in self.dropped)
                if target.reduction is not None:
                    node, index_map = target.reduction
                    target.reduction = node, self._without(index_map)

    def _is_reduced(self, loop: int) -> bool:
        return any(target.reduction is not None and loop in target.loops for target in self.targets)

    def _lane_loop(self, accesses: list[dict[int, Number]]) -> int | None:
        """Choose the loop with unit stride in most arrays; of equals, the innermost."""
        candidates = [
            *self.rows,
            *(loop for loop in self.extents if loop not in self.rows and loop not in self.dropped),
        ]
        best, most = None, -1e9
        for loop in candidates:
            score = 0.0
            for access in accesses:
                step = access.get(loop, 0)
                score += 1 if same(step, 1) else 0.2 if same(step, 0) else 0.5 if is_small_stride(step) else -1
            # A heuristic from the traced call's sizes: only speed depends on it.
            length = symbolic_dims.value_of(self.extents[loop])
            score -= 2 if length < 4 else 1 if length < 12 else 0
            if score >= most:
                best, most = loop, score
        return best

    def _gathered_run(self, accesses: list[dict[int, Number]]) -> int | None:
        """The loop of columns along which an array is contiguous that lanes gather from large strides, in a transpose.

        That it has full cache lines is a heuristic from the traced call's sizes.
        """
        lane = self.lane_loop
        if self.reduces or lane not in self.columns or self.short_lanes or self.scanned or self.directions:
            return None
        if any(target.array is None or target.node.operation == "placed" for target in self.targets):
            return None
        for access in accesses:
            step = access.get(lane, 0)
            if same(step, 0) or is_small_stride(step):
                continue
            for loop in self.columns:
                step = access.get(loop, 0)
                is_long = symbolic_dims.value_of(self.extents[loop]) * self.widest >= CACHE_LINE_BYTES
                if (same(step, 1) or same(step, -1)) and is_long:
                    return loop
        return None

    def _short_lanes(self) -> int:
        """The lanes of a short lane loop inside of others, 0 if it is not short.

        Such a loop gets code specialized for short loops. Short rows that are reduced have their own code in any
        case.
        """
        reduces = self.reduces
        if self.lane_loop is None or self.any_size or (self.order and reduces):
            return 0
        if not reduces and self.nest.cost <= CHEAP and self._picks_bytes():
            return 1  # assembling vectors of bytes takes longer than copying the bytes
        if not reduces and self._scatters_bytes():
            return 1 if self.nest.cost <= CHEAP else MAX_SCATTERED
        count = self.extents[self.lane_loop]
        if symbolic_dims.is_loop_variant(count):
            return 0
        length = symbolic_dims.value_of(count)
        others = [loop for loop in self.extents if loop != self.lane_loop and loop not in self.dropped]
        steps = traced_product(self.extents[loop] for loop in others)
        if (
            not 1 < length <= MAX_SHORT_TRIP_COUNT
            or steps * length < MIN_STATIC_ELEMENTS
            or self.lane_loop in self.scanned
        ):
            return 0
        if isinstance(count, Extent):
            count.guard(MAX_SHORT_TRIP_COUNT - count, ">=", is_choice=True)
        return 1 << (length - 1).bit_length()

    def _scatters_bytes(self) -> bool:
        """Return whether lanes of small elements are stored with a large stride.

        There are no such scatter instructions.
        """
        return any(self._scatters(target.array, target.where or target.index_map) for target in self.targets)

    def _picks_bytes(self) -> bool:
        """Return whether lanes of small elements are loaded with a large stride."""
        accesses = [(target.node, target.index_map) for target in self.targets]
        for target in self.targets:
            accesses += self.values.needed(target.node, target.index_map)
        return any(self._scatters(self.values.arrays.get(node), index_map) for node, index_map in accesses)

    def _scatters(self, array: StridedArray | None, index_map: IndexMap) -> bool:
        """Whether lanes are small elements at a large stride."""
        if array is None or NUMBERS[array.dtype].size > 2 or self.lane_loop is None:
            return False
        step = array.coefficients(index_map)[1].get(self.lane_loop, 0)
        return not same(step, 0) and not is_small_stride(step)

    @property
    def read_words(self) -> set[int]:
        """The frame words of the arrays that are loaded."""
        arrays = self.values.arrays
        return {arrays[leaf].word for leaf in self.nest.read_arrays if leaf in arrays}

    @property
    def order(self) -> list[int]:
        """The row loops, the lane loop last."""
        return sorted(self.rows, key=lambda loop: loop == self.lane_loop)

    def _lanes(self) -> tuple[int, int]:
        """The lanes of one vector, and those of an unrolled iteration."""
        narrow = max(self.chosen.vector_bytes // self.widest, 1)
        if self.short_lanes and self.short_lanes < narrow:
            return self.short_lanes, self.short_lanes
        if self.lane_loop in self.scanned or self.gathered_run is not None:
            return narrow, narrow
        return narrow, narrow * self.chosen.unroll

    @unlocked_cached_property
    def widest(self) -> int:
        """Bytes of the widest element that is vectorized."""
        inner = [target for target in self.targets if self.lane_loop in target.loops]
        if self.lane_loop in self.rows:  # what is computed once of a long reduction does not count
            inner = [target for target in self.targets if self._is_long_reduction(target)]
        if not inner:
            nodes = [node for region in self.nest.regions for node in (*region.nodes, *region.leaves)]
        else:  # values computed once per row do not count
            nodes = [node for target in inner for node, _ in self.values.needed(target.node, target.index_map)]
            nodes += [target.reduction[0] for target in inner if target.reduction]
        # Scalars fill no vector, nor do indices.
        fills = [node for node in nodes if node.shape and node.operation != "iota" and not self._is_one_index(node)]
        return max([NUMBERS[PLANES.get(node.dtype, node.dtype)].size for node in fills], default=1)

    def _is_long_reduction(self, target: NestTarget) -> bool:
        """Whether each lane of the rows reduces many elements, now."""
        loops = [loop for loop in target.loops if loop in self.extents and loop not in self.rows]
        return target.reduction is not None and traced_product(self.extents[loop] for loop in loops) >= LONG_REDUCTION

    def _is_one_index(self, node: Node) -> bool:
        """Return whether a node is the index found in the whole array: the searched elements determine the lanes.

        Rows are mostly too short for so many lanes.
        """
        return node.operation == "reduce" and node.options["kind"] in ("argmin", "argmax") and not self.rows

    @property
    def parallel_loop(self) -> int | None:
        """The outermost loop, ranges of which can run in parallel; None where a reduction spans everything."""
        if any(target.node.operation == "placed" for target in self.targets):
            return None  # of equal indices the last store wins
        if self.order:
            return self.order[0]
        if self.reduces or not self.columns or self.scanned:
            return None
        outermost = self.inner_order(tuple(self.columns))[0]
        return None if outermost in self.directions else outermost

    def inner_order(self, loops: tuple[int, ...]) -> list[int]:
        order = [*self.rows, *self.columns]
        last = [self.lane_loop, self.gathered_run]
        outer = sorted(set(loops) - {*last}, key=lambda loop: order.index(loop) if loop in order else loop)
        return outer + [loop for loop in last if loop in loops]
