"""Elementwise kernels of a vector and something smaller: VSCAL and VADD_BIAS of a number, NCHW16C_MUL_NC of 16."""

from collections.abc import Iterable

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases
from jitkernels.attrs.vector import VectorAttr, vector
from jitkernels.signature import Argument


class NumberVectorAttr(VectorAttr):
    """Elementwise kernels of a number and a vector, rounded once."""

    arrays = (Argument("a", "in", "1"), vector("x", "in"), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.n)


class VScalAttr(NumberVectorAttr, kernel_type="VSCAL"):
    """y = a * x for a number a, element by element."""


class VAddBiasAttr(NumberVectorAttr, kernel_type="VADD_BIAS"):
    """y = a + x for a number a, element by element."""


class NCHW16CMulNCAttr(KernelAttr, kernel_type="NCHW16C_MUL_NC"):
    """z[i, j, c] = x[i, j, c] * y[c]: a block of 16 channels of an image, each scaled by a number of its own.

    The layout nChw16c keeps the numbers of 16 channels of one pixel together; h and w are the image's.
    """

    h: int
    w: int
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "h w 16", in_place=True),
        Argument("y", "in", "16"),
        Argument("z", "out", "h w 16", in_place=True),
    )

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 16.0 * self.h * self.w

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 7), (3, 2), (7, 7), (8, 31)]
        full = [(1, 1), (7, 7), (14, 14), (28, 28), (56, 56), (112, 112), (224, 224), (13, 13), (1, 1000)]
        return cases(
            [cls(h=h, w=w, dtype=dtype) for dtype in FLOATS for h, w in full],
            ci=[cls(h=h, w=w, dtype=dtype) for dtype in FLOATS for h, w in ci],
        )
