"""Linear indices: the dimensions of a contiguous array that an index was unraveled into become one again.

1. An element ``x.ravel()[k]`` is read at ``x[k // n, k % n]``. Where the rows of x follow each other, it is element k
   of one dimension, without the division, which takes longer than the rest of most loops.
2. Quotients and remainders by powers of two have become shifts and masks before.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, same


def raveled(strides: Sequence[Number], indices: Sequence[Node]) -> tuple[list[Number], list[Node]]:
    """Fewer strides and indices of the same element, in elements of the array."""
    steps, numbers = list(strides[:1]), list(indices[:1])
    for stride, index in zip(strides[1:], indices[1:], strict=True):
        whole = _unraveled(numbers[-1], index)
        if whole is not None and same(steps[-1], whole[1] * stride):
            steps[-1], numbers[-1] = stride, whole[0]
        else:
            steps.append(stride)
            numbers.append(index)
    return steps, numbers


def _unraveled(quotient: Node, remainder: Node) -> tuple[Node, Number] | None:
    """The number that has this quotient and remainder, and the divisor."""
    match quotient.operation, remainder.operation:
        case "floor_divide", "remainder":
            size = _number(remainder.inputs[1])
            is_pair = size is not None and same(_number(quotient.inputs[1]) or 0, size)
        case "right_shift", "bitwise_and":
            shift, mask = quotient.inputs[1], remainder.inputs[1]
            if shift.operation != "constant" or mask.operation != "constant":
                return None
            size = int(mask.options["value"]) + 1
            is_pair = 1 << int(shift.options["value"]) == size
        case _:
            return None
    if size is None or not is_pair or quotient.inputs[0] is not remainder.inputs[0]:
        return None
    return remainder.inputs[0], size


def _number(node: Node) -> Number | None:
    """The extent or constant that a node is."""
    if node.operation == "extent":
        extent: Number = node.options["extent"]
        return extent
    return int(node.options["value"]) if node.operation == "constant" else None
