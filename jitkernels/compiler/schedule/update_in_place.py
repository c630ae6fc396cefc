"""In-place updates: nodes that take over the memory of the array that they change, as in `a[1:] = b`."""

from jitkernels.compiler.ir import access_map, matrix_ops
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, least_of
from jitkernels.compiler.schedule import matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions, directions_of

Made = dict[int, list[tuple[FusionRegion, IndexMap | None]]]
"""The fusion regions of each output, and the part of the output that each stores to, None for all."""


def shared_memory(graph: Graph, roots: list[Node], made: Made) -> dict[int, Node]:
    """Map updates to the arrays whose memory they take over: nothing reads the old values after new ones are stored.

    The memory of an input serves the value which is finally written to it, and the versions on the way; not that of a
    product's operand, unless a kernel accepts its layout.
    """
    last_read: dict[int, int] = {}
    for position, node in enumerate(roots):
        leaves = (
            [leaf for cone, _ in made[id(node)] for leaf in cone.leaves] if id(node) in made else map(id, _read(node))
        )
        for leaf in leaves:
            last_read[leaf] = position
    input_ids, written = ({id(node) for node in graph.inputs}, {id(target): target for target, _ in graph.writes})
    outputs = {id(node) for node in graph.outputs}
    final: dict[int, Node] = {}
    for target, value in graph.writes:
        node = value
        while access_map.changes(node) and id(node) not in final:
            final[id(node)] = target
            node = node.inputs[0]
    shared: dict[int, Node] = {}
    targets = {id(value): target for target, value in graph.writes}
    factors = matmul_step.factors(roots)
    for position, node in enumerate(roots):
        if access_map.changes(node):
            base = node.inputs[0]
            is_external = id(base) in input_ids or id(base) in outputs or id(base) in targets  # written at the end
            is_owned = id(base) in made and not is_external
            is_final = id(base) in written and final.get(id(node)) is base
            if id(base) in shared:
                is_owned = final.get(id(node)) is memory_of(base, shared) or memory_of(base, shared) not in graph.inputs
            is_local = id(base) not in outputs and id(node) not in outputs
            fits = id(node) not in factors or matrix_ops.is_dense(memory_of(base, shared))
            if (is_owned or is_final) and last_read.get(id(base), -1) <= position and is_local and fits:
                shared[id(node)] = base
        elif id(node) in targets and id(node) in made and id(node) not in outputs:
            target = targets[id(node)]
            fits = id(node) not in factors or matrix_ops.is_dense(target)
            # Partial stores run one after another, whatever the later ones read.
            parts = made[id(node)]
            fits = fits and (len(parts) == 1 or not any(_reads(cone, target, shared) for cone, _ in parts))
            if last_read.get(id(target), -1) <= position and target not in shared.values() and fits:
                shared[id(node)] = target
    return shared


def _reads(cone: FusionRegion, memory: Node, shared: dict[int, Node]) -> bool:
    return any(memory_of(leaf, shared) is memory for leaf in cone.leaves.values())


def _read(node: Node) -> tuple[Node, ...]:
    """The arrays that an operation other than a loop nest reads from memory."""
    return matmul_step.operands(node)[0] if node.operation == "matmul" else node.inputs


def memory_of(node: Node, shared: dict[int, Node]) -> Node:
    """The node that first had the memory of a node."""
    while id(node) in shared:
        node = shared[id(node)]
    return node


def overwritten(
    roots: list[Node], made: Made, shared: dict[int, Node], materialized: set[int]
) -> tuple[dict[int, Node], dict[int, Directions]]:
    """Values that read their own destination at other elements: they are materialized first.

    Unless loop directions avoid the hazard; these are returned by the ids of the regions.
    """
    additional: dict[int, Node] = {}
    directions: dict[int, Directions] = {}
    for node in roots:
        if id(node) not in shared or id(node) not in made:
            continue
        memory = memory_of(node, shared)
        for cone, region in made[id(node)]:
            if access_map.changes(node) and region is None:
                continue  # the copy of the base, which is elided
            target = region if region is not None else access_map.identity(node.ndim)
            target_key = access_map.key_of(target)
            hazards = [
                key
                for key, leaf in cone.leaves.items()
                if memory_of(leaf, shared) is memory
                and any(
                    map_key != target_key and (cone.reductions or not _is_disjoint(place, target, cone.root))
                    for map_key, place in cone.places[key].items()
                )
            ]
            if not hazards:
                continue
            value = cone.root.inputs[0] if region is not None else None
            loop_directions = directions_of(cone, target, hazards) if node.operation == "update" else None
            if loop_directions is not None:
                directions[id(cone)] = loop_directions
            elif value is not None and id(value) not in materialized:
                additional[id(value)] = value
            else:
                shared.pop(id(node), None)
    return additional, directions


def _is_disjoint(access_map: IndexMap, target: IndexMap, root: Node) -> bool:
    """Return whether a load and a store of an array are disjoint for sure."""
    for read_dim, stored_dim in zip(access_map, target, strict=False):
        read, stored = _limits(read_dim, root), _limits(stored_dim, root)
        if read is None or stored is None:
            continue
        if (least_of(stored[0] - read[1]) or 0) > 0 or (least_of(read[0] - stored[1]) or 0) > 0:
            return True
    return False


def _limits(dim_map: tuple[Number, tuple[tuple[int, Number], ...]], root: Node) -> tuple[Number, Number] | None:
    """The first and the last index in a dimension; None if it is not affine in one loop with a positive step."""
    start, steps = dim_map
    if not steps:
        return start, start
    (loop, step), *others = steps
    if others or not 0 <= loop < root.ndim or isinstance(step, Extent) or step < 1:
        return None
    return start, start + (root.shape[loop] - 1) * step
