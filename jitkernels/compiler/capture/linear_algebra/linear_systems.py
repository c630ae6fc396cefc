"""`numpy.linalg`'s solve, inv, det, slogdet and cholesky of small matrices, and stacks of them, in compiled code.

Matrices of up to `MAX_UNKNOWNS` rows are unrolled, others factored in loops, as far as these are faster than LAPACK's
blocks. NumPy's functions serve larger matrices, and whole calls with a matrix that is singular to rounding.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.linear_algebra import dense_factorizations, unrolled_systems
from jitkernels.compiler.capture.linear_algebra.unrolled_systems import MAX_UNKNOWNS, PIVOT_MARGIN, bail_out_unless
from jitkernels.compiler.capture.numpy.numpy_callouts import traced_copy
from jitkernels.compiler.capture.numpy.reductions import tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES, overrides
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node

MAX_SOLVED, MAX_FACTORED = 64, 40
"""Rows of the largest systems, and matrices of determinants and Cholesky factors: LAPACK is as fast from there on."""


@overrides(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    matrix, right = _matrices(a, b)
    if not right.ndim or not symbolic_dims.same(right.extents[-1 if right.ndim == 1 else -2], matrix.extents[-1]):
        raise UnsupportedError("numpy.linalg.solve of these shapes")
    return _solution(matrix, right)


@overrides(np.linalg.inv)
def inv(a: Any) -> Any:
    (matrix,) = _matrices(a)
    count = matrix.extents[-1]
    columns, rows = (Node("iota", (), "int64", (count, count), {"axis": axis}) for axis in (1, 0))
    identity = builder.cast(elementwise("equal", columns, rows), matrix.node.dtype)
    return _solution(matrix, fresh(matrix.tracer, identity))


@overrides(np.linalg.det)
def det(a: Any) -> Any:
    diagonal, sign = _diagonal(a)
    product = sign * _fold(np.multiply, diagonal)
    limits = np.finfo(product.dtype)
    is_zero = _fold(np.logical_or, diagonal, lambda factor: factor == 0)
    size = np.abs(product)
    is_exact = is_zero | (size >= product.dtype.type(limits.tiny))
    bail_out_unless((size <= product.dtype.type(limits.max)) & is_exact)  # NumPy adds logarithms, which do not overflow
    return product


@overrides(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    diagonal, sign = _diagonal(a)
    sign = sign * _fold(np.multiply, diagonal, np.sign)
    bail_out_unless(sign != 0)
    logarithm = _fold(np.add, diagonal, lambda factor: np.log(np.abs(factor)))
    return type(np.linalg.slogdet(np.eye(1)))(sign, logarithm)


@overrides(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Any:
    (matrix,) = _matrices(a, largest=MAX_FACTORED)
    if upper:
        raise UnsupportedError("numpy.linalg.cholesky(upper=True)")
    if not _is_unrolled(matrix):
        stack, core = matrix.shape[:-2], matrix.shape[-2:]
        factors = _copied(np.swapaxes(matrix, -1, -2), stack, core)
        function = dense_factorizations.factor_cholesky_stack if stack else dense_factorizations.factor_cholesky
        _require(matrix, traced_copy(function)(factors))
        result = METHODS["copy"](np.swapaxes(np.triu(factors), -1, -2))
        return result if len(stack) < 2 else METHODS["reshape"](result, (*stack, *core))
    factor = unrolled_systems.cholesky_factor(_elements(matrix))
    zero = factor[0][0] * 0
    rows = [[*row, *([zero] * (len(factor) - len(row)))] for row in factor]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _matrices(*arrays: Any, largest: int = MAX_SOLVED) -> list[Traced]:
    """A square matrix, or a stack of them, and other arrays, in the type of the result; UnsupportedError for others."""
    tracer, given = tracer_of(), [of_array(array) for array in arrays]
    if tracer.differentiates:
        raise UnsupportedError("linear systems have a derivative as a whole")
    if any(array.dtype.kind not in "fiu" or array.dtype == "float16" for array in given):
        raise UnsupportedError("a linear system of these dtypes")
    matrix = given[0]
    if matrix.ndim < 2 or not symbolic_dims.same(*matrix.extents[-2:]):
        raise UnsupportedError("matrices that are not square")
    if not 1 <= matrix.shape[-1] <= largest:
        raise UnsupportedError("a large linear system")
    dtype = np.result_type(*("float64" if array.dtype.kind in "iu" else array.dtype for array in given))
    return [array if array.dtype == dtype else METHODS["astype"](array, dtype) for array in given]


def _is_unrolled(matrix: Traced) -> bool:
    return bool(matrix.shape[-1] <= MAX_UNKNOWNS)


def _elements(matrix: Traced, *, expand: bool = False) -> list[list[Any]]:
    """The elements of each row: numbers, or arrays of those of a stack; `expand`: with an axis for columns."""
    behind = (None,) if expand and matrix.ndim > 2 else ()
    count = range(int(matrix.shape[-1]))
    return [[matrix[(..., i, j, *behind) if matrix.ndim > 2 else (i, j)] for j in count] for i in count]


def _solution(matrix: Traced, right: Traced) -> Any:
    is_vector = right.ndim == 1
    if _is_unrolled(matrix):
        rows = _elements(matrix, expand=not is_vector)
        columns = [right[i if right.ndim <= 2 else (..., i, slice(None))] for i in range(len(rows))]
        x = unrolled_systems.solution(rows, columns, float(np.finfo(matrix.dtype).eps))
        return np.stack(x, axis=-1 if is_vector else -2)
    core = right.shape[-1:] if is_vector else right.shape[-2:]
    stack = np.broadcast_shapes(matrix.shape[:-2], right.shape[: right.ndim - len(core)])
    factors, solved = _copied(matrix, stack, matrix.shape[-2:]), _copied(right, stack, core)
    limits = np.finfo(matrix.dtype)
    margins = matrix.dtype.type(PIVOT_MARGIN * limits.eps), matrix.dtype.type(limits.tiny)
    one = dense_factorizations.solve_vector if is_vector else dense_factorizations.solve_matrix
    solve_all = traced_copy(dense_factorizations.solve_stack if stack else one)
    _require(matrix, solve_all(factors, solved, *margins))
    return solved if len(stack) < 2 else METHODS["reshape"](solved, (*stack, *core))


def _copied(array: Any, stack: Any, core: Any) -> Any:
    """A copy with a broadcast stack in one dimension: indices of reshaped views would be divided in the loops."""
    if stack:
        array = METHODS["reshape"](np.broadcast_to(array, (*stack, *core)), (-1, *core))
    return METHODS["copy"](array)


def _diagonal(a: Any) -> tuple[Any, Any]:
    """The diagonal of the factor U, as a list where it is unrolled, and the sign of the permutation of rows."""
    (matrix,) = _matrices(a, largest=MAX_FACTORED)
    if _is_unrolled(matrix):
        return unrolled_systems.diagonal(_elements(matrix))
    stack, core = matrix.shape[:-2], matrix.shape[-2:]
    factors = _copied(matrix, stack, core)
    if not stack:
        return np.diagonal(factors), traced_copy(dense_factorizations.eliminate)(factors)
    signs = SERVICES["zeros"](matrix.tracer, factors.shape[0], matrix.dtype.name)
    traced_copy(dense_factorizations.eliminate_stack)(factors, signs)
    diagonals = METHODS["reshape"](np.diagonal(factors, axis1=1, axis2=2), (*stack, core[0]))
    return diagonals, METHODS["reshape"](signs, stack)


def _fold(operation: np.ufunc, diagonal: Any, function: Callable[[Any], Any] = lambda factor: factor) -> Any:
    """Combine the elements of a diagonal."""
    if isinstance(diagonal, list):
        return functools.reduce(operation, map(function, diagonal))
    return operation.reduce(function(diagonal), axis=-1)


def _require(matrix: Traced, condition: Any) -> None:
    """Bail out unless a condition of loops holds: a Python bool where they do not run."""
    if type(condition) is not bool:
        bail_out_unless(condition if type(condition) is Traced else fresh(matrix.tracer, condition.node))
