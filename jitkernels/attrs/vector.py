"""Elementwise kernels on vectors: VMUL, VEXP, VSIGMOID."""

from collections.abc import Iterable
from typing import Any, Literal

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases
from jitkernels.attrs.schema.signature import Argument


def vector(name: str, role: Literal["in", "out"], **more: Any) -> Argument:
    """An array of an elementwise kernel: any shape, broadcast against the others; outputs may alias inputs."""
    return Argument(name, role, "*n", in_place=True, **more)


class VectorAttr(KernelAttr):
    """Fields of all elementwise kernels: n, the number of elements, and dtype."""

    n: int
    dtype: str = "float32"

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [1, 7, 8, 31, 128, 1000]
        full = [2**i for i in range(23)] + [3 * 2**i for i in range(3, 19, 3)] + [10**i for i in range(1, 7)]
        return cases(
            [cls(n=n, dtype=dtype) for dtype in FLOATS for n in full],
            ci=[cls(n=n, dtype=dtype) for dtype in FLOATS for n in ci],
        )


class UnaryVectorAttr(VectorAttr):
    """Elementwise kernels of one input."""

    arrays = (vector("x", "in", domain=(-10.0, 10.0)), vector("y", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=4)

    def operations(self) -> float:
        return 16.0 * self.n


class BinaryVectorAttr(VectorAttr):
    """Elementwise kernels of two inputs, exact or rounded once."""

    arrays = (vector("x", "in"), vector("y", "in"), vector("z", "out"))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.n)


class VMulAttr(BinaryVectorAttr, kernel_type="VMUL"):
    """z = x * y, elementwise."""


class VExpAttr(UnaryVectorAttr, kernel_type="VEXP"):
    """y = exp(x), elementwise."""


class VSigmoidAttr(UnaryVectorAttr, kernel_type="VSIGMOID"):
    """y = 1 / (1 + exp(-x)), elementwise."""
