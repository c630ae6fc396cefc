"""Fusion regions: one output, and all nodes that are computed inside of its loop nest, with their access maps.

An access map (index map) gives for every dimension of a node where it starts, and the coefficient of each loop. The
loops of an output are its dimensions; a fused reduction adds loops of its own. Nothing is stored on the way, so a
view is free, and a node that is needed at two access maps is computed twice.
"""

from collections.abc import Container
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.access_map import (
    INNER,
    Index,
    are_apart,
    gathered_array,
    identity,
    index_range,
    key_of,
    loops_of,
    operand_access_map,
)
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.config import MAX_FUSION_SIZE
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS, own_cost
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core.cached_property import unlocked_cached_property

Terms = tuple[tuple[int, Number], ...]
"""The coefficient of each loop in one dimension of an access map."""
INLINE = frozenset({"cast", "view", "constant", "extent", "iota", "reduce", "gather", "scan", "placed"})
"""Operations that can be fused into a reader, beside the elementwise ones."""
MAX_REDUCED_SHAPES = 16
"""The most shapes that a nest reduces: each has loops of its own, and compile time grows with their number squared."""
MAX_FUSED_PARTS = 4
"""The most disjoint parts of a node that are fused separately: each duplicates the code."""
COSTLY = 7.0
"""The cost, in additions, from which on a node is not recomputed if it can be materialized."""


def is_inline(node: Node) -> bool:
    """Return whether a node can be fused into its readers."""
    return node.operation in INLINE or OPERATIONS[node.operation].is_elementwise


@dataclass(eq=False)
class FusionRegion:
    """One output and all nodes that are fused into it, down to the `materialized` nodes.

    `access_maps`: those of each node, by key. `leaves`: the materialized operands, in order. `reductions`: the fused
    ones in topological order. `rows`: the loops that these depend on. `blocking_nodes`: nodes to materialize so that
    the rest is one loop nest.
    """

    root: Node
    materialized: Container[Node]
    max_fusion_size: int = MAX_FUSION_SIZE
    access_maps: dict[Node, dict[Any, IndexMap]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    reductions: list[Node] = field(default_factory=list)
    leaves: dict[Node, None] = field(default_factory=dict)
    rows: frozenset[int] | None = None
    blocking_nodes: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.nodes = self._inside()
        self.access_maps[self.root] = {key_of(identity(self.root.ndim)): identity(self.root.ndim)}
        inside = self.inside = frozenset(self.nodes)
        for node in reversed(self.nodes):
            for key, index_map in list(self.access_maps.get(node, {}).items()):
                if node.operation == "reduce" and node is not self.root:
                    self._reduction(node, index_map)
                if node.operation == "scan":
                    self._scan(node, index_map)
                if node.operation == "reduce" and any(loop >= INNER for loop in loops_of(index_map)):
                    self.blocking_nodes.add(node)  # a reduction inside of another one's loops
                for operand_index, operand in enumerate(node.inputs):
                    operand_map = operand_access_map(node, operand_index, index_map)
                    operand_key = key if operand_map is index_map else key_of(operand_map)
                    self.access_maps.setdefault(operand, {}).setdefault(operand_key, operand_map)
                    if operand not in inside:
                        self.leaves[operand] = None
        self.reductions = [node for node in self.nodes if node.operation == "reduce"]
        if self.root.operation == "reduce":
            all_loops = frozenset(range(self.root.ndim))
            if self.rows is not None and self.rows != all_loops:
                inner = ("reduce", "scan")
                self.blocking_nodes |= {one for one in self.nodes if one.operation in inner and one is not self.root}
            self.rows = all_loops

    def _inside(self) -> list[Node]:
        """The fused nodes in topological order."""
        done: dict[Node, None] = {}
        opened = 0
        stack = [(self.root, False)]
        while stack:
            node, expanded = stack.pop()
            if node in done:
                continue
            if expanded:
                done[node] = None
                continue
            opened += 1
            stack.append((node, True))
            for operand in reversed(node.inputs):
                if operand in done or operand in self.materialized or not is_inline(operand):
                    continue
                if opened < self.max_fusion_size or not operand.inputs:
                    stack.append((operand, False))
                else:
                    self.blocking_nodes.add(operand)
        return list(done)

    def _scan(self, node: Node, index_map: IndexMap) -> None:
        """Fuse a scan if its rows are rows of all other reductions and scans, and it is needed once."""
        axis = node.options["axis"]
        along = [terms[0][0] for _, terms in index_map[axis : axis + 1] if terms]
        others = [terms[0][0] for i, (_, terms) in enumerate(index_map) if i != axis and terms]
        is_whole = all(
            (not terms and same(extent, 1)) or self._covers(extent, start, terms, by_inner_loop=i == axis)
            for i, (extent, (start, terms)) in enumerate(zip(node.shape, index_map, strict=True))
        )
        loops = {*others, *(loop for loop in along if loop < INNER)}
        is_partial = self.root.operation != "reduce" and len(loops) < self.root.ndim
        self._fuse_row(node, others, is_fusible=is_whole and not is_partial)

    def _reduction(self, node: Node, index_map: IndexMap) -> None:
        """Fuse a reduction if it is needed once per iteration of the same row loops as all others."""
        rows = [terms[0][0] for _, terms in index_map if len(terms) == 1]
        is_whole = all(
            same(extent, 1) or self._covers(extent, start, terms)
            for extent, (start, terms) in zip(node.shape, index_map, strict=True)
        )
        # A full reduction: its readers are another nest, so that both can run in parallel.
        is_full = not rows and self.root.ndim > 0
        self._fuse_row(node, rows, is_fusible=is_whole and not is_full)

    def _covers(self, extent: Number, start: Number, terms: Terms, *, by_inner_loop: bool = False) -> bool:
        """Return whether one loop of the root, or of a reduction, steps through all of a dimension."""
        if len(terms) != 1 or not same(start, 0) or not same(terms[0][1], 1):
            return False
        loop = terms[0][0]
        return same(self.root.shape[loop], extent) if loop < INNER else by_inner_loop

    def _fuse_row(self, node: Node, loops: list[int], *, is_fusible: bool) -> None:
        """Fuse a reduction or scan if it is needed once for each row, and the rows are those of the others."""
        rows = frozenset(loops)
        is_repeated = len(rows) != len(loops) or len(self.access_maps[node]) > 1
        if not is_fusible or is_repeated or (self.rows is not None and self.rows != rows):
            self.blocking_nodes.add(node)
        else:
            self.rows = rows

    @unlocked_cached_property
    def gathered(self) -> frozenset[Node]:
        """The arrays from which nodes gather: they must be in memory."""
        return frozenset(gathered_array(node) for node in self.nodes if node.operation == "gather")

    @unlocked_cached_property
    def uses_indices(self) -> bool:
        """Whether the region gathers or scatters by indices, which must be in bounds."""
        return any(node.operation in ("gather", "placed") for node in self.nodes)

    @unlocked_cached_property
    def recomputed_nodes(self) -> set[Node]:
        """Expensive nodes that would be computed more than once for the same element.

        Of a chain of these the last ones: where they are stored, those before them are computed once.
        """
        repeated: set[Node] = set()
        costs: dict[Node, float] = {}
        for node in self.nodes:
            costs[node] = own_cost(node) + sum(costs.get(operand, 0.0) for operand in dict.fromkeys(node.inputs))
            if node is self.root or costs[node] < COSTLY or node.operation in ("view", "reduce"):
                continue
            access_maps = [*self.access_maps[node].values()]
            loops = [*map(loops_of, access_maps)]
            is_repeated = len({*loops}) < len(loops) and not self._are_parts(access_maps)
            if is_repeated or any(map(self._is_repeated, loops)):
                repeated.add(node)
        return self._first_below_root(repeated) if repeated else repeated

    def _first_below_root(self, nodes: set[Node]) -> set[Node]:
        """Those of `nodes` that the root reads, or that nodes beside them do on the way to it."""
        result: set[Node] = set()
        seen, waiting = {self.root}, [self.root]
        while waiting:
            for operand in waiting.pop().inputs:
                if operand in nodes:
                    result.add(operand)
                elif operand in self.inside and operand not in seen:
                    seen.add(operand)
                    waiting.append(operand)
        return result

    def _are_parts(self, access_maps: list[IndexMap]) -> bool:
        """Return whether a few access maps are pairwise disjoint: each part of the node is computed once."""
        return len(access_maps) <= MAX_FUSED_PARTS and all(
            any(map(self._is_disjoint, left, right)) for left, right in combinations(access_maps, 2)
        )

    def _is_disjoint(self, left: Index, right: Index) -> bool:
        """Return whether the index ranges of two access maps in one dimension, of the same loop, are disjoint."""
        terms = left[1]
        if len(terms) > 1 or key_of((left,))[0][1] != key_of((right,))[0][1]:
            return False
        ranges = (index_range(index, self.root.shape) for index in (left, right))
        return all(same(coefficient, 1) for _, coefficient in terms) and are_apart(*ranges)

    def nodes_over_operand_limit(self, most: int) -> set[Node]:
        """Nodes to materialize so that the rest reads at most so many arrays: those that read the most, first."""
        if len(self.arrays) <= most:
            return self._reductions_over_limit()
        result: set[Node] = set()
        read: dict[Node, frozenset[Node]] = {leaf: frozenset([leaf]) for leaf in self.arrays}
        for node in self.nodes:
            for one in sorted(dict.fromkeys(node.inputs), key=lambda operand: -len(read.get(operand, ()))):
                all_read: frozenset[Node] = frozenset().union(*(read.get(other, ()) for other in node.inputs))
                if len(all_read) > most and len(read[one]) > 1:
                    base = one
                    while base.operation in ("view", "cast") and base.inputs[0] in self.inside:
                        base = base.inputs[0]
                    result.add(base)
                    read[base] = read[one] = frozenset([base])
            read[node] = frozenset().union(*(read.get(operand, ()) for operand in node.inputs))
        return result

    def _reductions_over_limit(self) -> set[Node]:
        """Reductions to materialize so that the rest reduces no more than `MAX_REDUCED_SHAPES` shapes."""
        shapes: set[Any] = set()
        result: set[Node] = set()
        for node in self.reductions:
            shape = symbolic_dims.key_of_shape(node.inputs[0].shape)
            if shape not in shapes and len(shapes) == MAX_REDUCED_SHAPES:
                result.add(node)
            else:
                shapes.add(shape)
        return result

    @unlocked_cached_property
    def arrays(self) -> frozenset[Node]:
        """The arrays that every iteration reads."""
        return frozenset(leaf for leaf in self.leaves if leaf.ndim)

    def _is_repeated(self, loops: frozenset[int]) -> bool:
        """Return whether an access map depends on an inner loop but not on one around it: iterations recompute it."""
        rows = self.rows or frozenset()
        if any(loop >= INNER for loop in loops) or not loops:
            return bool(loops) and bool(rows - loops)
        order = [*sorted(rows), *sorted(frozenset(range(self.root.ndim)) - rows)]
        innermost = max(order.index(loop) for loop in loops)
        return any(order[i] not in loops for i in range(innermost))
