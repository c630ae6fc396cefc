"""Decompose captured kernels into their reference nodes where these fuse with neighbours; call the others.

A kernel by itself is fastest. Where its operands or results are elementwise, fusing the nodes of its reference saves
passes over memory: then they replace it.
"""

from jitkernels.compiler.ir.graph import Graph, Node, readers, rebuild_roots
from jitkernels.compiler.ir.ops import OPERATIONS

THROUGH = frozenset({"view", "cast", "reshape"})
"""Operations through which neighbours are searched."""


def decompose_fusible_kernels(graph: Graph) -> Graph:
    """Replace kernels with elementwise neighbours by their references."""
    nodes = list(graph)
    if not any(node.options.get("instead") for node in nodes):
        return graph
    read = readers(nodes)
    decomposed = {node for node in nodes if node.options.get("instead") and _has_neighbours(node, read)}
    return _with_references(graph, decomposed) if decomposed else graph


def _has_neighbours(kernel: Node, read: dict[Node, list[Node]]) -> bool:
    waiting = list(kernel.inputs)
    while waiting:
        node = waiting.pop()
        if node.operation in THROUGH:
            waiting.extend(node.inputs)
        elif node.ndim and OPERATIONS[node.operation].is_elementwise:
            return True
    waiting = [one for item in read[kernel] for one in read[item]]
    while waiting:
        node = waiting.pop()
        if node.operation in THROUGH:
            waiting.extend(read[node])
        elif OPERATIONS[node.operation].is_elementwise:
            return True
    return False


def _with_references(graph: Graph, decomposed: set[Node]) -> Graph:
    """Replace the results of some kernels by the nodes of their references."""
    new: dict[Node, Node] = {}

    def read_by(node: Node) -> tuple[Node, ...]:
        if node.operation == "item" and node.inputs[0] in decomposed:
            return (node.inputs[0].options["instead"][node.options["index"]],)
        return node.inputs

    stack = [(root, False) for root in graph.roots]
    while stack:
        node, is_ready = stack.pop()
        if node in new:
            continue
        needed = read_by(node)
        if not is_ready:
            stack.append((node, True))
            stack.extend((node, False) for node in needed if node not in new)
            continue
        new_operands = [new[node] for node in needed]
        if needed is not node.inputs:
            new[node] = new_operands[0]
        else:
            is_unchanged = all(
                new_operand is other for new_operand, other in zip(new_operands, node.inputs, strict=True)
            )
            new[node] = node if is_unchanged else node.with_inputs(new_operands)
    return rebuild_roots(graph, lambda node: new[node])
