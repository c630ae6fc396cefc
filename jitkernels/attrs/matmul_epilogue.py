"""MATMUL_EPILOGUE: the product of two matrices, a bias and an activation."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.attrs.schema.signature import AnyArray, Argument

ACTIVATIONS = ("identity", "relu", "gelu", "silu", "tanh", "sigmoid")


class MatMulEpilogueAttr(KernelAttr, kernel_type="MATMUL_EPILOGUE"):
    """c = activation(op(a) @ op(b) + bias), where op transposes if trans_a (trans_b) is True: a layer of a network.

    op(a) is [m, k], op(b) is [k, n] and bias [n]; without `biased` there is no bias. With z the sum, the activation is
    z (identity), max(z, 0) (relu), z * Phi(z) = z * erfc(-z / sqrt(2)) / 2 (gelu), z * sigmoid(z) (silu), tanh(z) or 1
    / (1 + exp(-z)) (sigmoid). It is computed while the rows of the product are in the cache.
    """

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False
    biased: bool = True
    activation: str = choice(*ACTIVATIONS, default="identity")
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*m k", transposed="trans_a"),
        Argument("b", "in", "k n", transposed="trans_b"),
        Argument("bias", "in", "n", when="biased"),
        Argument("c", "out", "*m n"),
    )
    options = ("activation",)

    def tolerance(self) -> Tolerance:
        """A chain of k products in any order, the bias, and an activation whose slope is at most 1.13."""
        return Tolerance(ulp=4, terms=1.13 * (self.k / 2 + 3) + 1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|op(a)| @ |op(b)| + |bias|; there is no bound for 0 times an infinite z."""
        a, b, *bias = (np.abs(array) for array in arrays[:-1])
        terms = (a.T if self.trans_a else a) @ (b.T if self.trans_b else b)
        terms = terms + bias[0] if bias else terms
        return [np.where(np.isinf(terms), np.nan, terms) if self.activation in ("gelu", "silu") else terms]

    def operations(self) -> float:
        each = {"identity": 1, "relu": 1}.get(self.activation, 18)
        return self.m * self.n * (2.0 * self.k + each)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        full = [(n, n, n) for n in (16, 64, 128, 256, 512, 1024)] + [(1, 1024, 1024), (32, 768, 3072), (128, 3072, 768)]
        ci = [(19, 1, 2), (3, 5, 7), (8, 33, 17), (66, 70, 40)]
        return cases(
            [
                cls(m=m, n=n, k=k, trans_b=trans_b, activation=activation)
                for activation, trans_b in (("relu", False), ("gelu", False), ("identity", True))
                for m, n, k in full
            ],
            ci=[
                cls(m=m, n=n, k=k, activation=activation, dtype=dtype)
                for dtype in FLOATS
                for (m, n, k), activation in zip(ci, ("relu", "gelu", "silu", "tanh"), strict=True)
            ],
        )  # fmt: skip
