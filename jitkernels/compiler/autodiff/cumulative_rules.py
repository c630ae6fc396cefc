"""What becomes of cotangents of products, and of running products, minima and maxima, also where elements are zero.

Nothing is divided by: derivatives of these rules, which are made of running products themselves, are right for all
values, too.
"""

from collections.abc import Sequence

from jitkernels.graph import construct, extents
from jitkernels.graph.construct import elementwise, zeros
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node


def others(given: Node, axes: Sequence[int]) -> Node:
    """For each element the product of those that are multiplied with it."""
    order = [*(i for i in range(given.ndim) if i not in axes), *axes]
    shape = [given.shape[i] for i in order]
    count = extents.product(given.shape[i] for i in axes)
    rows = construct.reshape(construct.transpose(given, order), [*shape[: -len(axes)], count])
    if same(count, 0):
        return given
    last = rows.ndim - 1
    ahead, behind = before(rows), construct.flip(before(construct.flip(rows, last)), last)
    found = construct.reshape(elementwise("multiply", ahead, behind), shape)
    return construct.transpose(found, [order.index(i) for i in range(given.ndim)])


def before(rows: Node) -> Node:
    """For each element the product of those in front of it in its row."""
    axis = rows.ndim - 1
    running = Node("scan", (rows,), rows.dtype, rows.shape, {"kind": "prod", "axis": axis})
    one = construct.broadcast_to(construct.constant(1.0, rows.dtype), rows.shape)
    return _shifted(running, one, axis, 1)


def of_products(node: Node, cotangent: Node) -> Node:
    """That of what running products are of: the product in front of it, times the sum of what it is a part of behind.

    These sums are made one from the next, ``s[i] = c[i] + x[i + 1] * s[i + 1]``, for steps of 1, 2, 4, ... at once.
    """
    given, axis = node.inputs[0], node.options["axis"]
    count = given.shape[axis]
    nothing = zeros(given.dtype, given.shape)
    if same(count, 0):
        return cotangent
    sums, factors = cotangent, _shifted(given, nothing, axis, -1)
    step = 1
    while count > step:
        near, far = (_part(sums, axis, start, count - step) for start in (0, step))
        own, next_ones = (_part(factors, axis, start, count - step) for start in (0, step))
        sums = _replaced(sums, elementwise("add", near, elementwise("multiply", own, far)), axis, 0)
        factors = _replaced(factors, elementwise("multiply", own, next_ones), axis, 0)
        step *= 2
    ones = construct.broadcast_to(construct.constant(1.0, node.dtype), node.shape)
    return elementwise("multiply", _shifted(node, ones, axis, 1), sums)


def of_extremes(node: Node, cotangent: Node) -> Node:
    """That of what running minima and maxima are of: each goes to the last one that is as small or as large."""
    given, axis = node.inputs[0], node.options["axis"]
    own = [Node("iota", (), "int64", node.shape, {"axis": i}) for i in range(node.ndim)]
    reached = elementwise("where", elementwise("equal", given, node), own[axis], 0)
    own[axis] = Node("scan", (reached,), "int64", node.shape, {"kind": "max", "axis": axis})
    options = {"axis": 0, "adds": True, "is_inside": True}
    return Node("scatter", (zeros(node.dtype, node.shape), cotangent, *own), node.dtype, node.shape, options)


def _part(node: Node, axis: int, start: Number, count: Number) -> Node:
    index_map = construct.identity_map(node.ndim)
    index_map[axis] = (start, ((axis, 1),))
    shape = [count if i == axis else one for i, one in enumerate(node.shape)]
    return construct.view(node, tuple(index_map), shape)


def _replaced(node: Node, part: Node, axis: int, start: Number) -> Node:
    """An array with a part in place of what was there from some element on."""
    index_map = construct.identity_map(node.ndim)
    index_map[axis] = (start, ((axis, 1),))
    options = {"map": tuple(index_map), "extents": part.shape}
    return Node("update", (node, part), node.dtype, node.shape, options)


def _shifted(node: Node, around: Node, axis: int, by: int) -> Node:
    """All but one of the elements, one place further or one back, and what is around for the one that is missing."""
    rest = node.shape[axis] - 1
    if same(rest, 0):
        return around
    return _replaced(around, _part(node, axis, max(-by, 0), rest), axis, max(by, 0))
