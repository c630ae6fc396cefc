"""Runs a graph node by node with NumPy: what compiled graphs are compared with, and what serves where none can be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.graph import limits
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.operations import OPERATIONS

SEVERAL = frozenset({"call", "kernel", "loop", "branch"})
"""What may give several arrays, of which `item` takes one."""


def run(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
    """Outputs, and then what is to be written, for the arrays of the inputs and values of the symbols.

    Nothing is written: the caller does, once all is computed. Raises ValueError where a check of the graph is true.
    """
    known: dict[int, Any] = {id(node): array for node, array in zip(graph.inputs, arrays, strict=True)}

    value = limits.Values(symbols)
    for node in graph:
        if id(node) not in known:
            known[id(node)] = of_node(node, [known[id(one)] for one in node.inputs], value)
    refuse(graph, known)
    return [known[id(node)] for node in graph.roots[len(graph.checks) :]]


def refuse(graph: Graph, known: Mapping[int, Any]) -> None:
    """Raise ValueError where a check of the graph is true."""
    if any(known[id(node)] for node in graph.checks):
        raise ValueError("a number that Python's functions refuse")


def of_node(node: Node, inputs: Sequence[Any], value: Any) -> Any:
    """One node's array from those of its inputs."""
    return (
        np.asarray(OPERATIONS[node.operation].run(node, inputs, value))
        if node.operation not in SEVERAL
        else OPERATIONS[node.operation].run(node, inputs, value)
    )
