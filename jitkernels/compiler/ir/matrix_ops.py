"""Products and transposes of matrices, the last two dimensions of nodes."""

from jitkernels.graph import construct
from jitkernels.graph.construct import zeros
from jitkernels.graph.extents import same
from jitkernels.graph.ir import Node


def product(left: Node, right: Node) -> Node:
    """As `numpy.matmul` of nodes of the same dtype with two dimensions at least."""
    outer = construct.broadcast_shapes([left.shape[:-2], right.shape[:-2]])
    shape = (*outer, left.shape[-2], right.shape[-1])
    if any(same(one, 0) for one in (*shape, left.shape[-1])):
        return zeros(left.dtype, shape)
    return Node("matmul", (left, right), left.dtype, shape)


def turned(node: Node) -> Node:
    """As `numpy.matrix_transpose`."""
    order = [*range(node.ndim - 2), node.ndim - 1, node.ndim - 2]
    return construct.transpose(node, order)
