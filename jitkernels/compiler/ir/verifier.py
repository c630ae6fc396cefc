"""The graph verifier: invariants that passes and the code generator rely on."""

from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.errors import GraphError


def verify(graph: Graph) -> None:
    """Raise GraphError where a graph violates an invariant."""
    known = {id(node) for node in graph.inputs}
    for node in graph:
        operation = OPERATIONS.get(node.operation)
        if operation is None:
            raise GraphError(f"{node!r}: there is no operation {node.operation!r}")
        if node.operation == "input" and id(node) not in known:
            raise GraphError(f"{node!r} is an input that the graph does not have")
        problem = operation.verify(node)
        if problem:
            raise GraphError(f"{node!r}: {problem}")
    for target, value in graph.writes:
        if id(target) not in known or target.dtype != value.dtype:
            raise GraphError(f"{value!r} is written to {target!r}: expected an input of its dtype")
