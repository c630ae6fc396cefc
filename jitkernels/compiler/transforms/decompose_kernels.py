"""Which named kernels of a graph are called, and which become part of the nests around.

A kernel by itself is the quickest there is. Where what it reads is computed element by element, or what it gives is
read so, the nodes of its reference save passes over memory: then they take its place.
"""

from jitkernels.graph.ir import Graph, Node, readers, remade_of
from jitkernels.graph.operations import OPERATIONS

THROUGH = frozenset({"view", "cast", "reshape"})
"""Operations behind which a nest may begin or end."""


def decided(graph: Graph) -> Graph:
    """The graph with the references of those kernels that have neighbours to be fused with."""
    nodes = list(graph)
    if not any(node.options.get("instead") for node in nodes):
        return graph
    read = readers(nodes)
    joined = {id(node) for node in nodes if node.options.get("instead") and _has_neighbours(node, read)}
    return _with_references(graph, joined) if joined else graph


def _has_neighbours(kernel: Node, read: dict[int, list[Node]]) -> bool:
    waiting = list(kernel.inputs)
    while waiting:
        node = waiting.pop()
        if node.operation in THROUGH:
            waiting.extend(node.inputs)
        elif node.ndim and OPERATIONS[node.operation].is_elementwise:
            return True
    waiting = [one for item in read[id(kernel)] for one in read[id(item)]]
    while waiting:
        node = waiting.pop()
        if node.operation in THROUGH:
            waiting.extend(read[id(node)])
        elif OPERATIONS[node.operation].is_elementwise:
            return True
    return False


def _with_references(graph: Graph, joined: set[int]) -> Graph:
    """The graph with other nodes in place of the results of some kernels."""
    new: dict[int, Node] = {}

    def read_by(node: Node) -> tuple[Node, ...]:
        if node.operation == "item" and id(node.inputs[0]) in joined:
            return (node.inputs[0].options["instead"][node.options["index"]],)
        return node.inputs

    stack = [(root, False) for root in graph.roots]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in new:
            continue
        needed = read_by(node)
        if not is_ready:
            stack.append((node, True))
            stack.extend((one, False) for one in needed if id(one) not in new)
            continue
        made = [new[id(one)] for one in needed]
        if needed is not node.inputs:
            new[id(node)] = made[0]
        else:
            kept = all(one is other for one, other in zip(made, node.inputs, strict=True))
            new[id(node)] = node if kept else node.with_inputs(made)
    return remade_of(graph, lambda node: new[id(node)])
