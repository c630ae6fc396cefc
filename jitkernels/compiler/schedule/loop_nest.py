"""Loop nests before code generation: loops, the fusion regions computed in them, their stores, and the work."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.compiler.ir import access_map, builder, ops, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule import matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule

LITTLE = 8
"""Work is little if it is less than the rest by this factor."""
LARGE_ELEMENTS = 1 << 13
"""Elements from which a loop takes so long that a nest of its own costs nothing: about a microsecond."""
SHORT_BYTES = 512
"""Bytes of a row below which the remainder of steps of four vectors takes as long as the steps."""
BYTES_PER_ADDITION = 2
"""Bytes of a large array that are loaded or stored in the time of an addition."""


@dataclass
class Store:
    """The store of a region's root: to its own array, or to a part of the `target`.

    `order`: the dimension of the root that each loop of the nest is. `target_map`: the access map of the store in the
    target, None for all of it. `directions`: of the loops of an in-place update, by dimension of the root.
    """

    region: FusionRegion
    order: tuple[int, ...]
    target: Node
    target_map: IndexMap | None = None
    directions: Directions = field(default_factory=dict)


@dataclass
class LoopNest:
    """Loops over `rows`, and inside of them over `columns`, that compute roots, each in a fusion region of its own.

    A root has the extents of both, or of the rows alone. Once code is generated: `schedule`, whether the variant of
    that was `measured`, and `product`: the GEMM of which the nest is the epilogue.
    """

    rows: tuple[Number, ...]
    columns: tuple[Number, ...]
    stores: list[Store] = field(default_factory=list)
    schedule: NestSchedule | None = None
    measured: bool = False
    product: matmul_step.MatMulStep | None = None

    @property
    def variant(self) -> str:
        """The schedule in a few words; "" where none was chosen."""
        if self.schedule is None:
            return ""
        return self.schedule.description + (", measured" if self.measured else "")

    @property
    def regions(self) -> list[FusionRegion]:
        return [store.region for store in self.stores]

    @property
    def leaves(self) -> list[Node]:
        """The materialized nodes that are read, each once."""
        return [*dict.fromkeys(leaf for region in self.regions for leaf in region.leaves)]

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are computed, each once."""
        return [*dict.fromkeys(node for region in self.regions for node in region.nodes)]

    @property
    def reductions(self) -> list[Node]:
        return [node for region in self.regions for node in region.reductions]

    def gains(self, store: Store) -> bool:
        """Return whether one more output may make the nest faster: it reads an array of the nest, or is small."""
        shape = store.region.root.shape
        if any(map(symbolic_dims.is_loop_variant, shape)) or traced_product(shape) < LARGE_ELEMENTS:
            return True
        known = {leaf for other in self.stores for leaf in (*other.region.arrays, other.target)}
        return not store.region.arrays or not known.isdisjoint(store.region.arrays)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, whatever the sizes are."""
        return all(
            builder.is_unwritten(region.root) or any(symbolic_dims.same(extent, 0) for extent in region.root.shape)
            for region in self.regions
        )

    @property
    def has_short_rows(self) -> bool:
        """Whether rows are so short in the traced call that their remainder dominates."""
        return self.traced_row_elements * self.widest < SHORT_BYTES

    @property
    def cost(self) -> float:
        """The cost of an element, in additions."""
        return _cost(self.nodes)

    @property
    def cost_of_columns(self) -> float:
        """The same without what is done once for a row."""
        rows = traced_product(self.rows)
        return _cost([node for node in self.nodes if traced_product(node.shape) != rows])

    @property
    def work(self) -> Number:
        """Additions of four bytes, about: of every node as many as the loops that it depends on have iterations.

        Where loads and stores take longer than computing, their time. What is little beside the rest is left out: work
        is one product of extents mostly then, so that many functions have code in common.
        """
        most: dict[Node, tuple[int, Number]] = {}
        for region in self.regions:
            known: dict[frozenset[int], tuple[int, Number]] = {}
            for node in (*region.nodes, *region.leaves):
                for index_map in region.access_maps[node].values():
                    loops = access_map.loops_of(index_map)
                    if loops not in known:
                        trip_count = _trip_count(region, loops)
                        known[loops] = symbolic_dims.value_of(trip_count), trip_count
                    if node not in most or known[loops][0] > most[node][0]:
                        most[node] = known[loops]
        leaves, roots = {*self.leaves}, {region.root for region in self.regions}
        by_count: dict[Any, tuple[Number, list[Node], int]] = {}
        for node, (_, trip_count) in most.items():
            key = symbolic_dims.key_of(trip_count)
            _, nodes, nbytes = by_count.get(key, (trip_count, [], 0))
            if node not in leaves:
                nodes.append(node)
            if node in leaves or node in roots:
                nbytes += np.dtype(node.dtype).itemsize
            by_count[key] = trip_count, nodes, nbytes
        parts = [
            count * max(self._additions(nodes), nbytes // BYTES_PER_ADDITION)
            for count, nodes, nbytes in by_count.values()
        ]
        most_now = max(map(symbolic_dims.value_of, parts), default=0)
        return sum((part for part in parts if LITTLE * symbolic_dims.value_of(part) >= most_now), 0)

    @property
    def reads(self) -> list[tuple[Node, Number]]:
        """The arrays that are read, and how many elements of each the loops load."""
        result: dict[Node, Number] = {}
        for region in self.regions:
            for leaf in region.leaves:
                maps = region.access_maps[leaf].values()
                count = sum((_trip_count(region, access_map.loops_of(index_map)) for index_map in maps), 0)
                if leaf not in result or symbolic_dims.value_of(count) > symbolic_dims.value_of(result[leaf]):
                    result[leaf] = count
        return [*result.items()]

    @property
    def work_of_step(self) -> int:
        """Additions of four bytes that an element takes if every node is computed for it."""
        return self._additions(self.nodes)

    def _additions(self, nodes: list[Node]) -> int:
        """Those of nodes for one iteration: vectors have half as many elements of eight bytes."""
        return max(round(_cost(nodes) * self.widest / 4), 1)

    @property
    def widest(self) -> int:
        """Bytes of the widest element that is read or written."""
        return max(np.dtype(node.dtype).itemsize for region in self.regions for node in (region.root, *region.leaves))

    @property
    def traced_row_elements(self) -> int:
        """Elements that are stored or reduced for each row of the call that is traced."""
        return max(map(symbolic_dims.value_of, [symbolic_dims.product(self.columns), *_reduced(self.nodes)]))

    @property
    def read_arrays(self) -> list[Node]:
        """The arrays that are read, without scalars."""
        return [leaf for leaf in self.leaves if leaf.shape]


def _cost(nodes: list[Node]) -> float:
    return sum(min(ops.own_cost(node), 15.0) for node in nodes)


def _trip_count(region: FusionRegion, loops: frozenset[int]) -> Number:
    """The iterations of some loops of a region; those of its reductions one after another.

    Of an array that indices pick from, as many elements are loaded as the root has.
    """
    if access_map.ANYWHERE in loops:
        return symbolic_dims.product(region.root.shape)
    outer = symbolic_dims.product(region.root.shape[loop] for loop in loops if loop < access_map.INNER)
    if all(loop < access_map.INNER for loop in loops):
        return outer
    return outer * sum(_reduced(region.reductions), 0)


def _reduced(nodes: list[Node]) -> list[Number]:
    """How many elements the reductions among nodes take, those over the same extents once."""
    shapes = [
        [node.inputs[0].shape[axis] for axis in node.options["axes"]] for node in nodes if node.operation == "reduce"
    ]
    return [*{symbolic_dims.key_of_shape(shape): symbolic_dims.product(shape) for shape in shapes}.values()]
