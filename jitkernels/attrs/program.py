"""PROGRAM: a whole compiled function for one kind of arguments, as a row that is made when it is measured.

As of `FusedAttr`, no list has it. What is measured is how it is compiled: fields of `JitConfig`, and variants of nests.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from jitkernels.attrs.base import KernelAttr, Tolerance, custom
from jitkernels.attrs.fused import text
from jitkernels.checksums import sha256
from jitkernels.kernel_types import KernelType
from jitkernels.signature import AnyArray, Signature


class ProgramAttr(KernelAttr):
    """What a program computes, node by node, and the sizes of its arguments."""

    expression: str = custom(text)
    kernel_type = KernelType.unlisted("PROGRAM")

    @staticmethod
    def row(expression: str, symbols: Sequence[str]) -> "type[ProgramAttr]":
        """The row of a program, whose fields are its symbols."""
        content = {
            "__doc__": expression,
            "__module__": __name__,
            "__annotations__": {"expression": str, **dict.fromkeys(symbols, int)},
            "expression": custom(text, default=expression),
        }
        return type("ProgramAttr", (ProgramAttr,), content)

    def measured_with(self, signature: Signature) -> None:
        """Say which arrays a call has, which are none of its fields."""
        self.__dict__["_signature"] = signature

    def tuning_class(self) -> Self:
        """It was measured for these sizes, and code may be for these alone."""
        return self

    def text(self) -> str:
        """Which program, and of which sizes."""
        sizes = "".join(f", {name}={value}" for name, value in self.extents().items())
        return f"#{sha256(self.expression.encode()).hexdigest()[:8]}{sizes}"

    def tolerance(self) -> Tolerance:
        """Sums come in another order, and what is lost is relative to the largest number of a call."""
        return Tolerance(ulp=64, terms=4096)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The largest number among the arguments, or 1."""
        numbers = [array[np.isfinite(array)] for array in arrays if array.dtype.kind == "f"]
        largest = max((float(np.abs(one).max(initial=1.0)) for one in numbers), default=1.0)
        return [np.full(array.shape, largest) for array in self.signature().outputs]

    def operations(self) -> float:
        return 0.0


ProgramAttr.implemented_as = ProgramAttr
