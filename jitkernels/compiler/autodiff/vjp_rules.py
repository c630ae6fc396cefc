"""Vector-Jacobian products of all operations that are not elementwise.

A rule maps a node and its cotangent to one cotangent for each operand, or None. The operations are linear, or linear
where they select, so that a rule is the operation's transpose.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.compiler.autodiff import cumulative_rules, linalg_rules
from jitkernels.compiler.autodiff.unbroadcast import sum_to_shape
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise, zeros
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.matrix_ops import matmul as matrix_product
from jitkernels.compiler.ir.matrix_ops import matrix_transpose
from jitkernels.compiler.ir.symbolic_dims import same

Transpose = Callable[[Node, Node], Sequence[Node | None]]


def where(node: Node, cotangent: Node) -> Sequence[Node | None]:
    condition, if_true, if_false = node.inputs
    return (
        None,
        sum_to_shape(elementwise("where", condition, cotangent, 0.0), if_true.shape),
        sum_to_shape(elementwise("where", condition, 0.0, cotangent), if_false.shape),
    )


def plane(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The cotangent of a plane of complex numbers, as their plane; of the other one it is zero."""
    parts = [cotangent, zeros(cotangent.dtype, cotangent.shape)]
    return (Node("complex", parts if node.operation == "real" else parts[::-1], node.inputs[0].dtype, node.shape),)


def planes(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The planes of the cotangent."""
    parts = (
        Node(name, (cotangent,), one.dtype, node.shape) for name, one in zip(("real", "imag"), node.inputs, strict=True)
    )
    return [sum_to_shape(part, one.shape) for part, one in zip(parts, node.inputs, strict=True)]


def cast(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return (builder.cast(cotangent, node.inputs[0].dtype),)


def reshape(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return (builder.reshape(cotangent, node.inputs[0].shape),)


def view(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Scatter the cotangent back: elements shown several times get the sum, elements not shown get zero."""
    array, index_map, shape = node.inputs[0], node.options["map"], node.shape
    read_dimensions = {own for _, steps in index_map for own, step in steps if not same(step, 0)}
    broadcast_axes = [i for i in range(len(shape)) if i not in read_dimensions and not same(shape[i], 1)]
    kept_axes = [i for i in range(len(shape)) if i in read_dimensions]
    dropped_axes = [i for i in range(len(shape)) if i not in read_dimensions]
    if broadcast_axes:
        cotangent = builder.reduce("sum", cotangent, broadcast_axes)
        dropped_axes = [i - sum(other < i for other in broadcast_axes) for i in dropped_axes if i not in broadcast_axes]
    if dropped_axes:
        cotangent = builder.squeeze(cotangent, dropped_axes)
    index_map = tuple(
        (start, tuple((kept_axes.index(own), step) for own, step in steps if own in read_dimensions))
        for start, steps in index_map
    )
    return (_scatter_view(cotangent, array, index_map),)


def _scatter_view(cotangent: Node, array: Node, index_map: Any) -> Node:
    """The cotangent of the array of a view that shows each element at most once; zero elsewhere."""
    steps = [value for _, value in index_map]
    order = [own for value in steps for own, _ in sorted(value, key=lambda pair: _from_outermost(pair, cotangent))]
    if len(order) == len(set(order)) == cotangent.ndim and all(
        _is_all(start, value, cotangent.shape, extent)
        for (start, value), extent in zip(index_map, array.shape, strict=True)
    ):
        return builder.reshape(builder.transpose(cotangent, order), array.shape)
    for value in steps:
        if len(value) > 1 and not _is_split(value, cotangent.shape):
            return _scatter_add_view(cotangent, array, index_map)
    options = {"map": index_map, "extents": cotangent.shape}
    return Node("update", (zeros(array.dtype, array.shape), cotangent), array.dtype, array.shape, options)


def _scatter_add_view(cotangent: Node, array: Node, index_map: Any) -> Node:
    """The cotangent of the array of a view with overlapping windows: each element gets the sum."""
    shape, indices = cotangent.shape, []
    for start, steps in index_map:
        index = builder.extent(start)
        for own, step in steps:
            iota = Node("iota", (), "int64", shape, {"axis": own})
            index = elementwise("add", index, elementwise("multiply", iota, builder.extent(step)))
        indices.append(builder.broadcast_to(index, shape))
    operands = (zeros(array.dtype, array.shape), cotangent, *indices)
    return Node("scatter", operands, array.dtype, array.shape, {"axis": 0, "adds": True, "is_inside": True})


def _from_outermost(pair: Any, cotangent: Node) -> int:
    """A sort key that puts outer dimensions first: larger steps, then extents of 1."""
    own, step = pair
    return -int(symbolic_dims.value_of(step)) * 2 + (symbolic_dims.value_of(cotangent.shape[own]) == 1)


def _is_split(steps: Any, shape: Sequence[Any]) -> bool:
    """Whether dimensions are one dimension split without gaps, but for a stride of the whole."""
    ordered = sorted(steps, key=lambda pair: abs(symbolic_dims.value_of(pair[1])))
    return all(_are_equal(further[1], step * shape[own]) for (own, step), further in itertools.pairwise(ordered))


def _are_equal(value: Any, other: Any) -> bool:
    """Whether extents are equal, if only in calls like the traced one."""
    return same(value, other) or (
        symbolic_dims.value_of(value) == symbolic_dims.value_of(other) and bool(value == other)
    )


def _is_all(start: Any, steps: Any, shape: Sequence[Any], extent: Any) -> bool:
    """Whether a view's dimensions cover all of one dimension of the array."""
    if not same(start, 0):
        return False
    if not steps:
        return same(extent, 1)
    count = symbolic_dims.product(shape[own] for own, _ in steps)
    ordered = sorted(steps, key=lambda pair: symbolic_dims.value_of(pair[1]))
    return _are_equal(count, extent) and same(ordered[0][1], 1) and _is_split(steps, shape)


def reduce(node: Node, cotangent: Node) -> Sequence[Node | None]:
    array, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]

    def spread(reduced: Node) -> Node:
        return builder.broadcast_to(builder.expand_dims(reduced, axes), array.shape)

    if kind == "sum":
        return (spread(cotangent),)
    if kind in ("min", "max"):
        is_extreme = elementwise("equal", array, spread(node))
        shares = elementwise("where", is_extreme, builder.constant(1.0, node.dtype), 0.0)
        share = elementwise("divide", cotangent, builder.reduce("sum", shares, axes))
        return (elementwise("where", is_extreme, spread(share), 0.0),)
    if kind == "prod":
        return (elementwise("multiply", spread(cotangent), cumulative_rules.product_of_others(array, axes)),)
    return (None,)


def scan(node: Node, cotangent: Node) -> Sequence[Node | None]:
    kind, axis = node.options["kind"], node.options["axis"]
    if kind == "prod":
        return (cumulative_rules.scan_product_cotangent(node, cotangent),)
    if kind in ("min", "max"):
        return (cumulative_rules.scan_extreme_cotangent(node, cotangent),)
    backwards = builder.flip(cotangent, axis)
    return (builder.flip(Node("scan", (backwards,), node.dtype, node.shape, node.options), axis),)


def matmul(node: Node, cotangent: Node) -> Sequence[Node | None]:
    left, right = node.inputs
    to_left = sum_to_shape(matrix_product(cotangent, matrix_transpose(right)), left.shape)
    if right.ndim == 2 and left.ndim > 2:  # one GEMM over all rows
        rows = symbolic_dims.product(left.shape[:-1])
        all_left = builder.reshape(left, (rows, left.shape[-1]))
        return to_left, matrix_product(
            matrix_transpose(all_left), builder.reshape(cotangent, (rows, cotangent.shape[-1]))
        )
    return to_left, sum_to_shape(matrix_product(matrix_transpose(left), cotangent), right.shape)


def concatenate(node: Node, cotangent: Node) -> Sequence[Node | None]:
    axis, cotangents, start = node.options["axis"], [], 0
    for operand in node.inputs:
        index_map = builder.identity_map(node.ndim)
        index_map[axis] = (start, ((axis, 1),))
        cotangents.append(builder.view(cotangent, tuple(index_map), operand.shape))
        start = start + operand.shape[axis]
    return cotangents


def update(node: Node, cotangent: Node) -> Sequence[Node | None]:
    index_map, value = node.options["map"], node.inputs[1]
    hidden = Node("update", (cotangent, zeros(value.dtype, value.shape)), node.dtype, node.shape, node.options)
    return hidden, builder.view(cotangent, index_map, value.shape)


def gather(node: Node, cotangent: Node) -> Sequence[Node | None]:
    array, *indices = node.inputs
    indices = _without_bounds_checks(indices)
    operands = (zeros(array.dtype, array.shape), cotangent, *indices)
    options: dict[str, Any] = {**node.options, "adds": any(index.ndim for index in indices)}
    return Node("scatter", operands, array.dtype, array.shape, options), *[None] * len(indices)


def scatter(node: Node, cotangent: Node) -> Sequence[Node | None]:
    _, values, *indices = node.inputs
    indices = _without_bounds_checks(indices)
    hidden = cotangent
    if not node.options.get("adds"):
        operands = (cotangent, zeros(values.dtype, values.shape), *indices)
        hidden = Node("scatter", operands, node.dtype, node.shape, node.options)
    gathered = _gathered(cotangent, indices, node.options["axis"])
    if hidden is not cotangent and indices[0].ndim:
        gathered = elementwise("where", _is_last_write(node, indices, gathered), gathered, 0.0)
    return hidden, sum_to_shape(gathered, values.shape), *[None] * len(indices)


def _without_bounds_checks(indices: Sequence[Node]) -> list[Node]:
    """Indices that the forward pass has checked, in loops and branches: without the zero that depends on the check."""
    return [
        index.inputs[0] if index.operation == "add" and index.inputs[1].operation == "bounded" and index.ndim else index
        for index in indices
    ]


def _is_last_write(node: Node, indices: Sequence[Node], values: Node) -> Node:
    """Whether each value is the last one that the scatter writes to its element."""
    axis, shape = node.options["axis"], builder.broadcast_shapes([index.shape for index in indices])
    count = symbolic_dims.product(shape)
    numbers = builder.reshape(Node("iota", (), "int64", (count,), {"axis": 0}), shape)
    zeros_like_target = zeros("int64", node.shape[axis : axis + len(indices)])
    options = {"axis": 0, "is_inside": True}
    last_writer = Node("scatter", (zeros_like_target, numbers, *indices), "int64", zeros_like_target.shape, options)
    is_last = elementwise("equal", _gathered(last_writer, indices, 0), numbers)
    return builder.expand_dims(is_last, [i for i in range(values.ndim) if not axis <= i < axis + len(shape)])


def _gathered(array: Node, indices: Sequence[Node], axis: int) -> Node:
    around = builder.broadcast_shapes([index.shape for index in indices])
    shape = (*array.shape[:axis], *around, *array.shape[axis + len(indices) :])
    return Node("gather", (array, *indices), array.dtype, shape, {"axis": axis, "is_inside": True})


def call(node: Node, cotangent: Node) -> Sequence[Node | None]:
    return linalg_rules.call_cotangents(node, {0: cotangent})


TRANSPOSES: dict[str, Transpose] = {
    "where": where, "cast": cast, "reshape": reshape, "view": view, "reduce": reduce, "scan": scan, "matmul": matmul,
    "concatenate": concatenate, "update": update, "gather": gather, "scatter": scatter, "call": call,
    "kernel": call, "real": plane, "imag": plane, "complex": planes,
}  # fmt: skip
