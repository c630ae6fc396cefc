"""FUSED: one loop nest of a compiled function, as a schema that is created when the nest is compiled.

No list contains such schemas, as they have no names. Their attrs are used like all others: computed by their reference,
measured, selected and cached.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr, Tolerance, custom
from jitkernels.attrs.schema.kernel_types import KernelType
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core.hashing import sha256
from jitkernels.errors import AttrError


class Expression(Protocol):
    """The computation of a fused schema: created and interpreted by the compiler."""

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
    """Return the text of an expression. Raises TypeError for any other value."""
    if type(value) is not str:
        raise TypeError(f"expected the text of an expression, got {value!r}")
    return value


class FusedAttr(KernelAttr):
    """The outputs of an expression: its text lists node by node what is computed, with dtypes and extents."""

    expression: str = custom(text)
    computes: ClassVar[Expression]
    kernel_type = KernelType.unlisted("FUSED")

    @staticmethod
    def schema(computes: Expression) -> "type[FusedAttr]":
        """The schema of an expression, whose fields are its symbols."""
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

    def size_class(self) -> Self:
        """Extents at the next power of two, if the code is valid for these."""
        try:
            return super().size_class()
        except AttrError:
            return self

    def text(self) -> str:
        """A short title of the computation, and its sizes."""
        sizes = "".join(f", {name}={value}" for name, value in self.extents().items())
        return f"{self.computes.title} #{sha256(self.expression.encode()).hexdigest()[:8]}{sizes}"

    def tolerance(self) -> Tolerance:
        """Every operation rounds, relative to the largest intermediate."""
        return Tolerance(ulp=64, terms=64)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The largest intermediate of any element."""
        largest = self.computes.largest(arrays, self.extents())
        return [np.full(array.shape, largest) for array in self.signature().outputs]

    def operations(self) -> float:
        return self.computes.operations(self.extents())


FusedAttr.implemented_as = FusedAttr
