"""What rules ask of nodes, and nodes as rules make them. Nothing here guards an extent.

Where two extents are not the same expression, the values of the traced call decide, as they did when the graph was
made: that they were broadcast together is guarded already.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.extents import Number, same, same_shape, value_of
from jitkernels.graph.ir import NONE, Node
from jitkernels.graph.scalars import DTYPES, SCALARS

KINDS = {name: np.dtype(name).kind for name in DTYPES}
"""``f``, ``i``, ``u`` or ``b`` for each dtype."""


def is_float(node: Node) -> bool:
    return KINDS.get(node.dtype) == "f"


def is_integer(node: Node) -> bool:
    return KINDS.get(node.dtype, "") in "iu"


def is_bool(node: Node) -> bool:
    return node.dtype == "bool"


def is_elementwise(node: Node) -> bool:
    """Whether each element of a node depends on one element of each input: casts too."""
    return node.operation in SCALARS or node.operation == "cast"


def number(node: Node) -> Any:
    """The value of a constant, also of one that is broadcast; None of any other node."""
    if node.operation == "view":
        node = node.inputs[0]
    return node.options["value"] if node.operation == "constant" else None


def is_number(node: Node, value: float) -> bool:
    """Whether a node is this number in all its elements; of zeros also the sign is asked."""
    found = number(node)
    return (
        found is not None
        and found == value
        and (value != 0 or math.copysign(1, found) == math.copysign(1, value))
    )


def is_all_ones(node: Node) -> bool:
    """Whether all bits of all elements are set."""
    found = number(node)
    if found is None or is_float(node):
        return False
    if is_bool(node):
        return bool(found)
    return bool(found == (np.iinfo(node.dtype).max if KINDS[node.dtype] == "u" else -1))


def rank_of(node: Node) -> int:
    """How many dimensions have more than one element."""
    return sum(not same(extent, 1) for extent in node.shape)


def lies_along(one: Number, full: Number) -> bool | None:
    """Whether an extent is the full one and not a 1 that is broadcast; None where calls may differ in that."""
    if same(one, full):
        return True
    if same(one, 1):
        return False
    here, there = value_of(one), value_of(full)
    if here == there and here != 1:
        return True
    return False if here == 1 != there else None


def common_shape(shapes: Iterable[Sequence[Number]]) -> tuple[Number, ...] | None:
    """The shape that arrays have once broadcast; None where calls may differ in that."""
    listed = list(shapes)
    result: list[Number] = []
    for position in range(-max(map(len, listed), default=0), 0):
        common: Number = 1
        for shape in listed:
            if len(shape) < -position or same(shape[position], 1):
                continue
            one = shape[position]
            if same(common, 1) or lies_along(common, one) is False:
                common = one
            elif lies_along(one, common) is None:
                return None
        result.append(common)
    return tuple(result)


def shaped(node: Node, shape: Sequence[Number]) -> Node | None:
    """The node broadcast to a shape; None where calls may differ in how."""
    if same_shape(node.shape, shape):
        return node
    missing = len(shape) - node.ndim
    index_map: list[Any] = []
    for i, one in enumerate(node.shape):
        along = lies_along(one, shape[missing + i])
        if along is None:
            return None
        index_map.append((0, ((missing + i, 1),) if along else ()))
    return construct.view(node, tuple(index_map), shape)


def made(name: str, inputs: Iterable[Node], like: Node, options: Mapping[str, Any] = NONE) -> Node | None:
    """An elementwise operation that stands for `like`: of its dtype, broadcast to its shape behind the operation.

    None where calls may differ in how that is done, and where the operation has no code for these operands.
    """
    operands = tuple(inputs)
    shape = common_shape(one.shape for one in operands)
    if shape is None or SCALARS[name].function(tuple(one.dtype for one in operands)) is None:
        return None
    return shaped(Node(name, operands, like.dtype, shape, options), like.shape)


def constant_like(value: Any, like: Node) -> Node | None:
    """A number in place of a node."""
    return shaped(constant(value, like.dtype), like.shape)


def constant(value: Any, dtype: str) -> Node:
    return construct.constant(value, dtype)


def with_number(node: Node) -> tuple[Node, Node, Any] | None:
    """Of two operands of which the second is a constant, in either order: the first, the second and its value."""
    one, other = node.inputs
    if (value := number(other)) is not None:
        return one, other, value
    if (value := number(one)) is not None:
        return other, one, value
    return None
