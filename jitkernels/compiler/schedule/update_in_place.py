"""In-place updates: nodes that take over the memory of the array that they change, as in `a[1:] = b`."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from jitkernels.compiler.ir import access_map, matrix_ops
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import is_control_flow, is_kernel_result, is_result
from jitkernels.compiler.schedule import matmul_step
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_direction import Directions, directions_of


class OutputPart(NamedTuple):
    """A fusion region, and the access map of the output that it stores to; None for all of the output."""

    region: FusionRegion
    target_map: IndexMap | None


OutputParts = dict[Node, list[OutputPart]]
"""The parts of each output that loop nests compute."""


def readers_first(roots: Sequence[Node], parts: OutputParts) -> list[Node]:
    """Order materialized nodes so that updates follow what reads the array before them, where dependences allow it.

    An update with a later reader of the old array is moved behind it, with all that depends on it up to there. Loops
    and branches change arrays, too: nothing is moved past them.
    """
    result = [*roots]
    for update in roots:
        if not access_map.changes(update):
            continue
        base, position = update.inputs[0], result.index(update)
        kept, moved, dependents = list[Node](), [update], {update}
        behind = position
        for i, node in enumerate(result[position + 1 :], position + 1):
            if is_control_flow(node):
                break
            leaves = _leaves(node, parts)
            if dependents.isdisjoint(leaves):
                kept.append(node)
                if base in leaves:
                    behind = i
            else:
                moved.append(node)
                dependents.add(node)
        if behind > position:
            window = {*result[position : behind + 1]}
            kept, moved = ([node for node in nodes if node in window] for nodes in (kept, moved))
            result[position : behind + 1] = [*kept, *moved]
    return result


def _leaves(node: Node, parts: OutputParts) -> Sequence[Node]:
    """The materialized nodes that compute a node."""
    return [leaf for region, _ in parts[node] for leaf in region.leaves] if node in parts else _read(node)


def shared_memory(graph: Graph, roots: Sequence[Node], parts: OutputParts) -> dict[Node, Node]:
    """Map updates to the arrays whose memory they take over: nothing reads the old values after new ones are stored.

    The memory of an input serves the value which is finally written to it, and the versions on the way; not that of a
    product's operand, unless a kernel accepts its layout.
    """
    last_read: dict[Node, int] = {}
    for position, node in enumerate(roots):
        last_read |= dict.fromkeys(_leaves(node, parts), position)
    inputs, outputs, written = {*graph.inputs}, {*graph.outputs}, {target for target, _ in graph.writes}
    final: dict[Node, Node] = {}
    for target, node in graph.writes:
        while access_map.changes(node) and node not in final:
            final[node] = target
            node = node.inputs[0]
    shared: dict[Node, Node] = {}
    targets = {value: target for target, value in graph.writes}
    factors = matmul_step.factors(roots)
    for position, node in enumerate(roots):
        if access_map.changes(node):
            base = node.inputs[0]
            is_external = base in inputs or base in outputs or base in targets  # written at the end
            is_owned = base in parts and not is_external
            is_final = base in written and final.get(node) is base
            memory = memory_of(base, shared)
            if base in shared:
                is_owned = final.get(node) is memory or memory not in inputs
            is_local = base not in outputs and (node not in outputs or _becomes_result(memory, inputs, graph, node))
            fits = node not in factors or matrix_ops.is_dense(memory)
            if (is_owned or is_final) and last_read.get(base, -1) <= position and is_local and fits:
                shared[node] = base
        elif node in targets and node in parts and node not in outputs:
            target = targets[node]
            fits = node not in factors or matrix_ops.is_dense(target)
            # Partial stores run one after another, whatever the later ones read.
            fits = fits and (
                len(parts[node]) == 1 or not any(_reads(one.region, target, shared) for one in parts[node])
            )
            if last_read.get(target, -1) <= position and target not in shared.values() and fits:
                shared[node] = target
    return shared


def _becomes_result(memory: Node, inputs: Container[Node], graph: Graph, node: Node) -> bool:
    """Whether an output may be left in the memory of the array that it changes, which becomes the result."""
    is_new = memory not in inputs and not is_result(memory) and not is_kernel_result(memory)
    ordered = {graph.outputs[number] for number, _ in graph.orders}
    return is_new and memory not in graph.outputs and graph.outputs.count(node) == 1 and node not in ordered


def _reads(region: FusionRegion, memory: Node, shared: Mapping[Node, Node]) -> bool:
    return any(memory_of(leaf, shared) is memory for leaf in region.leaves)


def _read(node: Node) -> tuple[Node, ...]:
    """The arrays that an operation other than a loop nest reads from memory."""
    return matmul_step.operands(node)[0] if node.operation == "matmul" else node.inputs


def memory_of(node: Node, shared: Mapping[Node, Node]) -> Node:
    """The node that first had the memory of a node."""
    while node in shared:
        node = shared[node]
    return node


def resolve_hazards(
    roots: Sequence[Node], parts: OutputParts, shared: dict[Node, Node], materialized: Container[Node]
) -> tuple[set[Node], dict[FusionRegion, Directions]]:
    """Return the values to materialize first, as they read their own destination at other elements.

    Unless loop directions avoid the hazard; these are returned too. A value that is materialized already loses its
    shared memory.
    """
    additional: set[Node] = set()
    directions: dict[FusionRegion, Directions] = {}
    for node in roots:
        if node not in shared or node not in parts:
            continue
        memory = memory_of(node, shared)
        for region, target_map in parts[node]:
            if access_map.changes(node) and target_map is None:
                continue  # the copy of the base, which is elided
            target = target_map if target_map is not None else access_map.identity(node.ndim)
            target_key = access_map.key_of(target)
            hazards = [
                leaf
                for leaf in region.leaves
                if memory_of(leaf, shared) is memory
                and any(
                    key != target_key and (region.reductions or not _is_disjoint(index_map, target, region.root))
                    for key, index_map in region.access_maps[leaf].items()
                )
            ]
            if not hazards:
                continue
            operands = region.root.inputs if target_map is not None else ()
            values = {value for value in operands if value not in materialized and _computes(value, hazards)}
            loop_directions = directions_of(region, target, hazards) if node.operation == "update" else None
            if loop_directions is not None:
                directions[region] = loop_directions
            elif values:
                additional |= values
            else:
                shared.pop(node, None)
    return additional, directions


def _computes(value: Node, hazards: Sequence[Node]) -> bool:
    """Whether a value, or an index, reads one of these arrays."""
    worklist, seen = [value], set[Node]()
    while worklist:
        node = worklist.pop()
        if node in hazards:
            return True
        if node not in seen:
            seen.add(node)
            worklist += node.inputs
    return False


def _is_disjoint(load: IndexMap, store: IndexMap, root: Node) -> bool:
    ranges = ([access_map.index_range(index, root.shape) for index in index_map] for index_map in (load, store))
    return any(map(access_map.are_apart, *ranges))
