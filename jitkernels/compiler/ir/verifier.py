"""What has to hold of every graph, which passes and the code generator rely on."""

from jitkernels.errors import GraphError
from jitkernels.graph.ir import Graph
from jitkernels.graph.operations import OPERATIONS


def verify(graph: Graph) -> None:
    """Raise GraphError where a graph breaks what passes rely on."""
    known = {id(node) for node in graph.inputs}
    for node in graph:
        operation = OPERATIONS.get(node.operation)
        if operation is None:
            raise GraphError(f"{node!r}: there is no operation {node.operation!r}")
        if node.operation == "input" and id(node) not in known:
            raise GraphError(f"{node!r} is an input that the graph does not have")
        wrong = operation.verify(node)
        if wrong:
            raise GraphError(f"{node!r}: {wrong}")
    for target, value in graph.writes:
        if id(target) not in known or target.dtype != value.dtype:
            raise GraphError(f"{value!r} is written to {target!r}: expected an input of its dtype")
