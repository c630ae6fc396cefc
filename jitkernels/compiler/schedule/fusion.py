"""Fusion: choose the nodes of a graph to materialize, and group them into loop nests.

Rules, in the order in which they are applied:

1. Outputs and writes are materialized, and so are operands of operations that are no loop nest.
2. A reduction is fused into its reader if that needs it once per row: the row is loaded, reduced and loaded again
   while it is in the cache. It is materialized if its readers need it for other rows, or if it is a full reduction;
   in its place its elementwise epilogue, where nothing else reads it.
3. An expensive node is materialized if fusion would recompute it: at several access maps of a nest, for every
   iteration of a loop that it does not depend on, or in several nests.
4. Gathered arrays are materialized; bounds checks of the indices run ahead.
5. Where a nest would read too many arrays, the node that reads the most of them is materialized.
6. Materialized nodes with the same rows and loops form one nest (multi-output fusion), if none depends on another and
   they do not read too many arrays. Scalars computed from scalars come first, so that no nest depends on them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.compiler.ir import access_map, op_cost, region_memory, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule import fusion_region, matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions
from jitkernels.compiler.schedule.loop_nest import Nest, Store
from jitkernels.compiler.schedule.partial_stores import copied, has_partial_stores, partial_stores_of
from jitkernels.compiler.schedule.reduction_epilogue import ReductionEpilogues
from jitkernels.compiler.schedule.update_in_place import Made, memory_of, overwritten, shared_memory


@dataclass
class Single:
    """One operation that is no loop nest."""

    node: Node


Step = Nest | Single


@dataclass
class Schedule:
    """Steps in topological order, and the nodes that share the memory of another node."""

    steps: list[Step]
    shared: dict[int, Node]


def scheduled(
    graph: Graph,
    *,
    fuse: bool = True,
    fuse_reduce: bool = True,
    largest: int = fusion_region.LARGEST,
    most_inputs: int = fusion_region.MOST_INPUTS,
) -> Schedule:
    """Fuse a graph into steps: at most about `largest` nodes per output, which read at most about `most_inputs` arrays.

    Without `fuse`, every node is a step; without `fuse_reduce`, no reduction is fused into its reader.
    """
    materialized = _always_materialized(graph, fuse=fuse)
    if not fuse_reduce:
        materialized |= {id(node) for node in graph if node.operation == "reduce"}
    pieces = {id(node): partial_stores_of(node) for node in graph if has_partial_stores(node, graph)}
    order, finishing = _numbers_first(graph), ReductionEpilogues(graph)
    regions_by_id: dict[int, FusionRegion] = {}
    additional: dict[int, Node] = {}
    while True:
        # Recompute the regions that contain a newly materialized node or were cut at one.
        regions_by_id = {
            key: cone
            for key, cone in regions_by_id.items()
            if not any(node_ in cone.inside or node_ in cone.fusion_blockers for node_ in additional)
        }
        roots = [node for node in order if id(node) in materialized and node.operation != "input"]
        made_: Made = {}
        for node in roots:
            if id(node) not in pieces and not fusion_region.is_inline(node):
                continue
            made_[id(node)] = []
            for value, region in pieces.get(id(node), [(node, None)]):
                if id(value) not in regions_by_id:
                    regions_by_id[id(value)] = FusionRegion(value, materialized, largest)
                made_[id(node)].append((regions_by_id[id(value)], region))
        regions = [cone for output_regions in made_.values() for cone, _ in output_regions]
        additional = {}
        for cone in regions:
            additional |= cone.fusion_blockers
        additional = {id(last): last for last in (finishing.last(node_, materialized) for node_ in additional.values())}
        if not additional:
            for cone in regions:
                additional |= cone.recompute_blockers
        if not additional:
            for cone in regions:
                additional |= cone.operand_limit_blockers(most_inputs)
        if not additional:
            additional = _computed_twice(regions) or _read_late(roots, made_)
        shared = shared_memory(graph, roots, made_) | region_memory.in_place(order)
        directions: dict[int, Directions] = {}
        if not additional:
            additional, directions = overwritten(roots, made_, shared, materialized)
        additional = {key: node for key, node in additional.items() if key not in materialized}
        if not additional:
            checks = frozenset(id(node) for node in graph.checks)
            steps = _nests(roots, made_, shared, materialized, checks, directions, most_inputs if fuse else 0)
            return Schedule([*steps, *_written(graph, shared, materialized)], shared)
        materialized |= set(additional)


def _numbers_first(graph: Graph) -> list[Node]:
    """The nodes of a graph, with scalars computed from scalars first: no nest has to wait for them."""
    numbers: set[int] = set()
    order, written = list(graph), {id(value) for _, value in graph.writes}
    for node in order:
        is_plain = fusion_region.is_inline(node) and not access_map.changes(node) or node.operation == "input"
        if node.ndim or not is_plain or id(node) in written:
            continue
        if all(id(operand) in numbers for operand in node.inputs):
            numbers.add(id(node))
    return sorted(order, key=lambda node: id(node) not in numbers)


def _always_materialized(graph: Graph, *, fuse: bool) -> set[int]:
    """Nodes that are materialized in any case."""
    materialized = {id(node) for node in (*graph.inputs, *graph.roots)}
    for node in graph:
        if not fusion_region.is_inline(node):
            materialized.add(id(node))
            if node.operation == "matmul":
                materialized |= {id(one) for one in matmul_step.operands(node)[0]}
            elif region_memory.is_control_flow(node):
                materialized |= {
                    id(operand) for operand in node.inputs if operand.operation not in ("constant", "extent")
                }
            elif not has_partial_stores(node, graph):
                materialized |= {id(operand) for operand in node.inputs}
            elif access_map.changes(node) and not fusion_region.is_inline(node.inputs[0]):
                materialized.add(id(node.inputs[0]))
        elif not fuse and node.operation not in ("view", "constant", "extent"):
            materialized.add(id(node))
        if node.operation == "gather":
            materialized.add(id(access_map.gathered_array(node)))
    return materialized


def _written(graph: Graph, shared: dict[int, Node], kept: set[int]) -> list[Step]:
    """Copies to the inputs that are written, except where the value was computed in their memory."""
    results: list[Step] = []
    for target, value in graph.writes:
        if memory_of(value, shared) is not target:
            cone = FusionRegion(copied(value, target.shape), kept)
            rows, columns, order = split(cone)
            results.append(Nest(rows, columns, [Store(cone, order, target)]))
    return results


def _computed_twice(made: Iterable[FusionRegion]) -> dict[int, Node]:
    """Expensive nodes that several nests would compute: the last common nodes of these nests."""
    owners: dict[int, set[int]] = {}
    domains: dict[int, Any] = {}
    costs: dict[int, float] = {}
    listed = list(made)
    for number, cone in enumerate(listed):
        domains[number] = _domain(cone)
        for node in cone.nodes:
            costs[id(node)] = op_cost.own_cost(node) + sum(costs.get(id(operand), 0.0) for operand in {*node.inputs})
            if node is not cone.root:
                owners.setdefault(id(node), set()).add(number)
    result: dict[int, Node] = {}
    for cone in listed:
        for node in cone.nodes:
            for operand in node.inputs:
                key = id(operand)
                if (
                    key in result
                    or key not in owners
                    or operand.operation == "view"
                    or costs[key] < fusion_region.COSTLY
                ):
                    continue
                last = node is cone.root or owners[id(node)] != owners[key]
                if last and len({domains[owner] for owner in owners[key]}) > 1:
                    result[key] = operand
    return result


def _read_late(roots: Sequence[Node], made: Made) -> dict[int, Node]:
    """Nodes that read an array after a loop or branch has overwritten it: they are materialized before."""
    overwritten_at: dict[int, int] = {}
    for position, node in enumerate(roots):
        for operand_index in region_memory.changed(node) if region_memory.is_control_flow(node) else ():
            overwritten_at.setdefault(id(node.inputs[operand_index]), position)
    result: dict[int, Node] = {}
    for position, node in enumerate(roots):
        for cone, _ in made.get(id(node), ()):
            late = {key for key in cone.leaves if overwritten_at.get(key, position) < position}
            for inner in cone.nodes if late else ():
                if inner.operation not in region_memory.VIEWS and any(
                    id(region_memory.seen(other)) in late for other in inner.inputs
                ):
                    result[id(inner)] = inner
    return result


def _domain(cone: FusionRegion) -> Any:
    rows, columns, _ = split(cone)
    return symbolic_dims.key_of_shape(rows), symbolic_dims.key_of_shape(columns)


def split(cone: FusionRegion) -> tuple[tuple[Number, ...], tuple[Number, ...], tuple[int, ...]]:
    """Extents of the rows and of the columns of a region, and the output's dimensions in this order."""
    rows = sorted(cone.rows or ())
    columns = [i for i in range(cone.root.ndim) if i not in rows]
    shape = cone.root.shape
    return tuple(shape[i] for i in rows), tuple(shape[i] for i in columns), (*rows, *columns)


def _nests(
    roots: list[Node],
    made: Made,
    shared: dict[int, Node],
    materialized: set[int],
    checks: frozenset[int],
    directions: Mapping[int, Directions],
    most_inputs: int,
) -> list[Step]:
    """Group outputs into steps in order; a nest takes up to `most_inputs` operand arrays."""
    steps: list[Step] = []
    step_of: dict[int, int] = {}
    barrier = last_check = -1
    for node in roots:
        if region_memory.is_result(node) or region_memory.is_kernel_result(node):
            step_of[id(node)] = step_of[id(node.inputs[0])]
            continue
        if id(node) not in made:
            step_of[id(node)] = len(steps)
            steps.append(Single(node))
            continue
        for cone, region in made[id(node)]:
            if access_map.changes(node) and region is None and id(node) in shared:
                continue
            earliest = max((step_of.get(key, -1) for key in cone.leaves), default=-1)
            if cone.uses_indices:
                earliest = max(earliest, last_check + 1)
            if access_map.changes(node):
                earliest = len(steps)  # behind all readers of the overwritten array, and alone
            elif id(node) in shared:
                earliest = max(earliest, len(steps) - 1)
            store = Store(cone, split(cone)[2], node, region, directions.get(id(cone), {}))
            step_index = _add_to_nest(
                steps, max(earliest, barrier), store, step_of, materialized, shared, checks, most_inputs
            )
            if step_index is None:
                rows, columns, _ = split(cone)
                step_index = len(steps)
                steps.append(Nest(rows, columns, [store]))
            step_of[id(node)] = max(step_index, step_of.get(id(node), -1))
            if id(node) in checks:
                last_check = max(last_check, step_index)
            if access_map.changes(node) or id(node) in shared:
                barrier = len(steps) - 1
    return steps


def _add_to_nest(
    steps: list[Step],
    after: int,
    store: Store,
    step_of: dict[int, int],
    materialized: set[int],
    shared: dict[int, Node],
    checks: frozenset[int],
    most_inputs: int,
) -> int | None:
    """Add an output to an existing nest of the same loops behind its dependences.

    Return the step, None if there is none.
    """
    rows, columns, _ = split(store.cone)
    for i in range(len(steps) - 1, max(after, 0) - 1, -1) if most_inputs else ():
        step = steps[i]
        if not isinstance(step, Nest) or not _same(step.rows, rows):
            continue
        if any((id(other.target) in checks) != (id(store.target) in checks) for other in step.stores):
            continue  # checks run before any store
        if not (_same(step.columns, columns) or (rows and not (columns and step.columns))):
            continue
        if not (columns or step.columns or _reduced(store) == _reduced(step.stores[0])):
            continue  # a nest has one lane loop
        read = store.cone.arrays.union(*(store.cone.arrays for store in step.stores))
        if len(read - {id(store.target) for store in step.stores}) > most_inputs:
            continue
        if i == after and not _is_fusible_with_producer(
            step, store, {key for key, at in step_of.items() if at == i}, materialized
        ):
            continue
        if id(store.target) in shared and any(_is_read_elsewhere(other, store, shared) for other in step.stores):
            continue
        if not step.columns:
            step.columns = columns
        step.stores.append(store)
        return i
    return None


def _reduced(store: Store) -> frozenset[Any]:
    """The shapes over which the reductions of an output run."""
    return frozenset(
        symbolic_dims.key_of_shape(node.inputs[0].shape[axis] for axis in node.options["axes"])
        for node in store.cone.nodes
        if node.operation == "reduce"
    )


def _is_read_elsewhere(reader: Store, store: Store, shared: dict[int, Node]) -> bool:
    """Return whether an output of a nest reads the memory of another one except at the element that is stored then."""
    memory = memory_of(store.target, shared)
    at_once = (
        store.region is None and reader.order == store.order and not (reader.cone.reductions or store.cone.reductions)
    )
    identity_key = {access_map.key_of(access_map.identity(reader.cone.root.ndim))}
    return any(
        memory_of(leaf, shared) is memory and not (at_once and set(reader.cone.places[key]) == identity_key)
        for key, leaf in reader.cone.leaves.items()
    )


def _is_fusible_with_producer(nest: Nest, store: Store, nest_outputs: set[int], materialized: set[int]) -> bool:
    """Return whether an output can read other outputs of the same nest from registers, at the same access map."""
    stores = {id(store.target): store for store in nest.stores}
    needed = [key for key in store.cone.leaves if key in nest_outputs]
    if not needed:
        return True
    if any(
        key not in stores or stores[key].region is not None or stores[key].cone.root is not stores[key].target
        for key in needed
    ):
        return False
    if store.region is not None or any(store.region is not None for store in nest.stores):
        return False
    if store.cone.gathered_ids & set(needed):
        return False
    cone = FusionRegion(store.cone.root, materialized - set(needed))
    if cone.fusion_blockers or split(cone)[:2] != split(store.cone)[:2] and not _same_split(cone, store.cone):
        return False
    for key in needed:
        order = stores[key].order
        if len(order) > len(store.order):
            return False
        place = tuple((0, ((store.order[order.index(i)], 1),)) for i in range(stores[key].cone.root.ndim))
        if set(store.cone.places[key]) != {access_map.key_of(place)}:
            return False
    store.cone = cone
    return True


def _same_split(left: FusionRegion, right: FusionRegion) -> bool:
    first, second = split(left), split(right)
    return _same(first[0], second[0]) and _same(first[1], second[1]) and first[2] == second[2]


def _same(left: Iterable[Number], right: Iterable[Number]) -> bool:
    return symbolic_dims.key_of_shape(left) == symbolic_dims.key_of_shape(right)
