"""PROGRAM: a whole compiled function for one signature of arguments, as a schema that is created when it is measured.

Like `FusedAttr`, it is in no list. Tuning measures how it is compiled: fields of `JitConfig`, and variants of nests.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from jitkernels.attrs.fused import text
from jitkernels.attrs.schema.base import KernelAttr, Tolerance, custom
from jitkernels.attrs.schema.kernel_types import KernelType
from jitkernels.attrs.schema.signature import AnyArray, Signature
from jitkernels.core.hashing import sha256


class ProgramAttr(KernelAttr):
    """The computation of a program, node by node, and the sizes of its arguments."""

    expression: str = custom(text)
    kernel_type = KernelType.unlisted("PROGRAM")

    @staticmethod
    def schema(expression: str, symbols: Sequence[str]) -> "type[ProgramAttr]":
        """The schema of a program, whose fields are its symbols."""
        content = {
            "__doc__": expression,
            "__module__": __name__,
            "__annotations__": {"expression": str, **dict.fromkeys(symbols, int)},
            "expression": custom(text, default=expression),
        }
        return type("ProgramAttr", (ProgramAttr,), content)

    def measured_with(self, signature: Signature) -> None:
        """Set the arrays of a call, which are not fields."""
        self.__dict__["_signature"] = signature

    def size_class(self) -> Self:
        """The attr itself: it is measured for these sizes, and its code may be valid for these only."""
        return self

    def text(self) -> str:
        """A hash of the program, and its sizes."""
        sizes = "".join(f", {name}={value}" for name, value in self.extents().items())
        return f"#{sha256(self.expression.encode()).hexdigest()[:8]}{sizes}"

    def tolerance(self) -> Tolerance:
        """Sums may be reordered; errors are relative to the largest argument of a call."""
        return Tolerance(ulp=64, terms=4096)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The largest number among the arguments, or 1."""
        numbers = [array[np.isfinite(array)] for array in arrays if array.dtype.kind == "f"]
        largest = max((float(np.abs(values).max(initial=1.0)) for values in numbers), default=1.0)
        return [np.full(array.shape, largest) for array in self.signature().outputs]

    def operations(self) -> float:
        return 0.0


ProgramAttr.implemented_as = ProgramAttr
