"""Kernels of a vector and a smaller operand: VSCAL, VADD_BIAS, STRIDE_SCAL, NCHW16C_MUL_NC and VBROADCAST."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, whole
from jitkernels.attrs.schema.signature import Argument
from jitkernels.attrs.vector import VectorAttr, vector


class NumberVectorAttr(VectorAttr):
    """Elementwise kernels of a scalar and a vector, rounded once."""

    arrays = (Argument("a", "in", "1"), vector("x", "in"), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.n)


class VScalAttr(NumberVectorAttr, kernel_type="VSCAL"):
    """y = a * x for a scalar a, elementwise."""


class VAddBiasAttr(NumberVectorAttr, kernel_type="VADD_BIAS"):
    """y = a + x for a scalar a, elementwise."""


class StrideScalAttr(NumberVectorAttr, kernel_type="STRIDE_SCAL"):
    """y[i] = a * x[i] where i % stride == 0, else x[i], for a scalar a.

    The operation depends on the index of an element, so that arrays have one dimension.
    """

    n: int
    stride: int = whole(default=1, least=1, samples=(2, 7, 100))
    dtype: str = "float32"
    options = ("stride",)
    arrays = (
        Argument("a", "in", "1"),
        Argument("x", "in", "n", in_place=True),
        Argument("y", "out", "n", in_place=True),
    )

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (7, 2), (31, 3), (128, 100), (1000, 7), (1000, 65)]
        full = [(n, stride) for n in (8, 100, 1000, 4096, 10**5, 10**6) for stride in (1, 2, 3, 8, 10, 64, 1000)]
        return cases(grid(cls, "n stride", full, dtype=FLOATS), ci=grid(cls, "n stride", ci, dtype=FLOATS))


class VBroadcastAttr(KernelAttr, kernel_type="VBROADCAST"):
    """y[i, j] = x[j]: every row of y is x."""

    w: int
    h: int = whole(default=1, samples=(3, 17))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "w"), Argument("y", "out", "h w", moves="x"))
    options = ("h",)
    singles = ("w",)  # rows of one element need no inner loop

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.h * self.w)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (17, 31), (5, 1000)]
        full = [(h, w) for h in (1, 4, 16, 64, 256, 1024) for w in (1, 3, 8, 16, 30, 64, 100, 512, 1024, 4096)]
        return cases(grid(cls, "h w", full, dtype=FLOATS), ci=grid(cls, "h w", ci, dtype=FLOATS))


class NCHW16CMulNCAttr(KernelAttr, kernel_type="NCHW16C_MUL_NC"):
    """z[i, j, c] = x[i, j, c] * y[c]: a block of 16 channels of an image, each scaled by its own factor.

    The layout nChw16c stores 16 channels of one pixel contiguously; h and w are the image's. For several contiguous
    images h is the sum of their heights. Results have this layout also where x has another one.
    """

    h: int
    w: int
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*h w 16", in_place=True),
        Argument("y", "in", "16"),
        Argument("z", "out", "*h w 16", in_place=True),
    )

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 16.0 * self.h * self.w

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 7), (3, 2), (7, 7), (8, 31)]
        full = [(1, 1), (7, 7), (14, 14), (28, 28), (56, 56), (112, 112), (224, 224), (13, 13), (1, 1000)]
        return cases(grid(cls, "h w", full, dtype=FLOATS), ci=grid(cls, "h w", ci, dtype=FLOATS))
