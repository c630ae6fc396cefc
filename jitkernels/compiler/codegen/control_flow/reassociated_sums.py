"""Sums of a loop that may be added up in another order, so that LLVM keeps partial sums in the lanes of vectors.

``total += x[i] * y[i]`` depends on the sum of the iteration before, and runs at the latency of an addition as it is
written. What only adds to a float, which nothing else in the loop reads, rounds as `numpy.sum` does in vectors: with a
smaller error than in the order of iterations. Differences stay as they are written where a loop reads them.
"""

from collections.abc import Collection, Mapping

from jitkernels.compiler.ir.graph import Graph, Node, readers
from jitkernels.compiler.ir.regions import LoopParts

FLOATS = frozenset({"float32", "float64"})
INSTRUCTIONS = {"add": "fadd", "subtract": "fsub"}
"""LLVM's instruction of each operation that may be reassociated."""


def reassociated_sums(loop: Node) -> set[Node]:
    """The additions of a loop's body that may run in any order: to loop-carried floats, or to one element of an array.

    Raises nothing: a value with another use stays in order.
    """
    parts = LoopParts(loop)
    body = parts.body
    reads = readers(body)
    chains = [
        _chain(parameter, output, reads, body)
        for parameter, output in zip(parts.carried_parameters, body.outputs, strict=True)
        if not parameter.ndim and parameter.dtype in FLOATS
    ]
    invariant = {*parts.captured_parameters}
    chains += [
        _chain(node.inputs[1].inputs[0], node.inputs[1], reads, body)
        for node in body
        if node.operation == "scatter" and _adds_to_element(node, invariant)
    ]
    return {node for chain in chains for node in chain}


def _chain(first: Node, last: Node, reads: Mapping[Node, list[Node]], body: Graph) -> list[Node]:
    """The additions from a value to the sum that becomes it; none where anything else reads one of them."""
    nodes: list[Node] = []
    while last is not first:
        if last.operation not in INSTRUCTIONS or last.dtype != first.dtype or last in body.checks:
            return []
        nodes.append(last)
        terms = last.inputs if last.operation == "add" else last.inputs[:1]
        onward = [term for term in terms if term is first or _leads(term, first)]
        if len(onward) != 1:
            return []
        last = onward[0]
    links = [*nodes[1:], first]
    if any(len(reads.get(link, ())) != 1 for link in links) or first in body.outputs:
        return []
    return nodes


def _leads(node: Node, first: Node) -> bool:
    """Whether a sum has a value among its terms."""
    while node.operation in INSTRUCTIONS:
        if first in node.inputs:
            return True
        nested = [term for term in node.inputs if term.operation in INSTRUCTIONS]
        if len(nested) != 1:
            return any(_leads(term, first) for term in nested)
        (node,) = nested
    return False


def _adds_to_element(scatter: Node, invariant: Collection[Node]) -> bool:
    """Whether an assignment of an iteration adds to the element of an array that all iterations add to."""
    array, value, *indices = scatter.inputs
    if value.operation not in INSTRUCTIONS or value.dtype not in FLOATS:
        return False
    first = value.inputs[0]
    return (
        first.operation == "gather"
        and first.inputs[0] is array
        and [*first.inputs[1:]] == indices
        and all(_is_invariant(index, invariant) for index in indices)
    )


def _is_invariant(node: Node, invariant: Collection[Node]) -> bool:
    """Whether a node is the same in all iterations."""
    if node in invariant or node.operation == "constant":
        return True
    return bool(node.inputs) and all(_is_invariant(operand, invariant) for operand in node.inputs)
