"""Which loops a nest has: those that are one, that whose steps are lanes, and the order of the others."""

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.memory import Array, is_near
from jitkernels.graph.emit.scans import loop_of
from jitkernels.graph.emit.targets import Target, Targets
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.graph.ir import Node
from jitkernels.graph.short import FEW, MANY
from jitkernels.kept import kept_property
from jitkernels.native.language.types import NUMBERS

LONG = 16 * LINE
"""Bytes of rows whose whole lines are most of them."""
MOST_SCATTERED = 16
"""Lanes whose small elements are written one by one: each is some lines of code."""
CHEAP = 2.0
"""Additions of an element up to which it takes longer to read and write it."""


class Loops(Targets):
    """The loops of one nest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.directions = {
            store.order.index(dimension): direction
            for store in self.nest.stores
            for dimension, direction in store.directions.items()
        }
        self._lie_as_written()
        accesses = self._accesses()
        if self._go_forwards(accesses):
            accesses = self._accesses()
        self._collapse(accesses)
        self.scanned = self._scanned()
        if self.dropped:
            accesses = self._accesses()
        self.values.lane_loop = self.lane_loop = self._lane_loop(accesses)
        self.few = self._few()

    def _scanned(self) -> set[int]:
        """The loops along which something runs, whose steps come one after another."""
        if not any(node.operation == "scan" for cone in self.nest.cones for node in cone.nodes):
            return set()
        found = {
            loop_of(place, node.options["axis"])
            for target in self.targets
            for node, place in self.values.needed(target.node, target.place)
            if node.operation == "scan" and not self.values.is_leaf(node, place)
        }
        return {loop for loop in found if loop is not None}

    def _accesses(self) -> list[dict[int, Number]]:
        """How far each loop goes in each array that is read or written, and in counts."""
        found: list[dict[int, Number]] = []
        for target in self.targets:
            if target.array is not None:
                found.append(self.values.coefficients(target.array.strides, target.where or target.place)[1])
            for node, place in self.values.needed(target.node, target.place):
                if id(node) in self.values.arrays:
                    found.append(self.values.coefficients(self.values.arrays[id(node)].strides, place)[1])
                elif node.operation == "gather":
                    array = self.values.indexed(node)
                    found.append(self.values.coefficients(array.strides, self.inside(node, 0, place))[1])
                elif node.operation == "iota":
                    found.append(dict(place[node.options["axis"]][1]))
                elif node.operation == "reduce" and node.options["kind"] in ("argmin", "argmax"):
                    found.append(dict.fromkeys(self.loops_of(node), 1))
        return found

    def _lie_as_written(self) -> None:
        """Put the loops of elementwise results in the order in which these lie in memory."""
        if any(target.reduction is not None or target.array is None for target in self.targets):
            return
        if any(node.operation in ("scan", "placed") for cone in self.nest.cones for node in cone.nodes):
            return
        array, place = self.targets[0].array, self.targets[0].place
        assert array is not None, "asked"
        steps = self.values.coefficients(array.strides, place)[1]
        for group in (self.rows, self.columns):
            group.sort(key=lambda loop: -abs(extents.value_of(steps.get(loop, 0))))

    def _go_forwards(self, accesses: list[dict[int, Number]]) -> bool:
        """Let loops of elementwise results that go backwards in all arrays go forwards; whether there are any."""
        if any(target.reduction is not None or target.array is None for target in self.targets):
            return False
        if any(node.operation in ("scan", "placed") for cone in self.nest.cones for node in cone.nodes):
            return False
        found = False
        for loop in (*self.rows, *self.columns):
            steps = [access[loop] for access in accesses if not same(access.get(loop, 0), 0)]
            if steps and all(extents.value_of(step) < 0 for step in steps):
                found = True
                if loop in self.directions:
                    self.directions[loop] *= -1
                for target in self.targets:
                    target.place, target.where = (
                        self._turned(where, loop) for where in (target.place, target.where)
                    )
        return found

    def _turned(self, place: IndexMap, loop: int) -> IndexMap:
        """A place where a loop begins with its last step."""
        last = self.extents[loop] - 1
        found = []
        for start, steps in place:
            whole = sum((step for one, step in steps if one == loop), 0)
            turned = tuple((one, -step if one == loop else step) for one, step in steps)
            found.append((start + whole * last, turned))
        return tuple(found)

    def _collapse(self, accesses: list[dict[int, Number]]) -> None:
        """Make one loop of two where each array goes on at the end of the inner one as from one step to the next."""
        for group in (self.rows, self.columns):  # a loop of one step is none
            single = [loop for loop in group if same(self.extents[loop], 1) and not self._is_reduced(loop)]
            group[:] = [loop for loop in group if loop not in single]
            self.dropped |= frozenset(single)
        own = {target.loops for target in self.targets if target.loops and target.loops[0] >= cones.INNER}
        for group in (self.rows, self.columns, *map(list, sorted(own))):
            inner = group[-1] if group else 0
            for outer in reversed(group[:-1]):
                extent = self.extents[inner]
                if (
                    not {inner, outer} & self.directions.keys()
                    and all(same(access.get(outer, 0), access.get(inner, 0) * extent) for access in accesses)
                    and not any((inner in target.loops) != (outer in target.loops) for target in self.targets)
                    and not self.keeps_rows(outer, inner)
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
                target.place, target.where = self._without(target.place), self._without(target.where)
                target.loops = tuple(loop for loop in target.loops if loop not in self.dropped)
                if target.reduction is not None:
                    node, place = target.reduction
                    target.reduction = node, self._without(place)

    def keeps_rows(self, outer: int, inner: int) -> bool:  # noqa: ARG002  # of stencils
        """Whether two loops that could be one stay two, as rows have something in common."""
        return False

    def _is_reduced(self, loop: int) -> bool:
        return any(target.reduction is not None and loop in target.loops for target in self.targets)

    def _lane_loop(self, accesses: list[dict[int, Number]]) -> int | None:
        """The loop along which most arrays lie without gaps; of equals, the innermost."""
        candidates = [
            *self.rows,
            *(loop for loop in self.extents if loop not in self.rows and loop not in self.dropped),
        ]
        best, most = None, -1e9
        for loop in candidates:
            score = 0.0
            for access in accesses:
                step = access.get(loop, 0)
                score += 1 if same(step, 1) else 0.2 if same(step, 0) else 0.5 if is_near(step) else -1
            # A guess from the call that was traced, on which nothing but speed depends.
            length = extents.value_of(self.extents[loop])
            score -= 2 if length < 4 else 1 if length < 12 else 0
            if score >= most:
                best, most = loop, score
        return best

    def _few(self) -> int:
        """How many lanes there are where the loop of lanes is short and others go around it; 0 where it is not.

        Code for such loops alone: longer ones get their own. Short rows that are reduced have theirs in any case.
        """
        reduces = any(target.reduction for target in self.targets)
        if self.lane_loop is None or self.variant.any_size or (self.order and reduces):
            return 0
        if not reduces and self.nest.cost <= CHEAP and self._picks_bytes():
            return 1  # which vectors are put together of more slowly than they are copied
        if not reduces and self._scatters_bytes():
            return 1 if self.nest.cost <= CHEAP else MOST_SCATTERED
        count = self.extents[self.lane_loop]
        if extents.is_moving(count):
            return 0
        length = extents.value_of(count)
        others = [loop for loop in self.extents if loop != self.lane_loop and loop not in self.dropped]
        steps = extents.value_of(extents.product(self.extents[loop] for loop in others))
        if not 1 < length <= FEW or steps * length < MANY or self.lane_loop in self.scanned:
            return 0
        if isinstance(count, Extent):
            count.guard(FEW - count, ">=", is_choice=True)
        return 1 << (length - 1).bit_length()

    def _scatters_bytes(self) -> bool:
        """Whether lanes of small elements are written far from one another: no processor does that at once."""
        for target in self.targets:
            if target.array is None or NUMBERS[target.array.dtype].size > 2 or self.lane_loop is None:
                continue
            where = target.where or target.place
            step = self.values.coefficients(target.array.strides, where)[1].get(self.lane_loop, 0)
            if not same(step, 0) and not is_near(step):
                return True
        return False

    def _picks_bytes(self) -> bool:
        """Whether lanes of some small elements are far from one another."""
        found = [(target.node, target.place) for target in self.targets]
        for target in self.targets:
            found += self.values.needed(target.node, target.place)
        for node, place in found:
            array = self.values.arrays.get(id(node))
            if array is None or NUMBERS[array.dtype].size > 2 or self.lane_loop is None:
                continue
            step = self.values.coefficients(array.strides, place)[1].get(self.lane_loop, 0)
            if not same(step, 0) and not is_near(step):
                return True
        return False

    @property
    def streamed(self) -> list[Array]:
        """The results that are written past the caches: all those of a nest, in whole lines, or none.

        Nests are of one loop, or of rows along which a single result lies. Lines that are read as well are in the
        caches anyway.
        """
        loops = [*self.order, *self.columns]
        if not self.variant.stream or loops[-1:] != [self.lane_loop] or self.scanned or self.directions:
            return []
        if len(loops) == 2:
            return self._streamed_rows(*loops)
        found = [target.array for target in self.targets if self._is_streamed(target, loops)]
        arrays = [array for array in found if array is not None and len(loops) == 1]
        sizes = {NUMBERS[array.dtype].size for array in arrays}
        is_read = {array.word for array in arrays} & self.read_words
        return arrays if len(arrays) == len(self.targets) and len(sizes) == 1 and not is_read else []

    def _streamed_rows(self, row: int, column: int) -> list[Array]:
        """That of rows, where those of the call that was traced are so large in all."""
        roots = [target for target in self.targets if target.reduction is None]
        if len(roots) != 1 or not self._is_streamed(roots[0], [row, column]):
            return []
        array = roots[0].array
        assert array is not None, "asked"
        length = extents.value_of(self.extents[column]) * NUMBERS[array.dtype].size
        is_large = length >= LONG and extents.value_of(self.extents[row]) * length >= self.variant.stream
        is_asked = self.variant.stream == 1  # whatever was traced
        return [array] if (is_asked or is_large) and array.word not in self.read_words else []

    @property
    def read_words(self) -> set[int]:
        """The words of the frame that have the arrays that are read."""
        arrays = self.values.arrays
        return {arrays[key].word for key in self.nest.read_arrays if key in arrays}

    def _is_streamed(self, target: Target, loops: list[int]) -> bool:
        """Whether the steps of the last loop fill lines of the target's array one after another."""
        array = target.array
        if array is None or target.reduction is not None or not same(array.first, 0):
            return False
        if target.node.operation == "placed":
            return False
        first, steps = self.values.coefficients(array.strides, target.place)
        _, wide = self.lanes()
        is_dense = same(first, 0) and len(steps) == len(loops) and same(steps.get(loops[-1], 0), 1)
        return is_dense and wide * NUMBERS[array.dtype].size >= LINE

    @property
    def order(self) -> list[int]:
        """The loops of rows, that of lanes last."""
        return sorted(self.rows, key=lambda loop: loop == self.lane_loop)

    def lanes(self) -> tuple[int, int]:
        """Lanes of one vector, and of as many as a step takes."""
        narrow = max(self.variant.vector_bytes // self._widest, 1)
        if self.few and self.few < narrow:
            return self.few, self.few
        if self.lane_loop in self.scanned:
            return narrow, narrow
        return narrow, narrow * self.variant.unroll

    @kept_property
    def _widest(self) -> int:
        """Bytes of the largest element of which a vector is made."""
        inner = [target for target in self.targets if self.lane_loop in target.loops]
        if self.lane_loop in self.rows or not inner:
            nodes = [node for cone in self.nest.cones for node in (*cone.nodes, *cone.leaves.values())]
        else:  # what is computed once for a row does not count
            nodes = [node for one in inner for node, _ in self.values.needed(one.node, one.place)]
            nodes += [one.reduction[0] for one in inner if one.reduction]
        # A number that is the same for all elements fills no vector, nor does what they are counted with.
        fills = [
            node for node in nodes if node.shape and node.operation != "iota" and not self._is_one_index(node)
        ]
        return max([NUMBERS[node.dtype].size for node in fills], default=1)

    def _is_one_index(self, node: Node) -> bool:
        """Whether a node is the index of what is found in all there is: lanes are as many as of what is searched.

        Rows are most often too short for steps of so many.
        """
        return node.operation == "reduce" and node.options["kind"] in ("argmin", "argmax") and not self.rows

    @property
    def range_loop(self) -> int | None:
        """The outermost loop, parts of which can run apart; None where a reduction spans everything."""
        if any(target.node.operation == "placed" for target in self.targets):
            return None  # of equal numbers the last one counts
        if self.order:
            return self.order[0]
        if any(target.reduction for target in self.targets) or not self.columns or self.scanned:
            return None
        outermost = self._inner_order(tuple(self.columns))[0]
        return None if outermost in self.directions else outermost

    def _inner_order(self, loops: tuple[int, ...]) -> list[int]:
        order = [*self.rows, *self.columns]
        return sorted(
            loops, key=lambda loop: (loop == self.lane_loop, order.index(loop) if loop in order else loop)
        )


def least_steps(extent: Number) -> int:
    """The least that the extent of a loop is where code runs, by what was decided about it alone."""
    if not isinstance(extent, Extent):
        return int(extent)
    found = extents.least_of(extent) or 0
    for guard in extent.scope.guards.values():
        beyond = extent - guard.extent
        if guard.sign in (">", ">=") and not isinstance(beyond, Extent):
            found = max(found, int(beyond) + (guard.sign == ">"))
    return found


def most_steps(extent: Number) -> int | None:
    """The most that the extent of a loop is where code runs, by what was decided about it alone; None if any."""
    if not isinstance(extent, Extent):
        return int(extent)
    bounds = []
    for guard in extent.scope.guards.values():
        beyond = extent + guard.extent
        if guard.sign in (">", ">=", "==") and not isinstance(beyond, Extent):
            bounds.append(int(beyond) - (guard.sign == ">"))
        apart = extent - guard.extent
        if guard.sign == "==" and not isinstance(apart, Extent):
            bounds.append(int(apart))
    return min(bounds, default=None)
