"""The transpose of broadcasting: sums over broadcast dimensions."""

from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import same


def sum_to_shape(node: Node, shape: Sequence[Any]) -> Node:
    """The sum of `node` over the dimensions along which an array of that shape is broadcast to it."""
    missing = node.ndim - len(shape)
    broadcast_axes = [
        i for i in range(node.ndim) if i < missing or (same(shape[i - missing], 1) and not same(node.shape[i], 1))
    ]
    if not broadcast_axes:
        return node
    total = builder.reduce("sum", node, broadcast_axes)
    kept_axes = [i - missing for i in broadcast_axes if i >= missing]
    return builder.expand_dims(total, kept_axes) if kept_axes else total
