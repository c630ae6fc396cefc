"""Linear systems of a few unknowns as elementwise operations: a call of LAPACK takes longer than they do.

Gaussian elimination with partial pivoting and Cholesky's factorization, unrolled; the elements of a stack of matrices
are arrays. Where a pivot is zero to rounding, NumPy decides whether the matrix is singular, and raises: the functions
add the condition to the checks of the trace.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise

MAX_UNKNOWNS = 5
"""The largest system that is unrolled: the code grows with its cube."""
PIVOT_MARGIN = 8
"""Pivots are nonzero that exceed this many times the rounding errors of their sums."""


def solution(rows: list[list[Any]], right: list[Any], epsilon: float) -> list[Any]:
    """The rows of x in a x = b, by the elements of a and the rows of b."""
    rows, right = [[*row] for row in rows], [*right]
    sizes = [[np.abs(element) for element in row] for row in rows]  # of the terms that each element is the sum of

    def require_nonzero(k: int) -> Any:
        bail_out_unless(np.abs(rows[k][k]) > sizes[k][k] * (PIVOT_MARGIN * epsilon))
        return rows[k][k]

    _eliminate(rows, [sizes], right, require_nonzero)
    for k in reversed(range(len(rows))):
        for j in range(k + 1, len(rows)):
            right[k] = right[k] - rows[k][j] * right[j]
        right[k] = right[k] / rows[k][k]
    return right


def diagonal(rows: list[list[Any]]) -> tuple[list[Any], Any]:
    """The diagonal of the factor U of a matrix, and the sign of its permutation of rows."""
    rows, one = [[*row] for row in rows], rows[0][0].dtype.type(1)
    signs = _eliminate(rows, [], [], lambda k: np.where(rows[k][k] == 0, one, rows[k][k]))
    sign = one
    for factor in signs:
        sign = sign * factor
    return [rows[k][k] for k in range(len(rows))], sign


def _eliminate(
    rows: list[list[Any]], sizes: list[list[list[Any]]], right: list[Any], pivot: Callable[[int], Any]
) -> list[Any]:
    """Eliminate below the diagonal, in place; returns the signs of the exchanges of rows."""
    signs = []
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            is_larger = np.abs(rows[i][k]) > np.abs(rows[k][k])
            for table in (rows, *sizes):
                table[k], table[i] = _exchanged(is_larger, table[k], table[i], k)
            if right:
                right[k], right[i] = np.where(is_larger, right[i], right[k]), np.where(is_larger, right[k], right[i])
            signs.append(np.where(is_larger, rows[0][0].dtype.type(-1), rows[0][0].dtype.type(1)))
        divisor = pivot(k)
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / divisor
            for j in range(k + 1, len(rows)):
                product = factor * rows[k][j]
                rows[i][j] = rows[i][j] - product
                for table in sizes:
                    table[i][j] = table[i][j] + np.abs(product)
            if right:
                right[i] = right[i] - factor * right[k]
    return signs


def _exchanged(is_larger: Any, upper: list[Any], lower: list[Any], begin: int) -> tuple[list[Any], list[Any]]:
    """Two rows, exchanged from a column on where a condition holds."""
    pairs = [*zip(upper, lower, strict=True)]
    return (
        [*upper[:begin], *(np.where(is_larger, below, above) for above, below in pairs[begin:])],
        [*lower[:begin], *(np.where(is_larger, above, below) for above, below in pairs[begin:])],
    )


def cholesky_factor(rows: list[list[Any]]) -> list[list[Any]]:
    """The lower triangle of Cholesky's factor, by the lower triangle of a matrix (rows of elements)."""
    factor: list[list[Any]] = []
    for i, row in enumerate(rows):
        factor.append([])
        for j in range(i + 1):
            rest = row[j]
            for k in range(j):
                rest = rest - factor[i][k] * factor[j][k]
            if j < i:
                factor[i].append(rest / factor[j][j])
            else:
                bail_out_unless(rest > 0)
                factor[i].append(np.sqrt(rest))
    return factor


def bail_out_unless(condition: Traced) -> None:
    """Bail out where a condition, or that of any matrix of a stack, does not hold."""
    fails = elementwise("logical_not", condition.node)
    condition.tracer.checks.append(builder.reduce("any", fails, [*range(fails.ndim)]) if fails.ndim else fails)
