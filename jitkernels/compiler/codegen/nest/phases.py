"""What a nest computes: the inputs of its reductions and its roots, each in the phase behind those that it needs."""

from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.values import Pair, Values
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.graph.nests import Nest
from jitkernels.records import record


@record
class Variant:
    """How a nest is made: bytes of a vector, and how many of them a step of the loop takes at once.

    `stream`: of results from so many bytes on, whole lines go past the caches, where they would not stay; 0 for never.
    `fetches`: what is read comes from memory, and what is reduced is asked for before it is needed.
    `is_delicate`: lanes that are off may set no flag of the processor, whatever they compute. `any_size`: no code is
    left out because sizes such as those traced do not want it. `halves`: what whole vectors leave of a row is done by
    half of one, and half of that, which is sooner done for a few lanes than a vector with lanes that are off.
    `neighbours`: rows that read some of the same elements are computed two at once (see `neighbour_rows`). `is_fresh`:
    the last element of a row may have been written just now (see `reduced_rows`).
    """

    vector_bytes: int = 64
    unroll: int = 2
    stream: int = 0
    fetches: bool = False
    is_delicate: bool = False
    any_size: bool = False
    halves: bool = False
    neighbours: bool = False
    is_fresh: bool = False


@dataclass
class Target:
    """What a phase computes: the input of a reduction, or a root to be stored. `loops` are those of its phase.

    `where`: the place in the array that it goes to.
    """

    node: Node
    place: IndexMap
    phase: int
    loops: tuple[int, ...]
    reduction: Pair | None = None
    array: Array | None = None
    where: IndexMap = ()


@dataclass
class Targets:
    """The targets of one nest, and the loops around each."""

    nest: Nest
    arrays: dict[int, Array]
    function: Function
    variant: Variant
    name: str
    extents: dict[int, Number] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()
    reducing: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nest = self.nest
        loops = [*nest.rows, *nest.columns]
        self.extents = dict(enumerate(loops))
        self.rows = list(range(len(nest.rows)))
        self.columns = list(range(len(nest.rows), len(loops)))
        inside = {id(store.cone.root) for store in nest.stores}
        outside = {key: array for key, array in self.arrays.items() if key not in inside}
        is_delicate = self.variant.is_delicate
        self.values = Values(self.function, None, outside, self.inside, is_delicate=is_delicate)
        self.targets = self._targets()

    def inside(self, node: Node, number: int, place: IndexMap) -> IndexMap:
        """The place of an input. Loops of a reduction over as many columns as the nest has are those."""
        where = cones.place_in(node, number, place)
        if node.operation == "reduce":
            loops = dict(
                zip(
                    range(cones.INNER, cones.INNER + len(node.options["axes"])),
                    self.loops_of(node),
                    strict=True,
                )
            )
            where = tuple(
                (start, tuple((loops.get(loop, loop), step) for loop, step in steps))
                for start, steps in where
            )
        return self._without(where)

    def _without(self, place: IndexMap) -> IndexMap:
        if not self.dropped:
            return place
        return tuple(
            (start, tuple((loop, step) for loop, step in steps if loop not in self.dropped))
            for start, steps in place
        )

    def loops_of(self, reduction: Node) -> tuple[int, ...]:
        """The loops over what a reduction reduces, the same also when some of them have become one."""
        if id(reduction) not in self.reducing:
            self.reducing[id(reduction)] = self._new_loops(reduction)
        return self.reducing[id(reduction)]

    def _new_loops(self, reduction: Node) -> tuple[int, ...]:
        shape = [reduction.inputs[0].shape[i] for i in reduction.options["axes"]]
        if extents.key_of_shape(shape) == extents.key_of_shape(self.nest.columns):
            return tuple(range(len(self.nest.rows), len(self.nest.rows) + len(shape)))
        first = cones.INNER
        while any(
            first + i in self.extents and not same(self.extents[first + i], one)
            for i, one in enumerate(shape)
        ):
            first += 64
        self.extents |= {first + i: one for i, one in enumerate(shape)}
        return tuple(range(first, first + len(shape)))

    def _targets(self) -> list[Target]:
        targets: list[Target] = []
        self.phases: dict[Any, int] = {}
        done: dict[Any, Target] = {}
        for store in self.nest.stores:
            cone, order, array = store.cone, store.order, self.arrays[id(store.target)]
            if store.region is not None and cone.root.operation != "placed":
                array = array.region(store.region, cone.root.ndim)
            place: IndexMap = tuple((0, ((order.index(i), 1),)) for i in range(cone.root.ndim))
            targets += self._reductions(cone.root, place, done)
            phase = 1 + self._last_phase(cone.root, place)
            loops = tuple(self.columns) if cone.root.ndim > len(self.rows) else ()
            where = place
            if cone.root.operation == "placed":
                where = cones.place_written(cone.root, place)
            targets.append(Target(cone.root, place, phase, loops, array=array, where=where))
        return targets

    def _reductions(self, root: Node, place: IndexMap, done: dict[Any, Target]) -> list[Target]:
        """The reductions that a root needs, each behind those that it needs itself."""
        found: list[Target] = []
        stack: list[tuple[Node, IndexMap, bool]] = [(root, place, False)]
        seen: set[Any] = set()
        while stack:
            node, where, expanded = stack.pop()
            key = self.values.key(node, where)
            if expanded:
                inner = self.inside(node, 0, where)
                phase = 1 + self._last_phase(node.inputs[0], inner)
                self.phases[key] = phase
                target = Target(node.inputs[0], inner, phase, self.loops_of(node), reduction=(node, where))
                done[key] = target
                found.append(target)
                continue
            if key in seen or key in done or id(node) in self.values.arrays:
                continue
            seen.add(key)
            if node.operation == "reduce":
                stack.append((node, where, True))
            stack += [(one, self.inside(node, i, where), False) for i, one in enumerate(node.inputs)]
        return found

    def _last_phase(self, node: Node, place: IndexMap) -> int:
        """The phase of the last reduction that a node needs; 0 if it needs none."""
        last, seen = 0, set()
        stack = [(node, place)]
        while stack:
            one, where = stack.pop()
            key = self.values.key(one, where)
            if key in seen or id(one) in self.values.arrays:
                continue
            seen.add(key)
            if key in self.phases:
                last = max(last, self.phases[key])
                continue
            stack += [(inner, self.inside(one, i, where)) for i, inner in enumerate(one.inputs)]
        return last
