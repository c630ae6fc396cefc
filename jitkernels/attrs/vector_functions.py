"""Elementwise elementary functions: VTANH, VLOG, VERF, VSIN, VCOS, VPOW; VEXP is in `vector`."""

from jitkernels.attrs.schema.base import Tolerance
from jitkernels.attrs.vector import BinaryVectorAttr, UnaryVectorAttr, vector


class VTanhAttr(UnaryVectorAttr, kernel_type="VTANH"):
    """y = tanh(x), elementwise.

    Paddle's reference clamps 2 * x to -40 .. 13, so that it saturates at 1 - 4.5e-6; this is the exact function.
    """


class VLogAttr(UnaryVectorAttr, kernel_type="VLOG"):
    """y = log(x), the natural logarithm, elementwise: NaN for x < 0, -inf for zeros."""

    arrays = (vector("x", "in", domain=(0.0, 10.0)), vector("y", "out"))


class VErfAttr(UnaryVectorAttr, kernel_type="VERF"):
    """y = erf(x) = 2 / sqrt(pi) * integral from 0 to x of exp(-t * t) dt, elementwise."""

    arrays = (vector("x", "in", domain=(-4.0, 4.0)), vector("y", "out"))


class VSinAttr(UnaryVectorAttr, kernel_type="VSIN"):
    """y = sin(x), x in radians and of any size, elementwise: NaN for infinities."""


class VCosAttr(UnaryVectorAttr, kernel_type="VCOS"):
    """y = cos(x), x in radians and of any size, elementwise: NaN for infinities."""


class VPowAttr(BinaryVectorAttr, kernel_type="VPOW"):
    """z = x ** y, elementwise.

    As in C and NumPy it is 1 for y = 0 or x = 1, whatever the other is, and NaN for x < 0 unless y is an integer.
    """

    arrays = (vector("x", "in", domain=(0.0, 10.0)), vector("y", "in", domain=(-5.0, 5.0)), vector("z", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=4)

    def operations(self) -> float:
        return 40.0 * self.n
