"""What is right for the arrays of one call, computed once however many kernels are compared with it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels import accuracy
from jitkernels.attrs.base import KernelAttr
from jitkernels.registry import implementation
from jitkernels.signature import AnyArray

Oracle = Callable[[KernelAttr, Sequence[AnyArray]], Sequence[AnyArray]]
"""The true outputs of an attr for the arrays of one call; an inout array still holds its input."""


def upcast_reference(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """The outputs of ``refer`` computed in long double: the oracle of rows that bring none of their own."""
    held = [p.numbers(a) for p, a in zip(attr.signature().arrays, arrays, strict=True)]
    wide = [a.astype(np.longdouble) if a.dtype.kind == "f" else a.copy() for a in held]
    implementation(type(attr), "refer").function(attr, *attr.signature().as_declared(wide))
    return [a for a, parameter in zip(wide, attr.signature().arrays, strict=True) if parameter.output]


class Truth:
    """The true outputs for some arrays, and how near to them the row promises to be.

    `arrays` are those of the call, as they were before it; they are kept, and must not change.
    """

    def __init__(
        self, attr: KernelAttr, arrays: Sequence[AnyArray], expected: Sequence[AnyArray], slack: float = 1
    ) -> None:
        self.signature = attr.signature()
        self.arrays = arrays
        self.expected = expected
        self.distances = accuracy.allowed(attr, arrays, expected, slack)

    @classmethod
    def by(cls, oracle: Oracle, attr: KernelAttr, arrays: Sequence[AnyArray], slack: float = 1) -> "Truth":
        """What an oracle, which may write to what it is given, says of some arrays."""
        with np.errstate(all="ignore"):
            expected = oracle(attr, [array.copy() for array in arrays])
        return cls(attr, arrays, expected, slack)

    def outputs(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        """The outputs among the arrays of a call."""
        return [array for array, p in zip(arrays, self.signature.arrays, strict=True) if p.output]

    def assert_right(self, after: Sequence[AnyArray], label: str) -> None:
        """The arrays after the call: inputs as before, outputs close."""
        for parameter, array, old in zip(self.signature.arrays, after, self.arrays, strict=True):
            unchanged = parameter.output or array.tobytes() == old.tobytes()
            assert unchanged, f"{label} changed its input {parameter.name}"
        self.assert_close(self.outputs(after), label)

    def assert_close(self, outputs: Sequence[AnyArray], label: str) -> None:
        """Every element of every output is as near to the true value as the row promises for these arrays."""
        parameters = self.signature.outputs
        results = zip(parameters, outputs, self.expected, self.distances, strict=True)
        for parameter, held, right, distance in results:
            got = parameter.numbers(held)
            assert got.shape == right.shape, (
                f"{label}: the oracle gives {parameter.name} the shape {right.shape}"
            )
            off = accuracy.beyond(got, right, distance)
            if off.any():
                at: Any = tuple(int(i) for i in np.argwhere(off)[0])
                raise AssertionError(
                    f"{label}: {parameter.name}{list(at)} is {got[at]!r}, expected {right[at]!r} within "
                    f"{float(distance[at]):.3g}; {int(off.sum())} of {off.size} elements are off"
                )


def assert_close(
    attr: KernelAttr,
    arrays: Sequence[AnyArray],
    outputs: Sequence[AnyArray],
    expected: Sequence[AnyArray],
    label: str,
    slack: float = 1,
) -> None:
    """Every element of every output is as near to the true value as the row promises for these arrays."""
    Truth(attr, arrays, expected, slack).assert_close(outputs, label)
