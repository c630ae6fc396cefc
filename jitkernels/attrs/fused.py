"""FUSED: one loop nest of a compiled function, as a row that is made when the nest is met.

Nobody could name such a row, so no list has it. All that takes an attr takes its attrs: they are computed by their
reference, measured, chosen and remembered like any others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from jitkernels.attrs.base import KernelAttr, Tolerance, custom
from jitkernels.checksums import sha256
from jitkernels.errors import AttrError
from jitkernels.kernel_types import KernelType
from jitkernels.signature import AnyArray


class Expression(Protocol):
    """What a fused row computes: made, and understood, by the graph compiler."""

    text: str
    title: str
    traced: str
    arrays: tuple[Any, ...]
    symbols: tuple[str, ...]
    along: str
    unroll: int

    def reason_against(self, sizes: Mapping[str, int]) -> str: ...
    def run(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> None: ...
    def largest(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> float: ...
    def operations(self, sizes: Mapping[str, int]) -> float: ...
    def body(self, vector_bytes: int, unroll: int, stream: bool) -> str: ...


def text(value: Any) -> str:
    """The text of an expression itself. Raises TypeError if it is none."""
    if type(value) is not str:
        raise TypeError(f"expected the text of an expression, got {value!r}")
    return value


class FusedAttr(KernelAttr):
    """The outputs of an expression: its text says node by node what is computed, of which types and extents."""

    expression: str = custom(text)
    computes: ClassVar[Expression]
    kernel_type = KernelType.unlisted("FUSED")

    @staticmethod
    def row(computes: Expression) -> "type[FusedAttr]":
        """The row of an expression, whose fields are its symbols."""
        content = {
            "__doc__": computes.text,
            "__module__": __name__,
            "__annotations__": {"expression": str, **dict.fromkeys(computes.symbols, int)},
            "expression": custom(text, default=computes.text),
            "computes": computes,
            "arrays": computes.arrays,
        }
        return type("FusedAttr", (FusedAttr,), content)

    def __post_init__(self) -> None:
        super().__post_init__()
        reason = self.computes.reason_against(self.extents())
        if reason:
            raise AttrError(f"FusedAttr: {reason}")

    def tuning_class(self) -> Self:
        """Extents at the next power of two, if the code is for these."""
        try:
            return super().tuning_class()
        except AttrError:
            return self

    def text(self) -> str:
        """What is computed, in short, and of which sizes."""
        sizes = "".join(f", {name}={value}" for name, value in self.extents().items())
        return f"{self.computes.title} #{sha256(self.expression.encode()).hexdigest()[:8]}{sizes}"

    def tolerance(self) -> Tolerance:
        """Every operation rounds, and what is lost is relative to the largest number on the way."""
        return Tolerance(ulp=64, terms=64)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The largest number that is met on the way to any element."""
        largest = self.computes.largest(arrays, self.extents())
        return [np.full(array.shape, largest) for array in self.signature().outputs]

    def operations(self) -> float:
        return self.computes.operations(self.extents())


FusedAttr.implemented_as = FusedAttr
