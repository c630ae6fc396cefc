"""Elementwise activations: VGELU, VSILU, VSOFTPLUS, and SWIGLU of two vectors; VSIGMOID is in `vector`."""

from collections.abc import Sequence

import numpy as np

from jitkernels.attrs.schema.base import Tolerance, choice
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector import BinaryVectorAttr, UnaryVectorAttr, vector

FORMS = ("erf", "tanh")


class VGeluAttr(UnaryVectorAttr, kernel_type="VGELU"):
    """y = x * Phi(x), elementwise, Phi(x) = (1 + erf(x / sqrt(2))) / 2; NaN for -inf, as 0 * inf is.

    With form="tanh" Phi(x) is (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2, which differs by up to 5e-4.
    From Hendrycks and Gimpel, Gaussian Error Linear Units (2016). Neither cancels for x < 0, where (1 + erf) would.
    """

    n: int
    form: str = choice(*FORMS, default="erf")
    dtype: str = "float32"
    options = ("form",)

    def tolerance(self) -> Tolerance:
        """The rounding of Phi(x), of the product, and of the argument of Phi."""
        return Tolerance(ulp=5, terms=4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """For x < 0 the relative error that Phi inherits from its argument, and the loss where it underflows.

        Phi(x) is less than the exponential of x * x / -2, or of twice the argument of tanh.
        """
        x = arrays[0]
        small = np.minimum(x, 0)
        exponent = 1.6 * small * (1 + 0.044715 * small * small) if self.form == "tanh" else -small * small / 2
        phi = np.where(x < 0, -2 * exponent * np.exp(exponent), 0)
        return [np.abs(x) * (phi + float(np.finfo(self.dtype).tiny))]

    def operations(self) -> float:
        return 40.0 * self.n


class VSiluAttr(UnaryVectorAttr, kernel_type="VSILU"):
    """y = x * sigmoid(x) = x / (1 + exp(-x)), elementwise; also called swish. NaN for -inf, as 0 * inf is."""

    def tolerance(self) -> Tolerance:
        """A sigmoid of 4 ULP and a product."""
        return Tolerance(ulp=5, terms=2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The loss where the sigmoid underflows."""
        return [np.abs(arrays[0]) * float(np.finfo(self.dtype).tiny)]

    def operations(self) -> float:
        return 20.0 * self.n


class VSoftplusAttr(UnaryVectorAttr, kernel_type="VSOFTPLUS"):
    """y = log(1 + exp(x)), elementwise, without overflow: x for large x, exp(x) for very negative ones."""

    def operations(self) -> float:
        return 32.0 * self.n


class SwigluAttr(BinaryVectorAttr, kernel_type="SWIGLU"):
    """y = silu(a) * b = a * sigmoid(a) * b, elementwise: the first input is the gate.

    a and b are separate arrays, such as two matrix products or the halves of one. From Shazeer, GLU Variants Improve
    Transformer (2020), without its products.
    """

    arrays = (vector("a", "in", domain=(-10.0, 10.0)), vector("b", "in"), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        """A sigmoid of 4 ULP and two products."""
        return Tolerance(ulp=6, terms=2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The loss where the sigmoid, or its product with a, underflows; NaN where b is infinite then."""
        a, b, _ = arrays
        tiny = float(np.finfo(self.dtype).tiny)
        lost = (np.abs(a) + 1) * np.abs(b) * tiny
        is_lost = np.abs(a) * np.exp(np.minimum(a, 0)) < tiny
        return [np.where(is_lost & np.isinf(b), np.nan, lost)]

    def operations(self) -> float:
        return 22.0 * self.n
