"""The reference interpreter: run a graph node by node with NumPy, to check compiled code and where none can run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import dim_bounds
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import OPERATIONS

SEVERAL = frozenset({"call", "kernel", "loop", "branch"})
"""Operations that may return several arrays, of which an `item` node takes one."""


def run(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
    """The outputs and then the values to be written, for arrays of the inputs and values of the symbols.

    Nothing is written: the caller writes after all is computed. Raises ValueError where a check of the graph is true.
    """
    known: dict[int, Any] = {id(node): array for node, array in zip(graph.inputs, arrays, strict=True)}

    value = dim_bounds.Values(symbols)
    for node in graph:
        if id(node) not in known:
            known[id(node)] = of_node(node, [known[id(operand)] for operand in node.inputs], value)
    refuse(graph, known)
    return [known[id(node)] for node in graph.roots[len(graph.checks) :]]


def refuse(graph: Graph, known: Mapping[int, Any]) -> None:
    """Raise ValueError where a check of the graph is true."""
    if any(known[id(node)] for node in graph.checks):
        raise ValueError("Python's functions raise an exception for this number")


def of_node(node: Node, inputs: Sequence[Any], value: Any) -> Any:
    """The result of one node from arrays of its inputs."""
    return (
        np.asarray(OPERATIONS[node.operation].run(node, inputs, value))
        if node.operation not in SEVERAL
        else OPERATIONS[node.operation].run(node, inputs, value)
    )
