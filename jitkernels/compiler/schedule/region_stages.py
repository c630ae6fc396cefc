"""Stages of a loop or branch region: scalars in order, and between them groups of loop nests.

A `NestGroup` is computed by nests at once: a graph of its own, whose inputs are available arrays and scalars.
Loop-carried arrays are updated in their memory; all other arrays that are read later have memory of their own.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir import access_map, builder
from jitkernels.compiler.ir.graph import Graph, Node, readers, sorted_nodes
from jitkernels.compiler.ir.region_memory import (
    home_array,
    home_operand_index,
    is_control_flow,
    is_direct,
    nest_update,
    targets_of,
    updated_operands,
)
from jitkernels.compiler.ir.regions import COPIED
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.errors import GraphError

Strides = tuple[Number, ...]
NEEDED_BEFORE = "an array is needed as it was when it is written over in a loop or branch"


@dataclass
class NestGroup:
    """Arrays that nests compute at once: a graph of its own.

    `captured`: the region's nodes that are its inputs, `results`: those that are its outputs and writes. `program`,
    `steps` and `arrays`: its compiled form. `words`: the outer frame's words of its arrays, `sizes`: the bytes of each
    by word, `sharing`: the words whose memory other arrays have at other times, with the first and last step of an
    iteration that needs each.
    """

    graph: Graph
    captured: list[Node]
    results: list[Node]
    program: Any = None
    steps: Any = None
    arrays: Any = None
    calls: Any = ()
    words: dict[Node, int] = field(default_factory=dict)
    sizes: dict[int, Number] = field(default_factory=dict)
    sharing: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Body:
    """A region: stages of scalar nodes and a group or None."""

    stages: list[tuple[list[Node], NestGroup | None]]

    @property
    def groups(self) -> list[NestGroup]:
        return [group for _, group in self.stages if group is not None]

    @property
    def words(self) -> list[int]:
        """The outer frame's words of all memory of its groups."""
        return [word for group in self.groups for word in group.words.values()]


def bodies_of(flow: Node, strides: Sequence[Strides | None]) -> dict[int, Body]:
    """The regions of a loop or branch and those inside, by id; `strides`: those of the operands."""
    result: dict[int, Body] = {}
    if flow.operation == "loop":
        first = 3 if flow.options["counts"] else 0
        parameter_strides = [*([None] if first else []), *strides[first:]]
        _add(result, flow.options["condition"], parameter_strides, {})
        _add(result, flow.options["body"], parameter_strides, targets_of(flow))
        return result
    targets = {i: position for i, position in enumerate(flow.options["bases"]) if position >= 0}
    for name in ("yes", "no"):
        _add(result, flow.options[name], strides[1:], targets)
    return result


def _add(
    bodies: dict[int, Body], graph: Graph, argument_strides: Sequence[Strides | None], targets: Mapping[int, int]
) -> None:
    """Plan a region and those inside. `targets`: by the number of an output, the input whose memory it has."""
    strides = dict(zip(graph.inputs, argument_strides, strict=True))
    home = {
        graph.outputs[i]: graph.inputs[position]
        for i, position in targets.items()
        if graph.outputs[i].ndim and graph.outputs[i] is not graph.inputs[position]
    }
    home |= dict(found for found in map(nest_update, home) if found is not None)
    try:
        versions = _with_earlier_versions(home)
        nodes, stages = _staged(graph, versions)
        home = versions
    except GraphError:  # an earlier version is needed beside a later one
        nodes, stages = _staged(graph, home)
    body, read, views = Body([]), readers(nodes), _unchanged_views(nodes, home)
    views -= {view for view in views if not _is_of_rows(view) or any(map(is_direct, read[view]))}.union(graph.roots)
    for stage in range(max(stages.values(), default=0) + 1):
        direct = [node for node in nodes if stages[node] == stage and is_direct(node)]
        for node in direct:
            strides[node] = _strides_of(node, strides)
            if is_control_flow(node):
                _refuse_twice(node)
                bodies |= bodies_of(node, [strides.get(operand) for operand in node.inputs])
        computed = [node for node in nodes if stages[node] == stage and not is_direct(node)]
        again = {operand for node in computed for operand in node.inputs if operand in views}.difference(computed)
        arrays = dict.fromkeys((*again, *computed))
        live = {operand for node in nodes if node not in arrays for operand in node.inputs}.union(graph.roots) - views
        group = _group([*arrays], [node for node in arrays if node in live], home, strides) if arrays else None
        body.stages.append((direct, group))
        for node in group.results if group else ():
            strides[node] = strides[home[node]] if node in home else builder.contiguous(node.shape)
    for i, position in targets.items():
        output, base = graph.outputs[i], graph.inputs[position]
        array = home_array(output) if output.ndim else output
        if output.ndim and is_direct(output) and array is not base and home.get(array) is not base:
            raise GraphError("an array that is left in the memory of another")
    bodies[id(graph)] = body


def _with_earlier_versions(home: Mapping[Node, Node]) -> dict[Node, Node]:
    """Let nests leave earlier versions of an array in its memory, too: updates one after another copy nothing."""
    result = dict(home)
    for node, array in home.items():
        while access_map.changes(node) and not is_direct(node):
            node = node.inputs[0]
            if node in result or not access_map.changes(node) or is_direct(node):
                break
            result[node] = array
    return result


def _replaced(home: Mapping[Node, Node]) -> dict[Node, list[Node]]:
    """The arrays whose memory nests change, by the nodes that they leave there: the first version and later ones."""
    result: dict[Node, list[Node]] = {}
    for node, array in home.items():
        if is_direct(node):
            continue
        arrays = result[node] = [array]
        while access_map.changes(node) and node.inputs[0] in home and not is_direct(node.inputs[0]):
            node = node.inputs[0]
            arrays.append(node)
    return result


def _staged(graph: Graph, home: Mapping[Node, Node]) -> tuple[list[Node], dict[Node, int]]:
    """The nodes of a region in order, and their stages."""
    nodes, replaced = ordered(graph, home), _replaced(home)
    read = readers(nodes)
    stages = _stages(nodes, read, replaced)
    _delay(nodes, read, home, stages)
    _refuse_late_reads(nodes, stages, replaced)
    return nodes, stages


def _strides_of(node: Node, strides: Mapping[Node, Strides | None]) -> Strides | None:
    if node in strides:
        return strides[node]
    if node.operation == "scatter" and is_direct(node):
        return strides[node.inputs[0]]
    if node.operation == "item" and node.ndim:
        operand_index = home_operand_index(node)
        return None if operand_index is None else strides[node.inputs[0].inputs[operand_index]]
    return None


def _stages(
    nodes: Sequence[Node], read: Mapping[Node, list[Node]], replaced: Mapping[Node, Sequence[Node]]
) -> dict[Node, int]:
    """The stage of each node: nests behind the scalars they read, and behind the readers of what they overwrite."""
    earliest: dict[Node, int] = {}
    while True:
        result: dict[Node, int] = {}
        for node in nodes:
            direct, stage = is_direct(node), earliest.get(node, 0)
            predecessors = list(node.inputs)
            if direct:
                predecessors += [one for array in overwritten(node) for one in read[array] if one is not node]
            for predecessor in predecessors:
                if predecessor in result:
                    stage = max(stage, result[predecessor] + (direct and not is_direct(predecessor)))
            result[node] = stage
        late: dict[Node, int] = {}
        for node in nodes:
            if node in replaced:
                reading = {reader for array in replaced[node] for reader in read.get(array, ())} - {node}
                last = max((result[reader] for reader in reading), default=0)
                if result[node] < last:
                    late[node] = last
        if not late or max(result.values()) > len(nodes):
            return result
        earliest |= late


def _delay(
    nodes: Sequence[Node], read: Mapping[Node, list[Node]], home: Mapping[Node, Node], stages: dict[Node, int]
) -> None:
    """Move views of unchanged arrays into the nests that read them, instead of materializing them."""
    views = _unchanged_views(nodes, home)
    for node in reversed(nodes):
        if node in views and read[node]:
            latest = min(stages[reader] - is_direct(reader) for reader in read[node])
            stages[node] = max(stages[node], latest)


def _is_of_rows(view: Node) -> bool:
    """Whether the elements of a view lie side by side: reading them twice is cheaper than a copy."""
    index_map = view.options["map"]
    if not index_map or not view.ndim:  # of one element, or of the same one everywhere
        return False
    _, steps = index_map[-1]
    return len(steps) == 1 and steps[0][0] == view.ndim - 1 and same(steps[0][1], 1)


def _unchanged_views(nodes: Sequence[Node], home: Mapping[Node, Node]) -> set[Node]:
    """The views of arrays that a region does not change: nests of any stage may read these again."""
    changed = {home_array(array) for node in nodes for array in overwritten(node)}.union(home.values())
    return {
        node
        for node in nodes
        if node.operation == "view" and node.inputs[0].operation == "parameter" and node.inputs[0] not in changed
    }


def _refuse_late_reads(
    nodes: Sequence[Node], stages: Mapping[Node, int], replaced: Mapping[Node, Sequence[Node]]
) -> None:
    """Raise GraphError if a node reads an array after nests have overwritten it."""
    overwritten_at: dict[Node, int] = {}
    for node in nodes:
        for array in replaced.get(node, ()):
            overwritten_at[array] = min(stages[node], overwritten_at.get(array, len(nodes)))
    for node in nodes:
        for operand in node.inputs:
            if stages[node] > overwritten_at.get(operand, len(nodes)):
                raise GraphError(NEEDED_BEFORE)


def _refuse_twice(flow: Node) -> None:
    """Raise GraphError if a nested loop or branch changes an operand that it also captures unchanged."""
    for index in updated_operands(flow):
        if sum(operand is flow.inputs[index] for operand in flow.inputs) > 1:
            raise GraphError(NEEDED_BEFORE)


def _group(
    nodes: Sequence[Node], roots: Sequence[Node], home: Mapping[Node, Node], strides: Mapping[Node, Strides | None]
) -> NestGroup:
    """The graph of some nodes, of which `roots` are read elsewhere."""
    new: dict[Node, Node] = {}
    captured: list[Node] = []

    def mapped(node: Node) -> Node:
        if node not in new:
            new[node] = node
            if node.operation not in COPIED:
                options = {"index": len(captured), "strides": strides.get(node) or ()}
                new[node] = Node("input", (), node.dtype, node.shape, options)
                captured.append(node)
        return new[node]

    for node in nodes:
        new[node] = node.with_inputs([mapped(operand) for operand in node.inputs])
    versions = {home.get(node) or home_array(node): node for node in captured}  # versions share its memory
    written = [node for node in roots if node in home]
    writes = [(mapped(versions.get(home[node], home[node])), new[node]) for node in written]
    outputs = [node for node in roots if node not in home]
    dense_outputs = frozenset(range(len(outputs)))  # readers expect them in C order
    inputs = tuple(new[node] for node in captured)
    graph = Graph(inputs, tuple(new[node] for node in outputs), tuple(writes), in_rows=dense_outputs)
    return NestGroup(graph, captured, [*outputs, *written])


def ordered(graph: Graph, home: Mapping[Node, Node] | None = None) -> list[Node]:
    """The nodes of a region, each array read before it is overwritten. Raises GraphError if there is no such order.

    `home`: the array that a node of a nest overwrites.
    """
    nodes = sorted_nodes(graph.roots)
    read = readers(nodes)
    dependences: dict[Node, set[Node]] = {node: set(node.inputs) for node in nodes}
    replaced = _replaced(home or {})
    for node in nodes:
        for array in (*overwritten(node), *replaced.get(node, ())):
            for reader in read.get(array, ()):
                if reader is not node and (is_direct(node) or is_direct(reader)):
                    dependences[node].add(reader)
    followers: dict[Node, list[Node]] = {}
    for node, predecessors in dependences.items():
        for predecessor in predecessors:
            followers.setdefault(predecessor, []).append(node)
    position = {node: i for i, node in enumerate(nodes)}
    ready = [i for i, node in enumerate(nodes) if not dependences[node]]
    results: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        results.append(node)
        for follower in followers.get(node, ()):
            dependences[follower].discard(node)
            if not dependences[follower]:
                heapq.heappush(ready, position[follower])
    if len(results) < len(nodes):
        raise GraphError(NEEDED_BEFORE)
    return results


def overwritten(node: Node) -> list[Node]:
    """The arrays whose memory a node changes."""
    if node.operation == "scatter":
        return [node.inputs[0]] if is_direct(node) else []
    return [node.inputs[index] for index in updated_operands(node)] if is_control_flow(node) else []


def scatter_written_words(body: Body, group: NestGroup) -> set[int]:
    """The words of arrays that a group reads and of whose elements the region stores some."""
    written: set[Node] = set()
    for nodes, _ in body.stages:
        for node in nodes:
            while node.operation == "scatter" and node not in written:
                written.add(node)
                node = node.inputs[0]
                if node.operation != "scatter":
                    written.add(node)
    return {
        group.program.words[node]
        for node, captured in zip(group.program.graph.inputs, group.captured, strict=True)
        if captured in written
    }
