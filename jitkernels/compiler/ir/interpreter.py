"""The reference interpreter: run a graph node by node with NumPy, to check compiled code and where none can run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import dim_bounds
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import OPERATIONS

OPERATIONS_WITH_SEVERAL_RESULTS = frozenset({"call", "kernel", "loop", "branch"})
"""Operations that may return several arrays, of which an `item` node takes one."""


def run(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
    """The outputs and then the values to be written, for arrays of the inputs and values of the symbols.

    Nothing is written: the caller writes after all is computed. Raises ValueError where a check of the graph is true.
    """
    known: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
    value = dim_bounds.SymbolValues(symbols)
    for node in graph:
        if node not in known:
            known[node] = of_node(node, [known[operand] for operand in node.inputs], value)
    refuse(graph, known)
    return [known[node] for node in graph.roots[len(graph.checks) :]]


def refuse(graph: Graph, known: Mapping[Node, Any]) -> None:
    """Raise ValueError where a check of the graph is true."""
    if any(known[node] for node in graph.checks):
        raise ValueError("Python's functions raise an exception for this number")


def of_node(node: Node, inputs: Sequence[Any], value: Any) -> Any:
    """The result of one node from arrays of its inputs."""
    result = OPERATIONS[node.operation].run(node, inputs, value)
    return result if node.operation in OPERATIONS_WITH_SEVERAL_RESULTS else np.asarray(result)
