"""Layout propagation: the memory order that NumPy gives to the result of each node, from the strides of inputs on."""

from collections.abc import Iterable, Sequence

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.memory_order import Order, Strides, concatenation_order, elementwise_order
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Number, same


def propagate_layouts(nodes: Iterable[Node]) -> dict[Node, Order | None]:
    """The order of the dimensions of each node, from the outermost in memory on; None for C order.

    `nodes`: all nodes of a graph in topological order. That of a view is the order of a copy of it.
    """
    strides: dict[Node, Strides] = {}
    orders: dict[Node, Order | None] = {}
    for node in nodes:
        orders[node] = order = _order(node, [strides[operand] for operand in node.inputs])
        strides[node] = builder.contiguous(node.shape, order)
        if node.operation == "view":
            strides[node] = _of_view(node, strides[node.inputs[0]])
        elif node.operation == "input":
            strides[node] = node.options.get("strides") or strides[node]
    return orders


def _order(node: Node, operands: Sequence[Strides]) -> Order | None:
    if OPERATIONS[node.operation].is_elementwise or node.operation == "cast":
        pairs = zip(node.inputs, operands, strict=True)
        return elementwise_order(node.ndim, [_broadcast(operand, strides, node.ndim) for operand, strides in pairs])
    if node.operation == "view":
        return elementwise_order(node.ndim, [_of_view(node, operands[0])])
    if node.operation == "reduce" and node.options["kind"] not in ("argmin", "argmax"):
        axes = node.options["axes"]
        kept = [i for i in range(node.inputs[0].ndim) if i not in axes]
        return elementwise_order(node.ndim, [_without_ones(node.shape, [operands[0][i] for i in kept])])
    if node.operation == "concatenate":
        pairs = zip(node.inputs, operands, strict=True)
        return concatenation_order(node.ndim, [(operand.shape, strides) for operand, strides in pairs])
    return None


def _without_ones(shape: Sequence[Number], strides: Strides) -> list[Number]:
    """Strides with 0 for dimensions of one element."""
    return [0 if same(extent, 1) else stride for extent, stride in zip(shape, strides, strict=True)]


def _broadcast(node: Node, strides: Strides, ndim: int) -> list[Number]:
    """The strides of an operand in the dimensions of a result."""
    return [0] * (ndim - node.ndim) + _without_ones(node.shape, strides)


def _of_view(node: Node, strides: Strides) -> list[Number]:
    """The strides of a view of an array with these strides."""
    result: list[Number] = [0] * node.ndim
    for stride, (_, steps) in zip(strides, node.options["map"], strict=True):
        for dimension, step in steps:
            result[dimension] = result[dimension] + stride * step
    return _without_ones(node.shape, result)
