"""Elementwise kernels of a few instructions: sums, VRELU, VIDENTITY, VCOPY, VSQUARE, VCLIP and roots."""

from jitkernels.attrs.schema.base import Tolerance, real
from jitkernels.attrs.vector import BinaryVectorAttr, VectorAttr, vector


class ShortVectorAttr(VectorAttr):
    """Elementwise kernels of one input, exact or rounded once."""

    arrays = (vector("x", "in"), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.n)


class VAddAttr(BinaryVectorAttr, kernel_type="VADD"):
    """z = x + y, elementwise."""


class VSubAttr(BinaryVectorAttr, kernel_type="VSUB"):
    """z = x - y, elementwise."""


class VAddReluAttr(BinaryVectorAttr, kernel_type="VADD_RELU"):
    """z = max(x + y, 0), elementwise.

    As in NumPy's maximum a sum that is NaN stays NaN, and a sum of -0.0 becomes 0.0. Paddle's reference maps NaN to 0.
    """

    def operations(self) -> float:
        return 2.0 * self.n


class VReluAttr(ShortVectorAttr, kernel_type="VRELU"):
    """y = max(x, 0), elementwise.

    As in NumPy's maximum NaN stays NaN, and -0.0 becomes 0.0. Paddle's reference maps NaN to 0.
    """


class VIdentityAttr(ShortVectorAttr, kernel_type="VIDENTITY"):
    """y = x, elementwise: the identity activation."""

    arrays = (vector("x", "in"), vector("y", "out", moves="x"))


class VCopyAttr(ShortVectorAttr, kernel_type="VCOPY"):
    """y = x, elementwise: a copy."""

    arrays = (vector("x", "in"), vector("y", "out", moves="x"))


class VSquareAttr(ShortVectorAttr, kernel_type="VSQUARE"):
    """y = x * x, elementwise."""


class VClipAttr(ShortVectorAttr, kernel_type="VCLIP"):
    """y = min(max(x, low), high), elementwise.

    As in NumPy's clip NaN stays NaN, a zero within the bounds keeps its sign, and where low is above high every other
    element becomes high. Both bounds are finite and rounded to the dtype.
    """

    n: int
    low: float = real(default=0.0, samples=(0.0, -1.0, 0.25))
    high: float = real(default=1.0, samples=(1.0, 0.5, -1.5, 6.0))
    dtype: str = "float32"
    floats = ("low", "high")
    options = ("low", "high")

    def operations(self) -> float:
        return 2.0 * self.n


class VSqrtAttr(ShortVectorAttr, kernel_type="VSQRT"):
    """y = sqrt(x), elementwise: NaN for x < 0, and -0.0 for -0.0."""

    arrays = (vector("x", "in", domain=(0.0, 10.0)), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        """Rounded once by processors, nearly so by libraries."""
        return Tolerance(ulp=1)

    def operations(self) -> float:
        return 8.0 * self.n


class VRsqrtAttr(ShortVectorAttr, kernel_type="VRSQRT"):
    """y = 1 / sqrt(x), elementwise: NaN for x < 0, infinite with the sign of x for zeros."""

    arrays = (vector("x", "in", domain=(0.0, 10.0)), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        """A root and a quotient, each rounded."""
        return Tolerance(ulp=2)

    def operations(self) -> float:
        return 16.0 * self.n
