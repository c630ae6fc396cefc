"""MATMUL_INT8: the product of two 8-bit integer matrices."""

from collections.abc import Iterable

from jitkernels.attrs.quantize import BYTES
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, grid
from jitkernels.attrs.schema.signature import Argument


class MatMulInt8Attr(KernelAttr, kernel_type="MATMUL_INT8"):
    """c = a @ op(b) in int32, or (a @ op(b)) * a_scale[:, None] * b_scale in floats, where op transposes if trans_b.

    a is [m, k] of int8 or uint8, op(b) is [k, n] of int8: with trans_b the array b has the shape [n, k]. The sums are
    exact, modulo 2**32 where k exceeds 2**16. If `scaled`, a_scale is [m] and b_scale is [n], and c is float(sum) *
    (a_scale[i] * b_scale[j]) in their dtype, each step rounded; a scale without dimensions applies to all rows.
    """

    m: int
    n: int
    k: int
    trans_b: bool = False
    scaled: bool = False
    a_dtype: str = choice(*BYTES, default="int8")
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*m k", dtype="a_dtype", domain=(-128, 128)),
        Argument("b", "in", "k n", dtype="int8", domain=(-128, 128), transposed="trans_b"),
        Argument("a_scale", "in", "*m", when="scaled", domain=(0.001, 0.1)),
        Argument("b_scale", "in", "n", when="scaled", domain=(0.001, 0.1)),
        Argument("c", "out", "*m n", dtype="int32", unless="scaled"),
    )

    def tolerance(self) -> Tolerance:
        """Integers are exact; floats are rounded three times."""
        return Tolerance(ulp=2) if self.scaled else Tolerance(ulp=0)

    def operations(self) -> float:
        """A vector of int8 takes a quarter of the time of one of float32."""
        return 0.5 * self.m * self.n * self.k

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 5, 7), (17, 40, 33), (1, 70, 50), (30, 66, 130)]
        full = [(n, n, n) for n in (16, 64, 128, 256, 512, 1024)] + [(1, 1024, 1024), (32, 768, 3072)]
        return cases(
            grid(cls, "m n k", full, a_dtype=BYTES)
            + [cls(m=n, n=n, k=n, trans_b=True, scaled=True) for n in (256, 1024)],
            ci=grid(cls, "m n k", ci, dtype=FLOATS, scaled=(True,)) + grid(cls, "m n k", ci, dtype=("float64",)),
        )
