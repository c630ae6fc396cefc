"""Regions as they are run: numbers and elements one after another, and between them nests that compute arrays.

A `Group` is what nests compute at once: a graph of its own, whose inputs are arrays and numbers that are there. What a
loop carries is written where it was, all else that is read later has memory of its own.
"""

import heapq
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jitkernels.errors import GraphError
from jitkernels.graph import construct
from jitkernels.graph.extents import Number
from jitkernels.graph.flows import changed, is_direct, is_flow, laid_in, place_of_base, targets_of
from jitkernels.graph.ir import Graph, Node, readers, sorted_nodes
from jitkernels.graph.regions import COPIED

Strides = tuple[Number, ...]


@dataclass
class Group:
    """Arrays that are computed at once. `taken` are the nodes of the region that its inputs are, `given` its outputs'.

    `program`, `steps` and `arrays` are how it is compiled, `words` the outer frame's words of its memory by the ids of
    what is made there, `sizes` the bytes of it by these words, and `sharing` those whose memory others have at other
    times.
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
    """A region: in turn, nodes that are computed one after another, and a group or None."""

    stages: list[tuple[list[Node], Group | None]]
    overwritten: dict[int, Node] = field(default_factory=dict)

    @property
    def words(self) -> list[int]:
        """The outer frame's words of all memory that its groups have."""
        return [word for _, group in self.stages if group for word in group.words.values()]


def bodies_of(flow: Node, given: Sequence[Strides | None]) -> dict[int, Body]:
    """The regions of a loop or branch, and of those inside, by their ids; `given` are strides of the inputs."""
    found: dict[int, Body] = {}
    if flow.operation == "loop":
        first = 3 if flow.options["counts"] else 0
        own = [*([None] if first else []), *given[first:]]
        _add(found, flow.options["condition"], own, {})
        _add(found, flow.options["body"], own, targets_of(flow))
        return found
    for name in ("yes", "no"):
        region = flow.options[name]
        targets = {i: place for i, place in enumerate(flow.options["bases"]) if place >= 0}
        _add(found, region, given[1:], targets)
    return found


def _add(
    found: dict[int, Body], graph: Graph, given: Sequence[Strides | None], targets: Mapping[int, int]
) -> None:
    """Plan a region and those inside. `targets`: by the number of an output, the input whose memory it has."""
    strides: dict[int, Strides | None] = {
        id(node): one for node, one in zip(graph.inputs, given, strict=True)
    }
    into = {
        id(graph.outputs[i]): graph.inputs[place]
        for i, place in targets.items()
        if graph.outputs[i].ndim and graph.outputs[i] is not graph.inputs[place]
    }
    nodes = ordered(graph, into)
    stages = _stages(nodes, readers(nodes), into)
    _delay(nodes, readers(nodes), into, stages)
    body = Body([])
    outputs = {id(node) for node in graph.roots}
    for stage in range(max(stages.values(), default=0) + 1):
        own = [node for node in nodes if stages[id(node)] == stage]
        direct = [node for node in own if is_direct(node)]
        for node in direct:
            strides[id(node)] = _strides_of(node, strides)
            if is_flow(node):
                _refuse_twice(node)
                found |= bodies_of(node, [strides.get(id(one)) for one in node.inputs])
        arrays = [node for node in own if not is_direct(node)]
        read = {
            id(one) for node in nodes if not any(node is a for a in arrays) for one in node.inputs
        } | outputs
        group = (
            _group(arrays, [node for node in arrays if id(node) in read], into, strides) if arrays else None
        )
        body.stages.append((direct, group))
        for node in group.given if group else ():
            base = into.get(id(node))
            strides[id(node)] = strides[id(base)] if base is not None else construct.contiguous(node.shape)
            if base is not None:
                body.overwritten[id(node)] = base
    _refuse_late_reads(nodes, stages, into)
    for i, place in targets.items():
        output, base = graph.outputs[i], graph.inputs[place]
        if output.ndim and is_direct(output) and laid_in(output) is not base:
            raise GraphError("an array that is left in the memory of another")
    found[id(graph)] = body


def _strides_of(node: Node, strides: Mapping[int, Strides | None]) -> Strides | None:
    if id(node) in strides:
        return strides[id(node)]
    if node.operation == "scatter" and is_direct(node):
        return strides[id(node.inputs[0])]
    if node.operation == "item" and node.ndim:
        place = place_of_base(node)
        return None if place is None else strides[id(node.inputs[0].inputs[place])]
    return None


def _stages(
    nodes: Sequence[Node], read: Mapping[int, list[Node]], into: Mapping[int, Node]
) -> dict[int, int]:
    """When each node is computed: nests of a stage behind its numbers, and behind who needs what they write over."""
    least: dict[int, int] = {}
    while True:
        found: dict[int, int] = {}
        for node in nodes:
            direct, stage = is_direct(node), least.get(id(node), 0)
            before = list(node.inputs)
            if direct:
                before += [one for array in overwritten(node) for one in read[id(array)] if one is not node]
            for one in before:
                if id(one) in found:
                    stage = max(stage, found[id(one)] + (direct and not is_direct(one)))
            found[id(node)] = stage
        late = {
            id(node): last
            for node in nodes
            if id(node) in into and not is_direct(node)
            for last in [
                max(
                    (found[id(one)] for one in read.get(id(into[id(node)]), ()) if one is not node), default=0
                )
            ]
            if found[id(node)] < last
        }
        if not late or max(found.values()) > len(nodes):
            return found
        least |= late


def _delay(
    nodes: Sequence[Node], read: Mapping[int, list[Node]], into: Mapping[int, Node], stages: dict[int, int]
) -> None:
    """Let views of what a region does not change be made by the nests that read them, not before as arrays."""
    changed_here = {id(laid_in(array)) for node in nodes for array in overwritten(node)}
    changed_here |= {id(array) for array in into.values()}
    for node in reversed(nodes):
        source = node.inputs[0] if node.operation == "view" else node
        if (
            source.operation == "parameter"
            and node is not source
            and id(source) not in changed_here
            and read[id(node)]
        ):
            latest = min(stages[id(one)] - is_direct(one) for one in read[id(node)])
            stages[id(node)] = max(stages[id(node)], latest)


def _refuse_late_reads(nodes: Sequence[Node], stages: Mapping[int, int], into: Mapping[int, Node]) -> None:
    """Raise GraphError where an array is needed as it was when nests have written over it."""
    gone = {
        id(into[id(node)]): stages[id(node)] for node in nodes if id(node) in into and not is_direct(node)
    }
    for node in nodes:
        for one in node.inputs:
            if stages[id(node)] > gone.get(id(one), len(nodes)):
                raise GraphError("an array is needed as it was when it is written over in a loop or branch")


def _refuse_twice(flow: Node) -> None:
    """Raise GraphError where a loop or branch in a region is to change an array that it has as it was, too."""
    for place in changed(flow):
        if sum(one is flow.inputs[place] for one in flow.inputs) > 1:
            raise GraphError("an array is needed as it was when it is written over in a loop or branch")


def _group(
    nodes: Sequence[Node],
    roots: Sequence[Node],
    into: Mapping[int, Node],
    strides: Mapping[int, Strides | None],
) -> Group:
    """The graph of some nodes, of which the roots are read elsewhere."""
    new: dict[int, Node] = {}
    inputs: list[Node] = []
    taken: list[Node] = []

    def given(node: Node) -> Node:
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
        new[id(node)] = node.with_inputs([given(one) for one in node.inputs])
    versions = {
        id(laid_in(one)): one for one in taken
    }  # of arrays that were changed, which lie where those do
    writes = [
        (given(versions.get(id(into[id(node)]), into[id(node)])), new[id(node)])
        for node in roots
        if id(node) in into
    ]
    outputs = [node for node in roots if id(node) not in into]
    written = [node for node in roots if id(node) in into]
    rows = frozenset(range(len(outputs)))  # which is how others find them
    graph = Graph(tuple(inputs), tuple(new[id(node)] for node in outputs), tuple(writes), in_rows=rows)
    return Group(graph, taken, [*outputs, *written])


def ordered(graph: Graph, into: Mapping[int, Node] | None = None) -> list[Node]:
    """The nodes of a region, each array read before it is written over. Raises GraphError where that cannot be.

    `into`: by the ids of nodes that nests compute, the arrays that they are written over.
    """
    nodes = sorted_nodes(graph.roots)
    read = readers(nodes)
    waits: dict[int, set[int]] = {id(node): {id(one) for one in node.inputs} for node in nodes}
    for node in nodes:
        for array in (*overwritten(node), *([into[id(node)]] if into and id(node) in into else [])):
            for reader in read.get(id(array), ()):
                if reader is not node and (is_direct(node) or is_direct(reader)):
                    waits[id(node)].add(id(reader))
    followers: dict[int, list[int]] = {}
    for key, before in waits.items():
        for one in before:
            followers.setdefault(one, []).append(key)
    position = {id(node): i for i, node in enumerate(nodes)}
    ready = [i for i, node in enumerate(nodes) if not waits[id(node)]]
    found: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for key in followers.get(id(node), ()):
            waits[key].discard(id(node))
            if not waits[key]:
                heapq.heappush(ready, position[key])
    if len(found) < len(nodes):
        raise GraphError("an array is needed as it was when it is written over in a loop or branch")
    return found


def overwritten(node: Node) -> list[Node]:
    """The arrays whose memory a node changes."""
    if node.operation == "scatter":
        return [node.inputs[0]] if is_direct(node) else []
    return [node.inputs[place] for place in changed(node)] if is_flow(node) else []


def fresh_words(body: Body, group: Group) -> set[int]:
    """The words of the arrays that a group of a region reads and of which the region writes single elements."""
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
        for node, taken in zip(group.program.graph.inputs, group.taken, strict=True)
        if id(taken) in written
    }
