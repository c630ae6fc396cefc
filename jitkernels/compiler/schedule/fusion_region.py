"""Fusion regions: one output, and all nodes that are computed inside of its loop nest, with their access maps.

An access map (index map) gives for every dimension of a node where it starts, and the coefficient of each loop. The
loops of an output are its dimensions; a fused reduction adds loops of its own. Nothing is stored on the way, so a
view is free, and a node that is needed at two access maps is computed twice.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.access_map import (
    INNER,
    Index,
    gathered_array,
    identity,
    key_of,
    loops_of,
    operand_access_map,
)
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.op_cost import own_cost
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core.cached_property import unlocked_cached_property

INLINE = frozenset({"cast", "view", "constant", "extent", "iota", "reduce", "gather", "scan", "placed"})
"""Operations that can be fused into a reader, beside the elementwise ones."""
LARGEST = 400
"""The most nodes of a region: bounds compile time, and cuts programs of many thousand nodes."""
MOST_INPUTS = 32
"""The most arrays that a nest reads: more streams than hardware prefetchers follow, more pointers than registers."""
MOST_REDUCED_SHAPES = 16
"""The most shapes that a nest reduces: each has loops of its own, and compile time grows with their number squared."""
MOST_PARTS = 4
"""The most disjoint parts of a node that are fused separately: each duplicates the code."""
COSTLY = 7.0
"""The cost, in additions, from which on a node is not recomputed if it can be materialized."""


def is_inline(node: Node) -> bool:
    """Return whether a node can be fused into its readers."""
    return node.operation in INLINE or OPERATIONS[node.operation].is_elementwise


@dataclass
class FusionRegion:
    """One output and all nodes that are fused into it, down to materialized (`kept`) nodes.

    `places`: the access maps of each node, by id and by key. `reductions`: the fused ones in topological order.
    `rows`: the loops that these depend on. `fusion_blockers`: nodes to materialize so that the rest is one loop nest.
    """

    root: Node
    kept: Container[int]
    largest: int = LARGEST
    places: dict[int, dict[Any, IndexMap]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    reductions: list[Node] = field(default_factory=list)
    leaves: dict[int, Node] = field(default_factory=dict)
    rows: frozenset[int] | None = None
    fusion_blockers: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = self._inside()
        self.places[id(self.root)] = {key_of(identity(self.root.ndim)): identity(self.root.ndim)}
        inside = self.inside = frozenset(id(node) for node in self.nodes)
        for node in reversed(self.nodes):
            for key, index_map in list(self.places.get(id(node), {}).items()):
                if node.operation == "reduce" and node is not self.root:
                    self._reduction(node, index_map)
                if node.operation == "scan":
                    self._scan(node, index_map)
                if node.operation == "reduce" and any(loop >= INNER for loop in loops_of(index_map)):
                    self.fusion_blockers[id(node)] = node  # a reduction inside of another one's loops
                for operand_index, operand in enumerate(node.inputs):
                    operand_map = operand_access_map(node, operand_index, index_map)
                    operand_key = key if operand_map is index_map else key_of(operand_map)
                    self.places.setdefault(id(operand), {}).setdefault(operand_key, operand_map)
                    if id(operand) not in inside:
                        self.leaves[id(operand)] = operand
        self.reductions = [node for node in self.nodes if node.operation == "reduce"]
        if self.root.operation == "reduce":
            all_loops = frozenset(range(self.root.ndim))
            if self.rows is not None and self.rows != all_loops:
                inner = ("reduce", "scan")
                self.fusion_blockers |= {
                    id(node): node for node in self.nodes if node.operation in inner and node is not self.root
                }
            self.rows = all_loops

    def _inside(self) -> list[Node]:
        """The fused nodes in topological order."""
        done: dict[int, Node] = {}
        opened = 0
        stack = [(self.root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            if expanded:
                done[id(node)] = node
                continue
            opened += 1
            stack.append((node, True))
            for operand in reversed(node.inputs):
                if id(operand) in done or id(operand) in self.kept or not is_inline(operand):
                    continue
                if opened < self.largest or not operand.inputs:
                    stack.append((operand, False))
                else:
                    self.fusion_blockers[id(operand)] = operand
        return list(done.values())

    def _scan(self, node: Node, index_map: IndexMap) -> None:
        """Fuse a scan if its rows are rows of all other reductions and scans, and it is needed once."""
        axis = node.options["axis"]
        along = [steps[0][0] for _, steps in index_map[axis : axis + 1] if steps]
        others = [steps[0][0] for i, (_, steps) in enumerate(index_map) if i != axis and steps]
        rows = frozenset(others)
        is_whole = all(
            (not steps and same(extent, 1))
            or (
                same(start, 0)
                and len(steps) == 1
                and same(steps[0][1], 1)
                and (same(self.root.shape[steps[0][0]], extent) if steps[0][0] < INNER else i == axis)
            )
            for i, (extent, (start, steps)) in enumerate(zip(node.shape, index_map, strict=True))
        )
        loops = {*rows, *(loop for loop in along if loop < INNER)}
        is_repeated = len(rows) != len(others) or len(self.places[id(node)]) > 1
        if self.root.operation != "reduce" and len(loops) < self.root.ndim:
            is_repeated = True
        if not is_whole or is_repeated or (self.rows is not None and self.rows != rows):
            self.fusion_blockers[id(node)] = node
        else:
            self.rows = rows

    def _reduction(self, node: Node, index_map: IndexMap) -> None:
        """Fuse a reduction if it is needed once per iteration of the same row loops as all others."""
        loops = [steps[0][0] for _, steps in index_map if len(steps) == 1]
        is_whole = all(
            same(extent, 1)
            or (
                same(start, 0)
                and len(steps) == 1
                and same(steps[0][1], 1)
                and steps[0][0] < INNER
                and same(self.root.shape[steps[0][0]], extent)
            )
            for extent, (start, steps) in zip(node.shape, index_map, strict=True)
        )
        rows = frozenset(loops)
        is_repeated = len(rows) != len(loops) or len(self.places[id(node)]) > 1
        # A full reduction: its readers are another nest, so that both can run in parallel.
        is_full = not rows and self.root.ndim > 0
        if not is_whole or is_repeated or is_full or (self.rows is not None and self.rows != rows):
            self.fusion_blockers[id(node)] = node
        else:
            self.rows = rows

    @unlocked_cached_property
    def gathered_ids(self) -> frozenset[int]:
        """The arrays from which nodes gather: they must be in memory."""
        return frozenset(id(gathered_array(node)) for node in self.nodes if node.operation == "gather")

    @unlocked_cached_property
    def uses_indices(self) -> bool:
        """Whether the region gathers or scatters by indices, which must be in bounds."""
        return any(node.operation in ("gather", "placed") for node in self.nodes)

    @unlocked_cached_property
    def recompute_blockers(self) -> dict[int, Node]:
        """Expensive nodes that would be computed more than once for the same element."""
        return {id(node): node for node in self._wasteful()}

    def _wasteful(self) -> Iterator[Node]:
        costs: dict[int, float] = {}
        dimensions = frozenset(range(self.root.ndim))
        for node in self.nodes:
            costs[id(node)] = own_cost(node) + sum(
                {id(operand): costs.get(id(operand), 0.0) for operand in node.inputs}.values()
            )
            if node is self.root or costs[id(node)] < COSTLY or node.operation in ("view", "reduce"):
                continue
            access_maps = [*self.places[id(node)].values()]
            several = len(access_maps) > 1 and len({loops_of(access_map) for access_map in access_maps}) < len(
                access_maps
            )
            if (several and not self._are_parts(access_maps)) or any(
                self._repeated(loops_of(access_map), dimensions) for access_map in access_maps
            ):
                yield node

    def _are_parts(self, access_maps: list[IndexMap]) -> bool:
        """Return whether a few access maps are pairwise disjoint: each part of the node is computed once."""
        return len(access_maps) <= MOST_PARTS and all(
            any(map(self._is_disjoint, left, right)) for left, right in combinations(access_maps, 2)
        )

    def _is_disjoint(self, left: Index, right: Index) -> bool:
        """Return whether the index ranges of two access maps in one dimension are disjoint."""
        (first, steps), (start, _) = left, right
        if len(steps) > 1 or key_of((left,))[0][1] != key_of((right,))[0][1]:
            return False
        span: Number = 1
        for loop, step in steps:
            if loop not in range(self.root.ndim) or not same(step, 1):
                return False
            span = self.root.shape[loop]
        least = [symbolic_dims.least_of(distance - span) for distance in (first - start, start - first)]
        return any(left is not None and left >= 0 for left in least)

    def operand_limit_blockers(self, most: int) -> dict[int, Node]:
        """Nodes to materialize so that the rest reads at most so many arrays: those that read the most, first."""
        if len(self.arrays) <= most:
            return self._reduced_beside()
        result: dict[int, Node] = {}
        read: dict[int, frozenset[int]] = {key: frozenset([key]) for key in self.arrays}
        for node in self.nodes:
            by_reads = sorted(
                {id(operand): operand for operand in node.inputs}.values(), key=lambda one: -len(read.get(id(one), ()))
            )
            for one in by_reads:
                all_read: frozenset[int] = frozenset().union(*(read.get(id(other), ()) for other in node.inputs))
                if len(all_read) > most and len(read[id(one)]) > 1:
                    base = one
                    while base.operation in ("view", "cast") and id(base.inputs[0]) in self.inside:
                        base = base.inputs[0]
                    result[id(base)] = base
                    read[id(base)] = read[id(one)] = frozenset([id(base)])
            read[id(node)] = frozenset().union(*(read.get(id(operand), ()) for operand in node.inputs))
        return result

    def _reduced_beside(self) -> dict[int, Node]:
        """Reductions to be kept so that the rest reduces no more than `MOST_REDUCED_SHAPES` shapes."""
        shapes: set[Any] = set()
        found: dict[int, Node] = {}
        for node in self.reductions:
            shape = symbolic_dims.key_of_shape(node.inputs[0].shape)
            if shape not in shapes and len(shapes) == MOST_REDUCED_SHAPES:
                found[id(node)] = node
            else:
                shapes.add(shape)
        return found

    @unlocked_cached_property
    def arrays(self) -> frozenset[int]:
        """The ids of arrays that every iteration reads."""
        return frozenset(key for key, leaf in self.leaves.items() if leaf.ndim)

    def _repeated(self, loops: frozenset[int], dimensions: frozenset[int]) -> bool:
        """Return whether an access map depends on an inner loop but not on one around it.

        Iterations recompute the node.
        """
        if any(loop >= INNER for loop in loops) or not loops:
            return bool(loops) and bool((self.rows or frozenset()) - loops)
        order = [*sorted(self.rows or ()), *sorted(dimensions - (self.rows or frozenset()))]
        innermost = max(order.index(loop) for loop in loops)
        return any(order[i] not in loops for i in range(innermost))


def topological(roots: list[Node]) -> dict[int, int]:
    """The position of each node in a topological order."""
    return {id(node): i for i, node in enumerate(sorted_nodes(roots))}
