"""LU and Cholesky factorizations in loops, for matrices too large to unroll and too small to be worth a call of LAPACK.

The trace rewrites these functions as if they were the user's. They overwrite their arguments and return whether the
matrix is regular: where a pivot may be zero to rounding, NumPy decides, and raises.
"""

from typing import Any

import numpy as np


def solve_vector(a: Any, b: Any, margin: Any, tiny: Any) -> Any:
    """Solve a x = b by Gaussian elimination with partial pivoting; `b` becomes x.

    `bound`: of the terms that the elements of a row are the sum of.
    """
    n = a.shape[0]
    bound = np.abs(a).max(axis=1)
    is_regular = True
    for k in range(n):
        p = pivot_row(a, k)
        if not abs(a[p, k]) > margin * bound[p] + tiny:
            is_regular = False
        if p != k:
            exchange_rows(a, k, k, p)
            bound[k], bound[p] = bound[p], bound[k]
            b[k], b[p] = b[p], b[k]
        reciprocal = 1 / a[k, k]
        for i in range(k + 1, n):
            f = a[i, k] * reciprocal
            subtract_row(a, k + 1, i, k, f)
            b[i] -= f * b[k]
            bound[i] = max(bound[i], abs(f) * bound[k])
    for i in range(n - 1, -1, -1):
        b[i] = (b[i] - np.dot(a[i, i + 1 :], b[i + 1 :])) / a[i, i]
    return is_regular


def solve_matrix(a: Any, b: Any, margin: Any, tiny: Any) -> Any:
    """Solve a x = b for all columns of `b`, as `solve_vector` does for one."""
    n, m = b.shape
    bound = np.abs(a).max(axis=1)
    is_regular = True
    for k in range(n):
        p = pivot_row(a, k)
        if not abs(a[p, k]) > margin * bound[p] + tiny:
            is_regular = False
        if p != k:
            exchange_rows(a, k, k, p)
            bound[k], bound[p] = bound[p], bound[k]
            exchange_rows(b, 0, k, p)
        reciprocal = 1 / a[k, k]
        for i in range(k + 1, n):
            f = a[i, k] * reciprocal
            subtract_row(a, k + 1, i, k, f)
            subtract_row(b, 0, i, k, f)
            bound[i] = max(bound[i], abs(f) * bound[k])
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            subtract_row(b, 0, i, k, a[i, k])
        reciprocal = 1 / a[i, i]
        for j in range(m):
            b[i, j] *= reciprocal
    return is_regular


def eliminate(a: Any) -> Any:
    """Overwrite the upper triangle by the factor U; return the sign of the permutation of rows."""
    n = a.shape[0]
    sign = a.dtype.type(1)
    for k in range(n):
        p = pivot_row(a, k)
        if p != k:
            exchange_rows(a, k, k, p)
            sign = -sign
        if a[k, k] != 0:  # else all of the column is zero
            reciprocal = 1 / a[k, k]
            for i in range(k + 1, n):
                subtract_row(a, k + 1, i, k, a[i, k] * reciprocal)
    return sign


def pivot_row(a: Any, k: Any) -> Any:
    """Return the row, from k on, of the largest element of column k."""
    p = k
    largest = abs(a[k, k])
    for i in range(k + 1, a.shape[0]):
        size = abs(a[i, k])
        if size > largest:
            largest = size
            p = i
    return p


def exchange_rows(a: Any, begin: Any, k: Any, p: Any) -> None:
    """Exchange the rows k and p from a column on."""
    for j in range(begin, a.shape[1]):
        a[k, j], a[p, j] = a[p, j], a[k, j]


def subtract_row(a: Any, begin: Any, i: Any, k: Any, f: Any) -> None:
    """Subtract f times row k from row i, from a column on."""
    for j in range(begin, a.shape[1]):
        a[i, j] -= f * a[k, j]


def factor_cholesky(u: Any) -> Any:
    """Overwrite the upper triangle of u by the factor U of U'U: updates of rows are contiguous."""
    n = u.shape[0]
    is_positive = True
    for k in range(n):
        square = u[k, k]
        if not square > 0:
            is_positive = False
        root = np.sqrt(square)
        u[k, k] = root
        reciprocal = 1 / root
        for j in range(k + 1, n):
            u[k, j] *= reciprocal
        for i in range(k + 1, n):
            subtract_row(u, i, i, k, u[k, i])
    return is_positive


def solve_stack(a: Any, b: Any, margin: Any, tiny: Any) -> Any:
    """Solve the systems of a stack, each for one column or several."""
    is_regular = True
    solve = solve_vector if b.ndim == 2 else solve_matrix
    for s in range(a.shape[0]):
        if not solve(a[s], b[s], margin, tiny):
            is_regular = False
    return is_regular


def eliminate_stack(a: Any, signs: Any) -> None:
    """`eliminate` of a stack."""
    for s in range(a.shape[0]):
        signs[s] = eliminate(a[s])


def factor_cholesky_stack(u: Any) -> Any:
    """`factor_cholesky` of a stack."""
    is_positive = True
    for s in range(u.shape[0]):
        if not factor_cholesky(u[s]):
            is_positive = False
    return is_positive
