"""Products and transposes of matrices, the last two dimensions of nodes."""

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import zeros
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import same


def matmul(left: Node, right: Node) -> Node:
    """A node for `numpy.matmul` of two nodes of one dtype with at least two dimensions."""
    outer = builder.broadcast_shapes([left.shape[:-2], right.shape[:-2]])
    shape = (*outer, left.shape[-2], right.shape[-1])
    if any(same(extent, 0) for extent in (*shape, left.shape[-1])):
        return zeros(left.dtype, shape)
    return Node("matmul", (left, right), left.dtype, shape)


def matmul_of_panels(left: Node, panels: Node, columns: int) -> Node:
    """A node for the product with a matrix of so many columns, in the panels of `microkernels.prepacked.panels`."""
    shape = (*left.shape[:-1], columns)
    if any(same(extent, 0) for extent in (*shape, left.shape[-1])):
        return zeros(left.dtype, shape)
    return Node("matmul", (left, panels), left.dtype, shape, {"is_packed": True})


def matrix_transpose(node: Node) -> Node:
    """A node for `numpy.matrix_transpose`."""
    order = [*range(node.ndim - 2), node.ndim - 1, node.ndim - 2]
    return builder.transpose(node, order)


def is_dense(node: Node) -> bool:
    """Whether a node is C-contiguous: every node but an argument with other strides."""
    strides = node.options.get("strides") if node.operation == "input" else None
    return strides is None or symbolic_dims.key_of_shape(strides) == symbolic_dims.key_of_shape(
        builder.contiguous(node.shape)
    )
