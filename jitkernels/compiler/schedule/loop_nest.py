"""A loop nest as it is planned: its loops, what is computed in them and where that goes, and how much work that is."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.compiler.ir import access_map, builder, op_cost, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import product_now
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule import matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions

LITTLE = 8
"""How many times less than the rest is little work."""
BYTES = 2
"""Of a large array, how many bytes are read or written in the time of an addition."""


@dataclass
class Store:
    """A root that is computed in a nest, and where it goes: its own array, or a region of the `target`'s.

    `order`: the dimension of the root that each loop of the nest is. `region`: an index map of the target.
    `directions`: of dimensions of the root that have to go in one, as it is stored over what it is computed from.
    """

    cone: FusionRegion
    order: tuple[int, ...]
    target: Node
    region: IndexMap | None = None
    directions: Directions = field(default_factory=dict)


@dataclass
class Nest:
    """Loops over `rows`, and inside of them over `columns`, that compute roots, each in a cone of its own.

    A root has the extents of both, or of the rows alone. `variant`: how its code is made, in words, once that is so,
    and `product`: whose rows it takes as soon as each is done.
    """

    rows: tuple[Number, ...]
    columns: tuple[Number, ...]
    stores: list[Store] = field(default_factory=list)
    variant: str = ""
    product: matmul_step.Product | None = None

    @property
    def cones(self) -> list[FusionRegion]:
        return [store.cone for store in self.stores]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, whatever the sizes are."""
        return all(
            builder.is_unwritten(cone.root) or any(symbolic_dims.same(extent, 0) for extent in cone.root.shape)
            for cone in self.cones
        )

    @property
    def cost(self) -> float:
        """What an element takes, in additions."""
        return sum(min(op_cost.own_cost(node), 15.0) for node in self.nodes)

    @property
    def cost_of_columns(self) -> float:
        """The same without what is done once for a row."""
        rows = product_now(self.rows)
        inside = [node for node in self.nodes if product_now(node.shape) != rows]
        return sum(min(op_cost.own_cost(node), 15.0) for node in inside)

    @property
    def nodes(self) -> list[Node]:
        """What is computed, each once."""
        return [*{id(node): node for cone in self.cones for node in cone.nodes}.values()]

    @property
    def work(self) -> Number:
        """Additions of four bytes, about: of every node as many as the loops have steps that it depends on.

        Where reading and writing takes longer than computing, so much. What is little beside the rest is left out: work
        is one product of extents mostly then, so that many functions have code in common (see `extents.content`).
        """
        most: dict[int, tuple[int, Number, Node]] = {}
        for cone in self.cones:
            known: dict[frozenset[int], tuple[int, Number]] = {}
            for node in (*cone.nodes, *cone.leaves.values()):
                for place in cone.places[id(node)].values():
                    loops = access_map.loops_of(place)
                    if loops not in known:
                        steps = self._steps(cone, loops)
                        known[loops] = symbolic_dims.value_of(steps), steps
                    if id(node) not in most or known[loops][0] > most[id(node)][0]:
                        most[id(node)] = *known[loops], node
        read = {key for cone in self.cones for key in cone.leaves}
        written = {id(cone.root) for cone in self.cones}
        found: dict[Any, tuple[Number, list[Node], int]] = {}
        for _, steps, node in most.values():
            key = symbolic_dims.key_of(steps)
            _, nodes, moved = found.get(key, (steps, [], 0))
            if id(node) not in read:
                nodes.append(node)
            if id(node) in read or id(node) in written:
                moved += np.dtype(node.dtype).itemsize
            found[key] = steps, nodes, moved
        parts = [steps * max(self._additions(nodes), moved // BYTES) for steps, nodes, moved in found.values()]
        most_now = max(map(symbolic_dims.value_of, parts), default=0)
        return sum((part for part in parts if LITTLE * symbolic_dims.value_of(part) >= most_now), 0)

    @property
    def reads(self) -> list[tuple[Node, Number]]:
        """The arrays that are read, and how many elements of each the loops come by."""
        found: dict[int, tuple[Node, Number]] = {}
        for cone in self.cones:
            for key, leaf in cone.leaves.items():
                places = cone.places[key].values()
                steps = sum((self._steps(cone, access_map.loops_of(place)) for place in places), 0)
                if key not in found or symbolic_dims.value_of(steps) > symbolic_dims.value_of(found[key][1]):
                    found[key] = leaf, steps
        return [*found.values()]

    @property
    def work_of_step(self) -> int:
        """Additions of four bytes that an element takes if every node is computed for it."""
        return self._additions(self.nodes)

    def _additions(self, nodes: list[Node]) -> int:
        """Those of nodes for one step: vectors have half as many elements of eight bytes."""
        cost = sum(min(op_cost.own_cost(node), 15.0) for node in nodes)
        return max(round(cost * self.widest / 4), 1)

    @property
    def widest(self) -> int:
        """Bytes of the widest element that is read or written."""
        return max(np.dtype(node.dtype).itemsize for cone in self.cones for node in (cone.root, *cone.leaves.values()))

    @property
    def row_now(self) -> int:
        """Elements that are stored or reduced for each row of the call that is traced."""
        return max(map(symbolic_dims.value_of, [symbolic_dims.product(self.columns), *_reduced(self.nodes)]))

    @property
    def read_arrays(self) -> set[int]:
        """The arrays that are read, by their ids."""
        return {key for cone in self.cones for key, leaf in cone.leaves.items() if leaf.shape}

    @staticmethod
    def _steps(cone: FusionRegion, loops: frozenset[int]) -> Number:
        """The steps of some loops of a cone; those of its reductions one after another.

        What numbers pick of an array is as much as there is of the root.
        """
        if access_map.ANYWHERE in loops:
            return symbolic_dims.product(cone.root.shape)
        outer = symbolic_dims.product(cone.root.shape[loop] for loop in loops if loop < access_map.INNER)
        if all(loop < access_map.INNER for loop in loops):
            return outer
        return outer * sum(_reduced(cone.reductions), 0)


def _reduced(nodes: list[Node]) -> list[Number]:
    """How many elements the reductions among nodes take, those over the same extents once."""
    shapes = [
        [node.inputs[0].shape[axis] for axis in node.options["axes"]] for node in nodes if node.operation == "reduce"
    ]
    return [*{symbolic_dims.key_of_shape(shape): symbolic_dims.product(shape) for shape in shapes}.values()]
