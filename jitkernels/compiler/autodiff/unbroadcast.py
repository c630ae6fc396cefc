"""Sums over what broadcasting repeats."""

from collections.abc import Sequence
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.extents import same
from jitkernels.graph.ir import Node


def summed_to(node: Node, shape: Sequence[Any]) -> Node:
    """The sum over what broadcasting has made of an array of that shape."""
    missing = node.ndim - len(shape)
    over = [
        i
        for i in range(node.ndim)
        if i < missing or (same(shape[i - missing], 1) and not same(node.shape[i], 1))
    ]
    if not over:
        return node
    found = construct.reduce("sum", node, over)
    kept = [i - missing for i in over if i >= missing]
    return construct.expand_dims(found, kept) if kept else found
