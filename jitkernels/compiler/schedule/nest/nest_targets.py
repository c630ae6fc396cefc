"""The targets of a loop nest: its outputs and the inputs of its reductions, each in the phase behind its operands."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.compiler.schedule.nest.nest_values import NestValues, Pair


@dataclass
class NestTarget:
    """A computation of a phase: the input of a reduction, or an output to store. `loops`: the loops of its phase.

    `where`: the access map of the store.
    """

    node: Node
    index_map: IndexMap
    phase: int
    loops: tuple[int, ...]
    reduction: Pair | None = None
    array: StridedArray | None = None
    where: IndexMap = ()

    @property
    def reduced(self) -> Pair:
        """The reduction whose input this is, and its access map."""
        assert self.reduction is not None, "the input of a reduction"
        return self.reduction

    @property
    def output(self) -> StridedArray:
        assert self.array is not None, "an output"
        return self.array


@dataclass
class Targets:
    """The targets of one nest, and the loops around each. `directions`: those of loops with one: 1, or -1.

    `chosen`: what heuristics or the tuner chose; see `choose_schedule`. `any_size`: emit code for all sizes, not only
    for sizes such as the traced ones. `is_in_loop`: the nest runs again and again in a loop, serially, and its frame
    has a direction; `recent_words`: the frame words of arrays whose elements iterations of that loop store.
    """

    nest: LoopNest
    arrays: dict[Node, StridedArray]
    chosen: NestSchedule
    any_size: bool = False
    is_in_loop: bool = False
    recent_words: AbstractSet[int] = frozenset()
    extents: dict[int, Number] = field(init=False)
    dropped: frozenset[int] = field(init=False, default=frozenset())
    reducing: dict[Node, tuple[int, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        nest = self.nest
        loops = [*nest.rows, *nest.columns]
        self.extents = dict(enumerate(loops))
        self.rows = list(range(len(nest.rows)))
        self.columns = list(range(len(nest.rows), len(loops)))
        roots = {region.root for region in nest.regions}
        outside = {node: array for node, array in self.arrays.items() if node not in roots}
        self.values = NestValues(outside, self.inside)
        self.targets = self._targets()
        self.directions = {
            store.order.index(dimension): direction
            for store in nest.stores
            for dimension, direction in store.directions.items()
        }

    def phase_loops(self) -> Iterator[tuple[list[tuple[tuple[int, ...], list[NestTarget]]], list[NestTarget]]]:
        """Yield, phase by phase, the targets of each inner loop with these loops, and the outputs outside of them."""
        for phase in range(1, max((target.phase for target in self.targets), default=0) + 1):
            inner: dict[tuple[int, ...], list[NestTarget]] = {}
            own = [target for target in self.targets if target.phase == phase]
            for target in own:
                if target.loops:
                    inner.setdefault(target.loops, []).append(target)
            yield [*inner.items()], [target for target in own if not target.loops and target.array is not None]

    def inside(self, node: Node, operand_index: int, access_map_: IndexMap) -> IndexMap:
        """The access map of an operand. Loops of a reduction over the nest's columns are the nest's own."""
        operand_map = access_map.operand_access_map(node, operand_index, access_map_)
        if node.operation == "reduce":
            loops = dict(
                zip(
                    range(access_map.INNER, access_map.INNER + len(node.options["axes"])),
                    self.loops_of(node),
                    strict=True,
                )
            )
            operand_map = tuple(
                (start, tuple((loops.get(loop, loop), step) for loop, step in steps)) for start, steps in operand_map
            )
        return self._without(operand_map)

    def _without(self, access_map_: IndexMap) -> IndexMap:
        if not self.dropped:
            return access_map_
        return tuple(
            (start, tuple((loop, step) for loop, step in steps if loop not in self.dropped))
            for start, steps in access_map_
        )

    def loops_of(self, reduction: Node) -> tuple[int, ...]:
        """The loops of a reduction, the same also after some of them were collapsed."""
        if reduction not in self.reducing:
            self.reducing[reduction] = self._new_loops(reduction)
        return self.reducing[reduction]

    def _new_loops(self, reduction: Node) -> tuple[int, ...]:
        shape = [reduction.inputs[0].shape[i] for i in reduction.options["axes"]]
        if symbolic_dims.key_of_shape(shape) == symbolic_dims.key_of_shape(self.nest.columns):
            return tuple(range(len(self.nest.rows), len(self.nest.rows) + len(shape)))
        first = access_map.INNER
        while any(
            first + i in self.extents and not same(self.extents[first + i], extent) for i, extent in enumerate(shape)
        ):
            first += 64
        self.extents |= {first + i: extent for i, extent in enumerate(shape)}
        return tuple(range(first, first + len(shape)))

    def _targets(self) -> list[NestTarget]:
        targets: list[NestTarget] = []
        self.phases: dict[Any, int] = {}
        done: dict[Any, NestTarget] = {}
        for store in self.nest.stores:
            region, order, array = store.region, store.order, self.arrays[store.target]
            if store.target_map is not None and region.root.operation != "placed":
                array = array.region(store.target_map, region.root.ndim)
            index_map: IndexMap = tuple((0, ((order.index(i), 1),)) for i in range(region.root.ndim))
            targets += self._reductions(region.root, index_map, done)
            phase = 1 + self._last_phase(region.root, index_map)
            loops = tuple(self.columns) if region.root.ndim > len(self.rows) else ()
            where = index_map
            if region.root.operation == "placed":
                where = access_map.scattered_access_map(region.root, index_map)
            targets.append(NestTarget(region.root, index_map, phase, loops, array=array, where=where))
        return targets

    def _reductions(self, root: Node, index_map: IndexMap, done: dict[Any, NestTarget]) -> list[NestTarget]:
        """The reductions that a root depends on, in topological order."""
        results: list[NestTarget] = []
        stack: list[tuple[Node, IndexMap, bool]] = [(root, index_map, False)]
        seen: set[Any] = set()
        while stack:
            node, where, expanded = stack.pop()
            key = self.values.key(node, where)
            if expanded:
                inner = self.inside(node, 0, where)
                phase = 1 + self._last_phase(node.inputs[0], inner)
                self.phases[key] = phase
                target = NestTarget(node.inputs[0], inner, phase, self.loops_of(node), reduction=(node, where))
                done[key] = target
                results.append(target)
                continue
            if key in seen or key in done or node in self.values.arrays:
                continue
            seen.add(key)
            if node.operation == "reduce":
                stack.append((node, where, True))
            stack += [(operand, self.inside(node, i, where), False) for i, operand in enumerate(node.inputs)]
        return results

    def _last_phase(self, node: Node, index_map: IndexMap) -> int:
        """The phase of the last reduction that a node depends on; 0 if there is none."""
        last, seen = 0, set()
        stack = [(node, index_map)]
        while stack:
            current, where = stack.pop()
            key = self.values.key(current, where)
            if key in seen or current in self.values.arrays:
                continue
            seen.add(key)
            if key in self.phases:
                last = max(last, self.phases[key])
                continue
            stack += [(inner, self.inside(current, i, where)) for i, inner in enumerate(current.inputs)]
        return last
