"""Small linear systems as elementwise operations: a call of LAPACK takes longer than they do.

Gaussian elimination with partial pivoting, unrolled; NumPy's functions serve matrices that are larger, stacked or
complex. Calls in which a pivot is zero to rounding bail out: NumPy decides whether the matrix is singular, and raises.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.numpy.reductions import tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node

MAX_UNKNOWNS = 5
"""The largest system that is unrolled: the code grows with its cube."""
PIVOT_MARGIN = 8
"""Pivots are nonzero that exceed this many times the rounding errors of their sums."""


@overrides(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    matrix, right = _matrix(a, b), of_array(b)
    if right.ndim not in (1, 2) or not symbolic_dims.same(right.extents[0], matrix.extents[0]):
        raise UnsupportedError("numpy.linalg.solve of these shapes")
    right = METHODS["astype"](right, np.result_type(matrix.dtype, right.dtype), copy=False)
    matrix = METHODS["astype"](matrix, right.dtype, copy=False)
    return _solution(matrix, [right[i] for i in range(int(matrix.shape[0]))])


@overrides(np.linalg.inv)
def inv(a: Any) -> Any:
    matrix = _matrix(a)
    count = int(matrix.shape[0])
    columns = Node("iota", (), "int64", (count,), {"axis": 0})
    identity = [builder.cast(elementwise("equal", columns, row), matrix.node.dtype) for row in range(count)]
    return _solution(matrix, [fresh(matrix.tracer, row) for row in identity])


def _matrix(a: Any, *others: Any) -> Traced:
    """A small square matrix of floats. Raises UnsupportedError for all others."""
    array = of_array(a)
    if tracer_of().differentiates:
        raise UnsupportedError("linear systems have a derivative as a whole")
    kinds = [value.dtype for value in (array, *map(of_array, others))]
    if any(kind.kind not in "fiu" or kind == "float16" for kind in kinds):
        raise UnsupportedError("a linear system of these dtypes")
    if array.ndim != 2 or not symbolic_dims.same(*array.extents):
        raise UnsupportedError("a stack of linear systems")
    if not 1 <= symbolic_dims.value_of(array.extents[0]) <= MAX_UNKNOWNS:
        raise UnsupportedError("a large linear system")
    return array if array.dtype.kind == "f" else METHODS["astype"](array, np.float64)


def _solution(matrix: Traced, right: list[Any]) -> Any:
    """The solution of a system by its right-hand sides, row by row."""
    count = int(matrix.shape[0])
    rows = [[matrix[i, j] for j in range(count)] for i in range(count)]
    sizes = [[np.abs(element) for element in row] for row in rows]  # of the terms that each element is the sum of
    for k in range(count):
        for i in range(k + 1, count):
            is_larger = np.abs(rows[i][k]) > np.abs(rows[k][k])
            for table in (rows, sizes):
                table[k], table[i] = _exchanged(is_larger, table[k], table[i], k)
            right[k], right[i] = np.where(is_larger, right[i], right[k]), np.where(is_larger, right[k], right[i])
        _require_nonzero(matrix, rows[k][k], sizes[k][k])
        for i in range(k + 1, count):
            factor = rows[i][k] / rows[k][k]
            for j in range(k + 1, count):
                product = factor * rows[k][j]
                rows[i][j] = rows[i][j] - product
                sizes[i][j] = sizes[i][j] + np.abs(product)
            right[i] = right[i] - factor * right[k]
    for k in reversed(range(count)):
        for j in range(k + 1, count):
            right[k] = right[k] - rows[k][j] * right[j]
        right[k] = right[k] / rows[k][k]
    return np.stack(right)


def _exchanged(is_larger: Any, upper: list[Any], lower: list[Any], begin: int) -> tuple[list[Any], list[Any]]:
    """Two rows, exchanged from a column on where a condition holds."""
    pairs = [*zip(upper, lower, strict=True)]
    return (
        [*upper[:begin], *(np.where(is_larger, below, above) for above, below in pairs[begin:])],
        [*lower[:begin], *(np.where(is_larger, above, below) for above, below in pairs[begin:])],
    )


def _require_nonzero(matrix: Traced, pivot: Any, size: Any) -> None:
    """Bail out where a pivot may be zero, or is no finite number."""
    limit = np.abs(pivot) > size * (PIVOT_MARGIN * float(np.finfo(matrix.dtype).eps))
    matrix.tracer.checks.append(elementwise("logical_not", limit.node))
