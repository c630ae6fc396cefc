"""Stages of a loop or branch region: scalars in order, and between them groups of loop nests.

A `Group` is computed by nests at once: a graph of its own, whose inputs are available arrays and scalars.
Loop-carried arrays are updated in their memory; all other arrays that are read later have memory of their own.
"""

import heapq
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Graph, Node, readers, sorted_nodes
from jitkernels.compiler.ir.region_memory import (
    changed,
    home_array,
    home_operand_index,
    is_control_flow,
    is_direct,
    targets_of,
)
from jitkernels.compiler.ir.regions import COPIED
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.errors import GraphError

Strides = tuple[Number, ...]


@dataclass
class Group:
    """Arrays that nests compute at once. `taken`: the region's nodes that are its inputs; `given`.

    Those that are its outputs. `program`, `steps` and `arrays`: its compiled form; `words`: the outer frame's words
    of its memory, by node id; `sizes`: the bytes of it by word; `sharing`: the words whose memory is shared with
    others at other times.
    """

    graph: Graph
    taken: list[Node]
    given: list[Node]
    name: str = ""
    program: Any = None
    steps: Any = None
    arrays: Any = None
    calls: Any = ()
    words: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, Number] = field(default_factory=dict)
    sharing: AbstractSet[int] = frozenset()


@dataclass
class Body:
    """A region: stages of scalar nodes and a group or None."""

    stages: list[tuple[list[Node], Group | None]]
    overwritten: dict[int, Node] = field(default_factory=dict)

    @property
    def words(self) -> list[int]:
        """The outer frame's words of all memory of its groups."""
        return [word for _, group in self.stages if group for word in group.words.values()]


def bodies_of(flow: Node, strides: Sequence[Strides | None]) -> dict[int, Body]:
    """The regions of a loop or branch and those inside, by id; `given`: strides of the operands."""
    result: dict[int, Body] = {}
    if flow.operation == "loop":
        first = 3 if flow.options["counts"] else 0
        parameter_strides = [*([None] if first else []), *strides[first:]]
        _add(result, flow.options["condition"], parameter_strides, {})
        _add(result, flow.options["body"], parameter_strides, targets_of(flow))
        return result
    for name in ("yes", "no"):
        region = flow.options[name]
        targets = {i: position for i, position in enumerate(flow.options["bases"]) if position >= 0}
        _add(result, region, strides[1:], targets)
    return result


def _add(
    bodies: dict[int, Body], graph: Graph, argument_strides: Sequence[Strides | None], targets: Mapping[int, int]
) -> None:
    """Plan a region and those inside. `targets`: by the number of an output, the input whose memory it has."""
    strides: dict[int, Strides | None] = {
        id(node): argument for node, argument in zip(graph.inputs, argument_strides, strict=True)
    }
    home = {
        id(graph.outputs[i]): graph.inputs[position]
        for i, position in targets.items()
        if graph.outputs[i].ndim and graph.outputs[i] is not graph.inputs[position]
    }
    nodes = ordered(graph, home)
    stages = _stages(nodes, readers(nodes), home)
    _delay(nodes, readers(nodes), home, stages)
    body = Body([])
    outputs = {id(node) for node in graph.roots}
    for stage in range(max(stages.values(), default=0) + 1):
        stage_nodes = [node for node in nodes if stages[id(node)] == stage]
        direct = [node for node in stage_nodes if is_direct(node)]
        for node in direct:
            strides[id(node)] = _strides_of(node, strides)
            if is_control_flow(node):
                _refuse_twice(node)
                bodies |= bodies_of(node, [strides.get(id(operand)) for operand in node.inputs])
        arrays = [node for node in stage_nodes if not is_direct(node)]
        read = {
            id(operand) for node in nodes if not any(node is a for a in arrays) for operand in node.inputs
        } | outputs
        group = _group(arrays, [node for node in arrays if id(node) in read], home, strides) if arrays else None
        body.stages.append((direct, group))
        for node in group.given if group else ():
            base = home.get(id(node))
            strides[id(node)] = strides[id(base)] if base is not None else builder.contiguous(node.shape)
            if base is not None:
                body.overwritten[id(node)] = base
    _refuse_late_reads(nodes, stages, home)
    for i, position in targets.items():
        output, base = graph.outputs[i], graph.inputs[position]
        if output.ndim and is_direct(output) and home_array(output) is not base:
            raise GraphError("an array that is left in the memory of another")
    bodies[id(graph)] = body


def _strides_of(node: Node, strides: Mapping[int, Strides | None]) -> Strides | None:
    if id(node) in strides:
        return strides[id(node)]
    if node.operation == "scatter" and is_direct(node):
        return strides[id(node.inputs[0])]
    if node.operation == "item" and node.ndim:
        place = home_operand_index(node)
        return None if place is None else strides[id(node.inputs[0].inputs[place])]
    return None


def _stages(nodes: Sequence[Node], read: Mapping[int, list[Node]], home: Mapping[int, Node]) -> dict[int, int]:
    """The stage of each node: nests behind the scalars they read, and behind the readers of what they overwrite."""
    earliest: dict[int, int] = {}
    while True:
        result: dict[int, int] = {}
        for node in nodes:
            direct, stage = is_direct(node), earliest.get(id(node), 0)
            predecessors = list(node.inputs)
            if direct:
                predecessors += [
                    predecessor
                    for array in overwritten(node)
                    for predecessor in read[id(array)]
                    if predecessor is not node
                ]
            for predecessor in predecessors:
                if id(predecessor) in result:
                    stage = max(stage, result[id(predecessor)] + (direct and not is_direct(predecessor)))
            result[id(node)] = stage
        late = {
            id(node): last
            for node in nodes
            if id(node) in home and not is_direct(node)
            for last in [
                max(
                    (
                        result[id(predecessor)]
                        for predecessor in read.get(id(home[id(node)]), ())
                        if predecessor is not node
                    ),
                    default=0,
                )
            ]
            if result[id(node)] < last
        }
        if not late or max(result.values()) > len(nodes):
            return result
        earliest |= late


def _delay(
    nodes: Sequence[Node], read: Mapping[int, list[Node]], home: Mapping[int, Node], stages: dict[int, int]
) -> None:
    """Move views of unchanged arrays into the nests that read them, instead of materializing them."""
    changed_here = {id(home_array(array)) for node in nodes for array in overwritten(node)}
    changed_here |= {id(array) for array in home.values()}
    for node in reversed(nodes):
        source = node.inputs[0] if node.operation == "view" else node
        if source.operation == "parameter" and node is not source and id(source) not in changed_here and read[id(node)]:
            latest = min(stages[id(reader)] - is_direct(reader) for reader in read[id(node)])
            stages[id(node)] = max(stages[id(node)], latest)


def _refuse_late_reads(nodes: Sequence[Node], stages: Mapping[int, int], home: Mapping[int, Node]) -> None:
    """Raise GraphError if a node reads an array after nests have overwritten it."""
    overwritten_at = {
        id(home[id(node)]): stages[id(node)] for node in nodes if id(node) in home and not is_direct(node)
    }
    for node in nodes:
        for operand in node.inputs:
            if stages[id(node)] > overwritten_at.get(id(operand), len(nodes)):
                raise GraphError("an array is needed as it was when it is written over in a loop or branch")


def _refuse_twice(flow: Node) -> None:
    """Raise GraphError if a nested loop or branch changes an operand that it also captures unchanged."""
    for place in changed(flow):
        if sum(operand is flow.inputs[place] for operand in flow.inputs) > 1:
            raise GraphError("an array is needed as it was when it is written over in a loop or branch")


def _group(
    nodes: Sequence[Node], roots: Sequence[Node], home: Mapping[int, Node], strides: Mapping[int, Strides | None]
) -> Group:
    """The graph of some nodes, of which `roots` are read elsewhere."""
    new: dict[int, Node] = {}
    inputs: list[Node] = []
    taken: list[Node] = []

    def mapped(node: Node) -> Node:
        if id(node) not in new:
            if node.operation in COPIED:
                new[id(node)] = node
            else:
                options = {"index": len(inputs), "strides": strides.get(id(node)) or ()}
                new[id(node)] = Node("input", (), node.dtype, node.shape, options)
                inputs.append(new[id(node)])
                taken.append(node)
        return new[id(node)]

    for node in nodes:
        new[id(node)] = node.with_inputs([mapped(operand) for operand in node.inputs])
    versions = {id(home_array(captured)): captured for captured in taken}  # versions of an array share its memory
    writes = [
        (mapped(versions.get(id(home[id(node)]), home[id(node)])), new[id(node)]) for node in roots if id(node) in home
    ]
    outputs = [node for node in roots if id(node) not in home]
    written = [node for node in roots if id(node) in home]
    dense_outputs = frozenset(range(len(outputs)))  # readers expect them in C order
    graph = Graph(tuple(inputs), tuple(new[id(node)] for node in outputs), tuple(writes), in_rows=dense_outputs)
    return Group(graph, taken, [*outputs, *written])


def ordered(graph: Graph, home: Mapping[int, Node] | None = None) -> list[Node]:
    """The nodes of a region, each array read before it is overwritten. Raises GraphError if there is no such order.

    `into`: by node id, the array that a node of a nest overwrites.
    """
    nodes = sorted_nodes(graph.roots)
    read = readers(nodes)
    dependences: dict[int, set[int]] = {id(node): {id(operand) for operand in node.inputs} for node in nodes}
    for node in nodes:
        for array in (*overwritten(node), *([home[id(node)]] if home and id(node) in home else [])):
            for reader in read.get(id(array), ()):
                if reader is not node and (is_direct(node) or is_direct(reader)):
                    dependences[id(node)].add(id(reader))
    followers: dict[int, list[int]] = {}
    for key, predecessors in dependences.items():
        for predecessor in predecessors:
            followers.setdefault(predecessor, []).append(key)
    position = {id(node): i for i, node in enumerate(nodes)}
    ready = [i for i, node in enumerate(nodes) if not dependences[id(node)]]
    results: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        results.append(node)
        for key in followers.get(id(node), ()):
            dependences[key].discard(id(node))
            if not dependences[key]:
                heapq.heappush(ready, position[key])
    if len(results) < len(nodes):
        raise GraphError("an array is needed as it was when it is written over in a loop or branch")
    return results


def overwritten(node: Node) -> list[Node]:
    """The arrays whose memory a node changes."""
    if node.operation == "scatter":
        return [node.inputs[0]] if is_direct(node) else []
    return [node.inputs[place] for place in changed(node)] if is_control_flow(node) else []


def scatter_written_words(body: Body, group: Group) -> set[int]:
    """The words of arrays that a group reads and of whose elements the region stores some."""
    written: set[int] = set()
    for nodes, _ in body.stages:
        for node in nodes:
            while node.operation == "scatter" and id(node) not in written:
                written.add(id(node))
                node = node.inputs[0]
                if node.operation != "scatter":
                    written.add(id(node))
    return {
        group.program.words[id(node)]
        for node, captured in zip(group.program.graph.inputs, group.taken, strict=True)
        if id(captured) in written
    }
