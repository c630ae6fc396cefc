"""Access maps: for each dimension of a node its start and the steps by which each loop advances in it.

The loops of a root are its dimensions; an inlined reduction adds loops of its own. The access map of an operand follows
from that of the node that reads it.
"""

import operator
from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap, composed
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least, same

Index = tuple[Number, tuple[tuple[int, Number], ...]]
"""The affine index in one dimension: start, and steps by loops."""
INNER = 64
"""The first loop of inlined reductions; loops below it are the dimensions of a root."""
ANYWHERE = -2
"""The loop of a data-dependent index."""
REMAPPING = frozenset({"view", "reduce", "gather", "placed"})
"""Operations whose operands have another access map than the node; all others broadcast them."""


def is_indexed(node: Node, number: int) -> bool:
    """Whether an operand is gathered from: it has to be in memory."""
    return node.operation == "gather" and number == 0


def gathered_array(node: Node) -> Node:
    """The array in memory that a gather reads: its operand, or what that is a view of."""
    array = node.inputs[0]
    while array.operation == "view":
        array = array.inputs[0]
    return array


def changes(node: Node) -> bool:
    """Whether a node updates its first operand, which loop nests do in place."""
    if node.operation == "scatter":
        # Of equal indices the last one counts: loop nests run in order along one dimension.
        return adds(node) or all(operand.ndim <= 1 for operand in node.inputs[2:])
    return node.operation == "update"


def adds(node: Node) -> bool:
    """Whether a scatter adds to the elements, as `numpy.add.at` does."""
    return bool(node.options.get("adds"))


def scattered_access_map(node: Node, index_map: IndexMap) -> IndexMap:
    """The access map of the scattered-to array for an element of the values."""
    axis, numbers = node.options["axis"], node.inputs[1:]
    end = axis + numbers[0].ndim
    return (*index_map[:axis], *[(0, ((ANYWHERE, 1),))] * len(numbers), *index_map[end:])


def operand_access_map(node: Node, number: int, index_map: IndexMap) -> IndexMap:
    operand, shape = node.inputs[number], node.shape
    operand_shape = operand.shape
    if (
        node.operation not in REMAPPING
        and len(shape) == len(operand_shape)
        and all(map(operator.is_, operand_shape, shape))
    ):
        return index_map  # the same object: caches look it up by identity
    if node.operation in ("gather", "placed") and number:
        axis = node.options["axis"]
        return index_map[axis : axis + operand.ndim]
    if node.operation == "gather":
        return scattered_access_map(node, index_map)
    if node.operation == "view":
        return composed(node.options["map"], index_map)
    if node.operation == "reduce":
        axes = node.options["axes"]
        remaining = iter(index_map)
        return tuple((0, ((INNER + axes.index(i), 1),)) if i in axes else next(remaining) for i in range(operand.ndim))
    missing = len(shape) - len(operand_shape)
    return tuple(
        (0, ()) if same(extent, 1) and not same(shape[missing + i], 1) else index_map[missing + i]
        for i, extent in enumerate(operand_shape)
    )


def key_of(index_map: IndexMap) -> Any:
    """A key that is equal for equal access maps."""
    return tuple(
        (symbolic_dims.key_of(start), tuple((loop, symbolic_dims.key_of(step)) for loop, step in steps))
        for start, steps in index_map
    )


def loops_of(index_map: IndexMap) -> frozenset[int]:
    """The loops that an access map depends on."""
    return frozenset(loop for _, steps in index_map for loop, _ in steps)


def index_range(index: Index, shape: Sequence[Number]) -> tuple[Number, Number] | None:
    """The least and the largest index in one dimension, for loops or dimensions with these extents.

    None where the sign of a coefficient is unknown, or the index depends on data or on a loop beyond `shape`.
    """
    first, terms = index
    last = first
    for loop, coefficient in terms:
        if loop not in range(len(shape)):
            return None
        reach = coefficient * (shape[loop] - 1)
        if is_at_least(coefficient, 0):
            last = last + reach
        elif is_at_least(-coefficient, 0):
            first = first + reach
        else:
            return None
    return first, last


def are_apart(left: tuple[Number, Number] | None, right: tuple[Number, Number] | None) -> bool:
    """Whether two index ranges are known to be disjoint."""
    if left is None or right is None:
        return False
    return is_at_least(right[0] - left[1], 1) or is_at_least(left[0] - right[1], 1)


def identity(ndim: int) -> IndexMap:
    """The identity access map of a root."""
    return tuple((0, ((i, 1),)) for i in range(ndim))
