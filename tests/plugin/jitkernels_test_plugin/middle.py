"""The row VMIDDLE, which no part of jitkernels knows."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases
from jitkernels.attrs.schema.signature import Argument


class VMiddleAttr(KernelAttr, kernel_type="VMIDDLE"):
    """z = x / 2 + y / 2, element by element."""

    n: int
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*n", in_place=True),
        Argument("y", "in", "*n", in_place=True),
        Argument("z", "out", "*n", in_place=True),
    )

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=4)

    def operations(self) -> float:
        return 3.0 * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        both = [cls(n=n, dtype=dtype) for dtype in FLOATS for n in (1, 9, 40, 1000)]
        return cases([cls(n=100_000)], ci=both)
