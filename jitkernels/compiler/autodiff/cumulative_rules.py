"""Vector-Jacobian products of products and of cumulative products, minima and maxima, exact where elements are zero.

Nothing divides by an element: derivatives of these rules, which consist of scans themselves, hold for all values too.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise, zeros
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, same


def product_of_others(array: Node, axes: Sequence[int]) -> Node:
    """For each element the product of all others that it is multiplied with."""
    order = [*(i for i in range(array.ndim) if i not in axes), *axes]
    shape = [array.shape[i] for i in order]
    count = symbolic_dims.product(array.shape[i] for i in axes)
    rows = builder.reshape(builder.transpose(array, order), [*shape[: -len(axes)], count])
    if same(count, 0):
        return array
    last = rows.ndim - 1
    ahead, behind = exclusive_product(rows), builder.flip(exclusive_product(builder.flip(rows, last)), last)
    products = builder.reshape(elementwise("multiply", ahead, behind), shape)
    return builder.transpose(products, [order.index(i) for i in range(array.ndim)])


def exclusive_product(rows: Node) -> Node:
    """The exclusive cumulative product: for each element the product of those before it in its row."""
    axis = rows.ndim - 1
    running = Node("scan", (rows,), rows.dtype, rows.shape, {"kind": "prod", "axis": axis})
    ones = builder.broadcast_to(builder.constant(1.0, rows.dtype), rows.shape)
    return _shifted(running, ones, axis, 1)


def scan_product_cotangent(node: Node, cotangent: Node) -> Node:
    """Through a cumulative product: the exclusive product times the sum of the cotangents that an element affects.

    These sums satisfy ``s[i] = c[i] + x[i + 1] * s[i + 1]``; a scan in steps of 1, 2, 4, ... computes them.
    """
    array, axis = node.inputs[0], node.options["axis"]
    count = array.shape[axis]
    zero_row = zeros(array.dtype, array.shape)
    if same(count, 0):
        return cotangent
    sums, factors = cotangent, _shifted(array, zero_row, axis, -1)
    step = 1
    while count > step:
        near, far = (_slice(sums, axis, start, count - step) for start in (0, step))
        own, next_ones = (_slice(factors, axis, start, count - step) for start in (0, step))
        sums = _with_slice(sums, elementwise("add", near, elementwise("multiply", own, far)), axis, 0)
        factors = _with_slice(factors, elementwise("multiply", own, next_ones), axis, 0)
        step *= 2
    ones = builder.broadcast_to(builder.constant(1.0, node.dtype), node.shape)
    return elementwise("multiply", _shifted(node, ones, axis, 1), sums)


def scan_extreme_cotangent(node: Node, cotangent: Node) -> Node:
    """Through cumulative minima and maxima: each cotangent goes to the last element equal to the extreme."""
    array, axis = node.inputs[0], node.options["axis"]
    own = [Node("iota", (), "int64", node.shape, {"axis": i}) for i in range(node.ndim)]
    reached = elementwise("where", elementwise("equal", array, node), own[axis], 0)
    own[axis] = Node("scan", (reached,), "int64", node.shape, {"kind": "max", "axis": axis})
    options = {"axis": 0, "adds": True, "is_inside": True}
    return Node("scatter", (zeros(node.dtype, node.shape), cotangent, *own), node.dtype, node.shape, options)


def _slice(node: Node, axis: int, start: Number, count: Number) -> Node:
    index_map = builder.identity_map(node.ndim)
    index_map[axis] = (start, ((axis, 1),))
    shape = [count if i == axis else extent for i, extent in enumerate(node.shape)]
    return builder.view(node, tuple(index_map), shape)


def _with_slice(node: Node, part: Node, axis: int, start: Number) -> Node:
    """The array with a slice replaced, from `start` on along `axis`."""
    index_map = builder.identity_map(node.ndim)
    index_map[axis] = (start, ((axis, 1),))
    options = {"map": tuple(index_map), "extents": part.shape}
    return Node("update", (node, part), node.dtype, node.shape, options)


def _shifted(node: Node, fill: Node, axis: int, by: int) -> Node:
    """The elements shifted by one along `axis`; the missing one comes from `fill`."""
    rest = node.shape[axis] - 1
    if same(rest, 0):
        return fill
    return _with_slice(fill, _slice(node, axis, max(-by, 0), rest), axis, max(by, 0))
