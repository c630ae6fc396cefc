"""``np.repeat`` with a count for each element: without a branch, as counts are hard to predict.

Where the copies of an element end, those of the next one begin: the number of ends up to a position is the index of its
element. The code is for the number of copies of this call; calls with another one bail out.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, is_loop_variant, same


def repeat_by_counts(array: Traced, counts: Any) -> Any:
    """``np.repeat(array, counts)`` of vectors. Raises UnsupportedError for what NumPy broadcasts or refuses."""
    tracer, size = array.tracer, array.extents[0]
    if counts.dtype.kind not in "iub" or counts.dtype == "uint64":
        raise UnsupportedError(f"numpy.repeat by counts of {counts.dtype}")
    if tracer.depth or is_loop_variant(size):
        raise UnsupportedError("numpy.repeat by an array in a loop")
    if not same(size, counts.extents[0]) or not isinstance(size, Extent) and size < 2:
        raise UnsupportedError("numpy.repeat by counts that are broadcast")
    ends: Any = np.cumsum(counts, dtype=np.int64)
    total = max(int(tracer.value(ends[-1].node)), 0)
    any_of: Any = np.any
    tracer.checks += [
        any_of(counts < 0).node,  # NumPy raises ValueError
        any_of((ends < 0) | (ends > total)).node,  # sums that overflow
        elementwise("not_equal", ends[-1].node, total),
    ]
    marks = builder.broadcast_to(builder.constant(0, "int64"), (total + 1,))
    inner = ends[:-1].node
    ones = builder.broadcast_to(builder.constant(1, "int64"), inner.shape)
    options = {"axis": 0, "adds": True, "is_inside": True}
    marked = Node("scatter", (marks, ones, inner), "int64", marks.shape, options)
    copies: Any = fresh(tracer, marked)
    numbers: Any = np.cumsum(copies)[:total]
    if array.node.operation == "iota":
        return numbers.astype(array.dtype)
    options = {"axis": 0, "is_inside": True}
    return fresh(tracer, Node("gather", (array.node, numbers.node), array.node.dtype, (total,), options))
