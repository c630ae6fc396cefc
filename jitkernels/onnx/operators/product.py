"""Products of matrices, and what is written as them."""

import math
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError, is_traced, like


@operator("MatMul")
def matmul(x: Any, y: Any) -> Any:
    return np.matmul(x, y)


@operator("Gemm")
def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,  # noqa: N803
) -> Any:  # fmt: skip
    a, b = np.transpose(a) if transA else a, np.transpose(b) if transB else b
    result = np.matmul(a, b)
    result = result if alpha == 1 else result * like(alpha, a)
    if c is None:
        return result
    return result + (c if beta == 1 else c * like(beta, a))


@operator("Einsum")
def einsum(*operands: Any, equation: str) -> Any:
    return np.einsum(equation.replace(" ", ""), *operands)


@operator("Det")
def determinant(x: Any) -> Any:
    return np.linalg.det(x)


def integer_matmul(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """A product of 8-bit ints in int32, zero points subtracted: the kernel of such products where they are scalars."""
    if is_traced(a) and a.ndim > 2 and getattr(b, "ndim", 0) == 2 and getattr(a_zero, "ndim", 0) == 0:
        rows = integer_matmul(np.reshape(a, (math.prod(a.shape[:-1]), a.shape[-1])), b, a_zero, b_zero)
        return np.reshape(rows, (*a.shape[:-1], b.shape[1]))
    scalar_zeros = all(zero is None or getattr(zero, "ndim", 0) == 0 or zero.shape == (1,) for zero in (a_zero, b_zero))
    if is_traced(a) and a.ndim == 2 and getattr(b, "ndim", 0) == 2 and b.dtype == "int8" and scalar_zeros:
        product = jk.matmul_int8(a, b)
        if a_zero is not None:
            product = product - a_zero.astype(np.int32) * np.sum(b, axis=0, dtype=np.int32)
        if b_zero is not None:
            zero = b_zero.astype(np.int32)
            sums = np.sum(a, axis=1, keepdims=True, dtype=np.int32)
            product = product - zero * sums
            if a_zero is not None:
                product = product + a_zero.astype(np.int32) * zero * np.int32(int(a.shape[1]))
        return product
    left = a.astype(np.int32) if a_zero is None else a.astype(np.int32) - _rows(a_zero, a).astype(np.int32)
    right = b.astype(np.int32) if b_zero is None else b.astype(np.int32) - b_zero.astype(np.int32)
    return np.matmul(left, right)


def _rows(zero: Any, a: Any) -> Any:
    """A zero point of each row."""
    if getattr(zero, "ndim", 0) == 1 and zero.shape[0] != 1:
        return zero[:, None]
    if getattr(zero, "ndim", 0) > 1 and zero.shape[-1] != 1:
        raise NotServedError("zero points of columns")
    return zero


@operator("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    return integer_matmul(a, b, a_zero, b_zero)
