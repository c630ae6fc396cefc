"""MATMUL: the product of two matrices."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import NARROW, Case, KernelAttr, Tolerance, cases, grid, real, stored
from jitkernels.attrs.schema.bf16_tolerance import flushed_sums
from jitkernels.attrs.schema.signature import AnyArray, Argument


class MatMulAttr(KernelAttr, kernel_type="MATMUL"):
    """c = op(a) @ op(b) + beta * c, where op transposes if trans_a (trans_b) is True.

    op(a) is [m, k] and op(b) [k, n]: with trans_a the array a has the shape [k, m], with trans_b the array b has [n,
    k]. With beta = 0 the old content of c is not read. For a batch of second factors ``jk.matmul`` calls
    MATMUL_BATCHED; a bias and an activation are MATMUL_EPILOGUE. bfloat16 is accumulated in float32, and its subnormal
    numbers may be flushed to zero.
    """

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    beta: float = real(default=0.0, samples=(1.0, 0.5, -1.5))
    dtype: str = stored(*NARROW, default="float32")
    arrays = (
        Argument("a", "in", "*m k", transposed="trans_a"),
        Argument("b", "in", "k ?n", transposed="trans_b"),
        Argument("c", "out", "*m ?n", read="beta"),
    )
    beyond = ("b", 2, "matmul_batched")

    def tolerance(self) -> Tolerance:
        """A chain of k products in any order, unblocked in some libraries, with half a unit of error at each step."""
        return Tolerance(ulp=1, terms=self.k / 2 + 2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|op(a)| @ |op(b)| + |beta * c|."""
        a, b, c = (np.abs(array) for array in arrays)
        left, right = a.T if self.trans_a else a, b.T if self.trans_b else b
        products = left @ right + flushed_sums(left, right, self.dtype)
        return [products + abs(self.beta) * c if self.beta else products]

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
        ci = [(1, 1, 1), (3, 5, 7), (8, 8, 8), (31, 33, 17), (64, 64, 64), (100, 130, 70), (1, 200, 50), (200, 1, 50)]
        plain = grid(cls, "m n k", full, dtype=NARROW)
        transposed = [
            cls(m=n, n=n, k=n, trans_a=a, trans_b=b, beta=beta, dtype=dtype)
            for dtype in NARROW
            for n in (32, 256)
            for a, b, beta in ((True, False, 0.0), (False, True, 0.0), (True, True, 0.0), (False, False, 1.0))
        ]
        checked = [
            cls(m=m, n=n, k=k, trans_a=a, trans_b=b, beta=beta, dtype=dtype)
            for dtype in NARROW
            for m, n, k in ci
            for a, b, beta in ((False, False, 0.0), (True, False, 0.0), (False, True, 0.5), (True, True, 1.0))
        ]
        return cases([*plain, *transposed], ci=checked)
