"""QUANTIZE and DEQUANTIZE: floats to 8-bit integers with a scale and a zero point, and back."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, grid
from jitkernels.attrs.schema.signature import Argument

BYTES = ("int8", "uint8")
"""Dtypes of quantized numbers, the default first."""


class QuantizeAttr(KernelAttr, kernel_type="QUANTIZE"):
    """q[i, j] = saturate(rint(x[i, j] / scale[i]) + zero[i]): floats to 8-bit integers.

    The quotient is rounded to the dtype of x and then to an integer, ties to even; values out of the integer range
    saturate; NaN becomes the zero point. Without `shifted` the zero points are 0. Each row has a scale and a zero
    point: for one scale per tensor pass one row, in an everyday call a scale without dimensions. As ONNX defines
    QuantizeLinear (version 13).
    """

    rows: int
    n: int
    shifted: bool = True
    q_dtype: str = choice(*BYTES, default="int8")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n"),
        Argument("scale", "in", "*rows", domain=(0.004, 0.04)),
        Argument("zero", "in", "*rows", dtype="q_dtype", domain=(-128, 128), when="shifted"),
        Argument("q", "out", "*rows n", dtype="q_dtype", domain=(-128, 128)),
    )
    options = ("q_dtype",)
    streams = ((4096, 4096),)

    def tolerance(self) -> Tolerance:
        """Integers are exact."""
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 5.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        return _sweep(cls)


class DequantizeAttr(KernelAttr, kernel_type="DEQUANTIZE"):
    """y[i, j] = (q[i, j] - zero[i]) * scale[i]: 8-bit integers to floats.

    The difference is exact and the product rounded once. Without `shifted` the zero points are 0. Each row has a scale
    and a zero point: for one scale per tensor pass one row, in an everyday call a scale without dimensions. As ONNX
    defines DequantizeLinear (version 13).
    """

    rows: int
    n: int
    shifted: bool = True
    q_dtype: str = choice(*BYTES, default="int8")
    dtype: str = "float32"
    arrays = (
        Argument("q", "in", "*rows n", dtype="q_dtype", domain=(-128, 128)),
        Argument("scale", "in", "*rows"),
        Argument("zero", "in", "*rows", dtype="q_dtype", domain=(-128, 128), when="shifted"),
        Argument("y", "out", "*rows n"),
    )
    streams = ((4096, 4096),)

    def tolerance(self) -> Tolerance:
        """One product."""
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 2.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        return _sweep(cls)


def _sweep(row: type[KernelAttr]) -> Iterable[Case]:
    ci = [(1, 1), (3, 7), (4, 64), (1, 1000), (5, 130)]
    full = [(1, 1 << 10), (1, 1 << 14), (1, 1 << 20), (1, 1 << 24), (64, 64), (768, 768), (4096, 4096)]
    return cases(grid(row, "rows n", full, dtype=("float32",)), ci=grid(row, "rows n", ci, dtype=FLOATS))
