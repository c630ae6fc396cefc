"""MATMUL: the product of two matrices."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from jitkernels.attrs.base import (
    FLOATS,
    Call,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    dtype_name,
    float_arrays,
    power_of_two,
)
from jitkernels.errors import ArgumentError
from jitkernels.signature import AnyArray, Array, Signature


class MatMulAttr(KernelAttr, kernel_type="MATMUL"):
    """c = op(a) @ op(b) + beta * c, where op transposes if trans_a (trans_b) says so.

    op(a) is [m, k] and op(b) [k, n]: with trans_a the array a has the shape [k, m], with trans_b the array b
    has [n, k]. With beta = 0 the old content of c is not read.
    """

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    beta: float = 0.0
    dtype: str = "float32"

    def signature(self) -> Signature:
        a = (self.k, self.m) if self.trans_a else (self.m, self.k)
        b = (self.n, self.k) if self.trans_b else (self.k, self.n)
        arrays = (
            Array("a", "in", a, self.dtype),
            Array("b", "in", b, self.dtype),
            Array("c", "inout" if self.beta else "out", (self.m, self.n), self.dtype),
        )
        return Signature(arrays, (("m", self.m), ("n", self.n), ("k", self.k)))

    def tolerance(self) -> Tolerance:
        """k products of order 1 and a sum of order sqrt(k), each step off by half a unit of the sum."""
        unit = float(np.finfo(self.dtype).eps)
        return Tolerance(ulp=2, absolute=unit * (4 + abs(self.beta) * 4 + 2 * self.k))

    def operations(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        squares = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 100, 128, 200, 256, 384, 512, 1024)
        full = [(n, n, n) for n in squares] + [
            (1, 256, 256),
            (256, 1, 256),
            (16, 512, 64),
            (1000, 10, 100),
            (64, 64, 4096),
        ]
        ci = [
            (1, 1, 1),
            (3, 5, 7),
            (8, 8, 8),
            (31, 33, 17),
            (64, 64, 64),
            (100, 130, 70),
            (1, 200, 50),
            (200, 1, 50),
        ]
        plain = [cls(m=m, n=n, k=k, dtype=dtype) for dtype in FLOATS for m, n, k in full]
        turned = [
            cls(m=n, n=n, k=n, trans_a=a, trans_b=b, beta=beta, dtype=dtype)
            for dtype in FLOATS
            for n in (32, 256)
            for a, b, beta in ((True, False, 0.0), (False, True, 0.0), (True, True, 0.0), (False, False, 1.0))
        ]
        checked = [
            cls(m=m, n=n, k=k, trans_a=a, trans_b=b, beta=beta, dtype=dtype)
            for dtype in FLOATS
            for m, n, k in ci
            for a, b, beta in ((False, False, 0.0), (True, False, 0.0), (False, True, 0.5), (True, True, 1.0))
        ]
        return cases([*plain, *turned], ci=checked)

    def tuning_class(self) -> Self:
        """Itself up to 64, where tiles are exact; beyond that every extent at the next power of two."""
        if max(self.m, self.n, self.k) <= 64:
            return self
        extents = {name: power_of_two(getattr(self, name)) for name in ("m", "n", "k")}
        return type(self)(
            **extents, trans_a=self.trans_a, trans_b=self.trans_b, beta=self.beta, dtype=self.dtype
        )

    @classmethod
    def call(cls, a: Any, b: Any) -> Call:
        left, right = np.asarray(a), np.asarray(b)
        if left.ndim == 0 or right.ndim == 0 or right.ndim > 2:
            raise ArgumentError(
                f"matmul: a and b: expected at least 1 dimension, and at most 2 of b, got {left.ndim} and {right.ndim}"
            )
        kept = left.shape[:-1] + (right.shape[1:] if right.ndim == 2 else ())
        columns = right.reshape(-1, 1) if right.ndim == 1 else right
        if left.shape[-1] != columns.shape[0]:
            raise ArgumentError(
                f"matmul: b: expected {left.shape[-1]} rows as a has columns, got {columns.shape[0]}"
            )
        rows = (
            left.reshape(-1, left.shape[-1])
            if left.shape[-1]
            else left.reshape(int(np.prod(left.shape[:-1])), 0)
        )
        (m, k), n = rows.shape, columns.shape[1]
        turned_a, turned_b = _is_turned(rows), _is_turned(columns)
        used = float_arrays("matmul", a=rows.T if turned_a else rows, b=columns.T if turned_b else columns)
        attr = cls(m=m, n=n, k=k, trans_a=turned_a, trans_b=turned_b, dtype=dtype_name(used[0]))
        return Call(attr, used, [kept])


def _is_turned(matrix: AnyArray) -> bool:
    """Whether a matrix lies in memory as the transpose of a C-contiguous one, which needs no copy."""
    return bool(matrix.flags.f_contiguous and not matrix.flags.c_contiguous)
