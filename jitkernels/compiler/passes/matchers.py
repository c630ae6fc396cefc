"""Predicates that rules match nodes with, and builders of replacement nodes. Nothing here adds a guard on an extent.

Where two extents are different expressions, the values of the traced call decide, as they did when the graph was built:
guards already require that they broadcast together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.elementwise_ops import DTYPES, SCALARS
from jitkernels.compiler.ir.graph import NONE, Node
from jitkernels.compiler.ir.symbolic_dims import Number, same, same_shape, value_of

KINDS = {name: np.dtype(name).kind for name in DTYPES}
"""``f``, ``i``, ``u`` or ``b`` for each dtype."""


def is_float(node: Node) -> bool:
    return KINDS.get(node.dtype) == "f"


def is_integer(node: Node) -> bool:
    return KINDS.get(node.dtype, "") in "iu"


def is_bool(node: Node) -> bool:
    return node.dtype == "bool"


def is_elementwise(node: Node) -> bool:
    """Whether each element of a node depends on one element of each operand: casts count too."""
    return node.operation in SCALARS or node.operation == "cast"


def constant_value(node: Node) -> Any:
    """The value of a constant, also of a broadcast one; None for any other node."""
    if node.operation == "view":
        node = node.inputs[0]
    return node.options["value"] if node.operation == "constant" else None


def is_constant(node: Node, value: float) -> bool:
    """Whether all elements of a node are this value; zeros have to match in sign."""
    known = constant_value(node)
    return known is not None and known == value and (value != 0 or math.copysign(1, known) == math.copysign(1, value))


def is_all_ones(node: Node) -> bool:
    """Whether all bits of all elements are set."""
    value = constant_value(node)
    if value is None or is_float(node):
        return False
    if is_bool(node):
        return bool(value)
    return bool(value == (np.iinfo(node.dtype).max if KINDS[node.dtype] == "u" else -1))


def nontrivial_rank(node: Node) -> int:
    """The number of dimensions with more than one element."""
    return sum(not same(extent, 1) for extent in node.shape)


def spans_extent(extent: Number, full: Number) -> bool | None:
    """Whether `extent` is the full extent and not a broadcast 1; None where other calls may differ in that."""
    if same(extent, full):
        return True
    if same(extent, 1):
        return False
    value, full_value = value_of(extent), value_of(full)
    if value == full_value and value != 1:
        return True
    return False if value == 1 != full_value else None


def common_shape(shapes: Iterable[Sequence[Number]]) -> tuple[Number, ...] | None:
    """The shape that arrays of these shapes broadcast to; None where other calls may differ in that."""
    listed = list(shapes)
    result: list[Number] = []
    for position in range(-max(map(len, listed), default=0), 0):
        common: Number = 1
        for shape in listed:
            if len(shape) < -position or same(shape[position], 1):
                continue
            extent = shape[position]
            if same(common, 1) or spans_extent(common, extent) is False:
                common = extent
            elif spans_extent(extent, common) is None:
                return None
        result.append(common)
    return tuple(result)


def broadcast_like(node: Node, shape: Sequence[Number]) -> Node | None:
    """The node broadcast to a shape; None where other calls may broadcast differently."""
    if same_shape(node.shape, shape):
        return node
    missing = len(shape) - node.ndim
    index_map: list[Any] = []
    for i, extent in enumerate(node.shape):
        along = spans_extent(extent, shape[missing + i])
        if along is None:
            return None
        index_map.append((0, ((missing + i, 1),) if along else ()))
    return builder.view(node, tuple(index_map), shape)


def replacement_like(name: str, inputs: Iterable[Node], like: Node, options: Mapping[str, Any] = NONE) -> Node | None:
    """An elementwise node that may replace `like`: it has the dtype of `like` and is broadcast to its shape.

    None where other calls may broadcast differently, and where the operation has no scalar code for these operands.
    """
    operands = tuple(inputs)
    shape = common_shape(operand.shape for operand in operands)
    if shape is None or SCALARS[name].function(tuple(operand.dtype for operand in operands)) is None:
        return None
    return broadcast_like(Node(name, operands, like.dtype, shape, options), like.shape)


def constant_like(value: Any, like: Node) -> Node | None:
    """A constant that may replace `like`."""
    return broadcast_like(builder.constant(value, like.dtype), like.shape)


def split_constant_operand(node: Node) -> tuple[Node, Node, Any] | None:
    """The operands of a binary node as (operand, constant, its value), in either order; None without a constant."""
    left, right = node.inputs
    if (value := constant_value(right)) is not None:
        return left, right, value
    if (value := constant_value(left)) is not None:
        return right, left, value
    return None
