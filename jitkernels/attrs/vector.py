"""Elementwise kernels on vectors: VMUL, VEXP, VSIGMOID."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from jitkernels.attrs.base import (
    FLOATS,
    Call,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    dtype_name,
    float_arrays,
    power_of_two,
)
from jitkernels.errors import ArgumentError
from jitkernels.signature import Array, Signature


class VectorAttr(KernelAttr):
    """Fields of all elementwise kernels: n, the number of elements, and dtype."""

    n: int
    dtype: str = "float32"

    def _array(self, name: str, role: Any, **more: Any) -> Array:
        return Array(name, role, (self.n,), self.dtype, in_place=True, **more)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [1, 7, 8, 31, 128, 1000]
        full = [2**i for i in range(23)] + [3 * 2**i for i in range(3, 19, 3)] + [10**i for i in range(1, 7)]
        return cases(
            [cls(n=n, dtype=dtype) for dtype in FLOATS for n in full],
            ci=[cls(n=n, dtype=dtype) for dtype in FLOATS for n in ci],
        )

    def tuning_class(self) -> Self:
        """The next power of two."""
        return type(self)(n=power_of_two(self.n), dtype=self.dtype)


class UnaryVectorAttr(VectorAttr):
    """Elementwise kernels of one input."""

    def signature(self) -> Signature:
        return Signature(
            (self._array("x", "in", domain=(-10.0, 10.0)), self._array("y", "out")), (("n", self.n),)
        )

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=4)

    def operations(self) -> float:
        return 16.0 * self.n

    @classmethod
    def call(cls, x: Any) -> Call:
        (array,) = float_arrays(cls.kernel_type.name.lower(), x=x)
        return Call(cls(n=array.size, dtype=dtype_name(array)), [array.reshape(-1)], [array.shape])


class VMulAttr(VectorAttr, kernel_type="VMUL"):
    """z = x * y, element by element."""

    def signature(self) -> Signature:
        arrays = (self._array("x", "in"), self._array("y", "in"), self._array("z", "out"))
        return Signature(arrays, (("n", self.n),))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.n)

    @classmethod
    def call(cls, x: Any, y: Any) -> Call:
        arrays = float_arrays("vmul", x=x, y=y)
        if arrays[0].shape != arrays[1].shape:
            try:
                arrays = [np.ascontiguousarray(array) for array in np.broadcast_arrays(*arrays)]
            except ValueError:
                shapes = " and ".join(str(array.shape) for array in arrays)
                raise ArgumentError(f"vmul: x and y: expected shapes that broadcast, got {shapes}") from None
        attr = cls(n=arrays[0].size, dtype=dtype_name(arrays[0]))
        return Call(attr, [array.reshape(-1) for array in arrays], [arrays[0].shape])


class VExpAttr(UnaryVectorAttr, kernel_type="VEXP"):
    """y = exp(x), element by element."""


class VSigmoidAttr(UnaryVectorAttr, kernel_type="VSIGMOID"):
    """y = 1 / (1 + exp(-x)), element by element."""
