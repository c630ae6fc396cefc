"""Fusion: choose the nodes of a graph to materialize, and group them into loop nests.

First, once for a graph:

1. Outputs and writes are materialized, and so are operands of operations that are no loop nest, and gathered arrays,
   whose bounds checks run ahead.

Then, until none of these rules materializes a node; each applies where those before it do not:

2. A reduction is fused into its reader if that needs it once per row: the row is loaded, reduced and loaded again
   while it is in the cache. It is materialized if its readers need it for other rows, or if it is a full reduction.
   If only an elementwise operation reads the reduction, that operation (its epilogue) is materialized instead of it.
3. An expensive node is materialized if fusion would recompute it: at several access maps of a nest, or for every
   iteration of a loop that it does not depend on.
4. Where a nest would read too many arrays, the node that reads the most of them is materialized.
5. An expensive node is materialized if several nests would compute it, or what makes it expensive if that is smaller.
   So is a sum of several arrays that nests with products between them share (`repeated_sums`).
6. A node that reads an array which a loop or branch overwrites before is materialized ahead of that (`_read_late`).
7. A value is materialized if a nest would overwrite in place what it reads later (`resolve_hazards`).

Last:

8. Materialized nodes with the same rows and loops form one nest (multi-output fusion), if none depends on another and
   they do not read too many arrays. Large ones must read an array in common: others would only evict each other from
   the caches, and live longer. Scalars computed from scalars come first, so that no nest depends on them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.compiler.ir import access_map, ops, region_memory, symbolic_dims
from jitkernels.compiler.ir.config import MAX_FUSION_SIZE, MAX_NEST_INPUTS
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule import fusion_region, matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions
from jitkernels.compiler.schedule.loop_nest import LoopNest, Store
from jitkernels.compiler.schedule.partial_stores import broadcast_copy, has_partial_stores, partial_stores_of
from jitkernels.compiler.schedule.reduction_epilogue import ReductionEpilogues
from jitkernels.compiler.schedule.repeated_sums import rank, repeated_sums
from jitkernels.compiler.schedule.update_in_place import (
    OutputPart,
    OutputParts,
    memory_of,
    readers_first,
    resolve_hazards,
    shared_memory,
)


@dataclass
class UnfusedStep:
    """One operation that is no loop nest."""

    node: Node


FusionStep = LoopNest | UnfusedStep


@dataclass
class Schedule:
    """Steps in topological order, and the nodes that share the memory of another node."""

    steps: list[FusionStep]
    shared: dict[Node, Node]


def schedule_graph(
    graph: Graph,
    *,
    fuse: bool = True,
    fuse_reduce: bool = True,
    max_fusion_size: int = MAX_FUSION_SIZE,
    max_inputs: int = MAX_NEST_INPUTS,
) -> Schedule:
    """Fuse a graph into steps: about `max_fusion_size` nodes per output at most, which read up to `max_inputs` arrays.

    Without `fuse`, every node is a step; without `fuse_reduce`, no reduction is fused into its reader.
    """
    materialized = _always_materialized(graph, fuse=fuse)
    if not fuse_reduce:
        materialized |= {node for node in graph if node.operation == "reduce"}
    partial_stores = {node: partial_stores_of(node) for node in graph if has_partial_stores(node, graph)}
    order, epilogues = _scalars_first(graph), ReductionEpilogues(graph)
    known: dict[Node, FusionRegion] = {}
    additional: set[Node] = set()
    while True:
        # Recompute the regions that contain a newly materialized node or were cut at one.
        known = {
            root: region
            for root, region in known.items()
            if additional.isdisjoint(region.inside | region.blocking_nodes)
        }
        roots = [node for node in order if node in materialized and node.operation != "input"]
        parts: OutputParts = {}
        for node in roots:
            if node not in partial_stores and not fusion_region.is_inline(node):
                continue
            parts[node] = []
            for value, target_map in partial_stores.get(node, [(node, None)]):
                if value not in known:
                    known[value] = FusionRegion(value, materialized, max_fusion_size)
                parts[node].append(OutputPart(known[value], target_map))
        roots = readers_first(roots, parts)
        regions = [part.region for listed in parts.values() for part in listed]
        shared = shared_memory(graph, roots, parts) | region_memory.in_place(order)
        directions: dict[FusionRegion, Directions] = {}
        additional = (
            {epilogues.last(node, materialized) for region in regions for node in region.blocking_nodes} - materialized
            or set().union(*(region.recomputed_nodes for region in regions)) - materialized
            or set().union(*(region.nodes_over_operand_limit(max_inputs) for region in regions)) - materialized
            or _computed_twice(regions) - materialized
            or (repeated_sums(graph, regions) - materialized if fuse else set())
            or _read_late(roots, parts) - materialized
        )
        if not additional:  # the order of stores is that of the final nests
            additional, directions = resolve_hazards(roots, parts, shared, materialized)
        if not additional:
            grouping = _NestGrouping(shared, materialized, frozenset(graph.checks), max_inputs if fuse else 0)
            steps = grouping.group(roots, parts, directions)
            return Schedule([*steps, *_copies_to_inputs(graph, shared, materialized)], shared)
        materialized |= additional


def _scalars_first(graph: Graph) -> list[Node]:
    """The nodes of a graph, with scalars computed from scalars first: no nest has to wait for them."""
    scalars: set[Node] = set()
    order, written = list(graph), {value for _, value in graph.writes}
    for node in order:
        is_plain = fusion_region.is_inline(node) and not access_map.changes(node) or node.operation == "input"
        if is_plain and not node.ndim and node not in written and scalars.issuperset(node.inputs):
            scalars.add(node)
    return sorted(order, key=lambda node: node not in scalars)


def _always_materialized(graph: Graph, *, fuse: bool) -> set[Node]:
    """Nodes that are materialized in any case."""
    materialized = {*graph.inputs, *graph.roots}
    for node in graph:
        if not fusion_region.is_inline(node):
            materialized.add(node)
            if node.operation == "matmul":
                materialized.update(matmul_step.operands(node)[0])
            elif region_memory.is_control_flow(node):
                materialized |= {one for one in node.inputs if one.operation not in ("constant", "extent")}
            elif not has_partial_stores(node, graph):
                materialized.update(node.inputs)
            elif access_map.changes(node) and not fusion_region.is_inline(node.inputs[0]):
                materialized.add(node.inputs[0])
        elif not fuse and node.operation not in ("view", "constant", "extent"):
            materialized.add(node)
        if node.operation == "gather":
            materialized.add(access_map.gathered_array(node))
    return materialized


def _copies_to_inputs(graph: Graph, shared: dict[Node, Node], materialized: set[Node]) -> list[FusionStep]:
    """Copies to the inputs that are written, except where the value was computed in their memory."""
    results: list[FusionStep] = []
    for target, value in graph.writes:
        if memory_of(value, shared) is not target:
            region = FusionRegion(broadcast_copy(value, target.shape), materialized)
            rows, columns, order = split(region)
            results.append(LoopNest(rows, columns, [Store(region, order, target)]))
    return results


def _computed_twice(regions: Sequence[FusionRegion]) -> set[Node]:
    """Expensive nodes that several nests would compute: the last common nodes of these nests."""
    owners: dict[Node, set[int]] = {}
    costs: dict[Node, float] = {}
    for number, region in enumerate(regions):
        for node in region.nodes:
            costs[node] = ops.own_cost(node) + sum(costs.get(operand, 0.0) for operand in {*node.inputs})
            if node is not region.root:
                owners.setdefault(node, set()).add(number)
    domains = [split(region).domain for region in regions]
    result: set[Node] = set()
    for region in regions:
        for node in region.nodes:
            for operand in node.inputs:
                if operand not in owners or operand.operation == "view" or costs[operand] < fusion_region.COSTLY:
                    continue
                is_last = node is region.root or owners[node] != owners[operand]
                if is_last and len({domains[owner] for owner in owners[operand]}) > 1:
                    result |= _expensive_parts(operand, costs)
    return result


def _expensive_parts(node: Node, costs: Mapping[Node, float]) -> set[Node]:
    """The smaller operands that make a node expensive, such as the mean in ``x - mean(x)``, else the node itself.

    They are materialized in place of the node if the rest of this is cheap and reads one array of its size: nests read
    that array in place of the node, which is never stored. `costs` has the nodes that are not materialized.
    """
    size, parts, arrays, cost, waiting = rank(node), set[Node](), set[Node](), 0.0, [node]
    while waiting:
        current = waiting.pop()
        cost += ops.own_cost(current)
        if not OPERATIONS[current.operation].is_elementwise or cost >= fusion_region.COSTLY:
            return {node}
        for operand in map(_viewed, current.inputs):
            if operand not in costs or not operand.inputs:
                arrays |= {operand} if rank(operand) >= size else set()
            elif rank(operand) >= size:
                waiting.append(operand)
            else:
                parts.add(operand)
    return parts if parts and len(arrays) < 2 else {node}


def _viewed(node: Node) -> Node:
    """The array that a node is a view of."""
    while node.operation == "view":
        (node,) = node.inputs
    return node


def _read_late(roots: Sequence[Node], parts: OutputParts) -> set[Node]:
    """Nodes that read an array after a loop or branch has overwritten it: they are materialized before."""
    overwritten_at: dict[Node, int] = {}
    for position, node in enumerate(roots):
        for operand_index in region_memory.updated_operands(node) if region_memory.is_control_flow(node) else ():
            overwritten_at.setdefault(node.inputs[operand_index], position)
    result: set[Node] = set()
    for position, node in enumerate(roots):
        for region, _ in parts.get(node, ()):
            late = {leaf for leaf in region.leaves if overwritten_at.get(leaf, position) < position}
            result |= {
                inner
                for inner in (region.nodes if late else ())
                if inner.operation not in region_memory.VIEWS
                and any(region_memory.viewed_array(other) in late for other in inner.inputs)
            }
    return result


class RegionLoops(NamedTuple):
    """The loops of a region: extents of the rows and of the columns, and the output's dimensions in this order."""

    rows: tuple[Number, ...]
    columns: tuple[Number, ...]
    order: tuple[int, ...]

    @property
    def domain(self) -> Any:
        """A key that is equal for equal loops."""
        return symbolic_dims.key_of_shape(self.rows), symbolic_dims.key_of_shape(self.columns)


def split(region: FusionRegion) -> RegionLoops:
    """Split the dimensions of a region's output into rows and columns."""
    rows = sorted(region.rows or ())
    columns = [i for i in range(region.root.ndim) if i not in rows]
    shape = region.root.shape
    return RegionLoops(tuple(shape[i] for i in rows), tuple(shape[i] for i in columns), (*rows, *columns))


@dataclass
class _NestGrouping:
    """Groups outputs into steps in order; a nest takes up to `max_inputs` operand arrays."""

    shared: dict[Node, Node]
    materialized: set[Node]
    checks: frozenset[Node]
    max_inputs: int
    steps: list[FusionStep] = field(default_factory=list)
    step_of: dict[Node, int] = field(default_factory=dict)

    def group(
        self, roots: Sequence[Node], parts: OutputParts, directions: Mapping[FusionRegion, Directions]
    ) -> list[FusionStep]:
        """Return the steps that compute the materialized nodes `roots`."""
        steps, step_of, shared = self.steps, self.step_of, self.shared
        barrier = last_check = -1
        for node in roots:
            if region_memory.is_result(node) or region_memory.is_kernel_result(node):
                step_of[node] = step_of[node.inputs[0]]
                continue
            if node not in parts:
                step_of[node] = len(steps)
                steps.append(UnfusedStep(node))
                continue
            changes = access_map.changes(node)
            for region, target_map in parts[node]:
                if changes and target_map is None and node in shared:
                    continue
                earliest = max((step_of.get(leaf, -1) for leaf in region.leaves), default=-1)
                if region.uses_indices:
                    earliest = max(earliest, last_check + 1)
                if changes:
                    earliest = len(steps)  # behind all readers of the overwritten array, and alone
                elif node in shared:
                    earliest = max(earliest, len(steps) - 1)
                rows, columns, order = split(region)
                store = Store(region, order, node, target_map, directions.get(region, {}))
                step_index = self._add_to_nest(max(earliest, barrier), store)
                if step_index is None:
                    step_index = len(steps)
                    steps.append(LoopNest(rows, columns, [store]))
                step_of[node] = max(step_index, step_of.get(node, -1))
                if node in self.checks:
                    last_check = max(last_check, step_index)
                if changes or node in shared:
                    barrier = len(steps) - 1
        return steps

    def _add_to_nest(self, after: int, store: Store) -> int | None:
        """Add an output to an existing nest of the same loops behind its dependences.

        Return the step, None if there is none.
        """
        rows, columns, _ = split(store.region)
        for i in range(len(self.steps) - 1, max(after, 0) - 1, -1) if self.max_inputs else ():
            step = self.steps[i]
            if not isinstance(step, LoopNest) or not _same(step.rows, rows):
                continue
            if any((other.target in self.checks) != (store.target in self.checks) for other in step.stores):
                continue  # checks run before any store
            if not (_same(step.columns, columns) or (rows and not (columns and step.columns))):
                continue
            if not (columns or step.columns or _reduced(store) == _reduced(step.stores[0])):
                continue  # a nest has one lane loop
            read = store.region.arrays.union(*(other.region.arrays for other in step.stores))
            if len(read - {other.target for other in step.stores}) > self.max_inputs:
                continue
            if i == after and not self._is_fusible_with_producer(step, store, i):
                continue
            if not step.gains(store):
                continue
            if store.target in self.shared and any(self._is_read_elsewhere(other, store) for other in step.stores):
                continue
            if not step.columns:
                step.columns = columns
            step.stores.append(store)
            return i
        return None

    def _is_read_elsewhere(self, reader: Store, store: Store) -> bool:
        """Return whether an output of a nest reads the memory of `store` except at the element that is stored then."""
        memory = memory_of(store.target, self.shared)
        reduces = reader.region.reductions or store.region.reductions
        at_once = store.target_map is None and reader.order == store.order and not reduces
        identity_key = {access_map.key_of(access_map.identity(reader.region.root.ndim))}
        return any(
            memory_of(leaf, self.shared) is memory
            and not (at_once and set(reader.region.access_maps[leaf]) == identity_key)
            for leaf in reader.region.leaves
        )

    def _is_fusible_with_producer(self, nest: LoopNest, store: Store, step: int) -> bool:
        """Return whether an output can read other outputs of the same nest from registers, at the same access map."""
        stores = {other.target: other for other in nest.stores}
        needed = {leaf for leaf in store.region.leaves if self.step_of.get(leaf) == step}
        if not needed:
            return True
        if any(one.target_map is not None for one in (store, *nest.stores)) or store.region.gathered & needed:
            return False
        if any(leaf not in stores or stores[leaf].region.root is not leaf for leaf in needed):
            return False
        region = FusionRegion(store.region.root, self.materialized - needed)
        new, old = split(region), split(store.region)
        if region.blocking_nodes or (new[:2] != old[:2] and (new.domain, new.order) != (old.domain, old.order)):
            return False
        for leaf in needed:
            order = stores[leaf].order
            if len(order) > len(store.order):
                return False
            index_map = tuple((0, ((store.order[order.index(i)], 1),)) for i in range(leaf.ndim))
            if set(store.region.access_maps[leaf]) != {access_map.key_of(index_map)}:
                return False
        store.region = region
        return True


def _reduced(store: Store) -> frozenset[Any]:
    """The shapes over which the reductions of an output run."""
    return frozenset(
        symbolic_dims.key_of_shape(node.inputs[0].shape[axis] for axis in node.options["axes"])
        for node in store.region.nodes
        if node.operation == "reduce"
    )


def _same(left: Iterable[Number], right: Iterable[Number]) -> bool:
    return symbolic_dims.key_of_shape(left) == symbolic_dims.key_of_shape(right)
