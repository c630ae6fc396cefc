"""MATMUL_BATCHED: a batch of matrix products."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument


class MatMulBatchedAttr(KernelAttr, kernel_type="MATMUL_BATCHED"):
    """c[i] = op(a[i]) @ op(b[i]) for each i of the batch, where op transposes if trans_a (trans_b) is True.

    op(a[i]) is [m, k] and op(b[i]) [k, n]: with trans_a the array a has the shape [batch, k, m], with trans_b the
    array b has [batch, n, k]. ``jk.matmul`` calls it where its second argument has more than two dimensions; leading
    dimensions broadcast as NumPy's do.
    """

    batch: int
    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*batch m k", transposed="trans_a"),
        Argument("b", "in", "*batch k n", transposed="trans_b"),
        Argument("c", "out", "*batch m n"),
    )

    def tolerance(self) -> Tolerance:
        """As MATMUL: a chain of k products in any order."""
        return Tolerance(ulp=1, terms=self.k / 2 + 2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|op(a)| @ |op(b)|."""
        a, b = np.abs(arrays[0]), np.abs(arrays[1])
        return [np.matmul(a.swapaxes(1, 2) if self.trans_a else a, b.swapaxes(1, 2) if self.trans_b else b)]

    def operations(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        skinny = [(128, 64, 1, 64), (256, 16, 64, 64), (256, 4, 64, 16), (128, 64, 16, 16)]
        full = [
            *((1000, n, n, n) for n in (2, 3, 4, 8, 16)),
            *((64, n, n, n) for n in (32, 64, 100)),
            (8, 256, 256, 256),
            (2, 512, 512, 512),
            (96, 128, 64, 128),
            (96, 1, 128, 64),
            (32, 1, 64, 512),
            *skinny,
        ]
        ci = [(1, 1, 1, 1), (5, 3, 4, 2), (3, 9, 17, 5), (2, 1, 70, 50), (2, 40, 66, 70)]
        transposed_sizes = [(64, 32, 32, 32), (8, 256, 256, 256), (128, 1, 64, 64), *skinny]
        transpositions = [(False, True), (True, False), (True, True)]
        return cases(
            grid(cls, "batch m n k", full, dtype=FLOATS)
            + [cls(batch=b, m=m, n=n, k=k, trans_a=t, trans_b=u, dtype=dtype) for dtype in FLOATS
               for t, u in transpositions for b, m, n, k in transposed_sizes],
            ci=grid(cls, "batch m n k", ci, dtype=FLOATS),
        )  # fmt: skip
