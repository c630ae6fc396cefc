"""The expected outputs for the arrays of one call, computed once for all compared kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray

Oracle = Callable[[KernelAttr, Sequence[AnyArray]], Sequence[AnyArray]]
"""Computes the true outputs of an attr for the arrays of one call; an inout array still holds its input."""


def upcast_reference(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Return the outputs of ``refer`` computed in long double: the oracle of schemas that define none."""
    held = [p.numbers(a) for p, a in zip(attr.signature().arrays, arrays, strict=True)]
    wide = [a.astype(np.longdouble) if a.dtype.kind == "f" else a.copy() for a in held]
    implementation(type(attr), "refer").function(attr, *attr.signature().as_declared(wide))
    return [a for a, parameter in zip(wide, attr.signature().arrays, strict=True) if parameter.output]


class Truth:
    """The expected outputs for some arrays, and the schema's error bounds for them.

    `arrays` are those of the call, as they were before it; they are stored by reference, and must not change.
    """

    def __init__(
        self, attr: KernelAttr, arrays: Sequence[AnyArray], expected: Sequence[AnyArray], slack: float = 1
    ) -> None:
        self.signature = attr.signature()
        self.arrays = arrays
        self.expected = expected
        self.distances = error_bounds.allowed(attr, arrays, expected, slack)

    @classmethod
    def by(cls, oracle: Oracle, attr: KernelAttr, arrays: Sequence[AnyArray], slack: float = 1) -> "Truth":
        """Return the expected outputs of an oracle, which may write to its arguments, for some arrays."""
        with np.errstate(all="ignore"):
            expected = oracle(attr, [array.copy() for array in arrays])
        return cls(attr, arrays, expected, slack)

    def outputs(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        """Return the outputs among the arrays of a call."""
        return [array for array, p in zip(arrays, self.signature.arrays, strict=True) if p.output]

    def assert_right(self, after: Sequence[AnyArray], label: str) -> None:
        """Check the arrays after the call: inputs unchanged, outputs within the schema's error bounds."""
        for parameter, array, old in zip(self.signature.arrays, after, self.arrays, strict=True):
            unchanged = parameter.output or array.tobytes() == old.tobytes()
            assert unchanged, f"{label} changed its input {parameter.name}"
        self.assert_close(self.outputs(after), label)

    def assert_close(self, outputs: Sequence[AnyArray], label: str) -> None:
        """Check that every element of every output is within the schema's error bound for these arrays."""
        parameters = self.signature.outputs
        results = zip(parameters, outputs, self.expected, self.distances, strict=True)
        for parameter, held, right, distance in results:
            got = parameter.numbers(held)
            assert got.shape == right.shape, f"{label}: the oracle gives {parameter.name} the shape {right.shape}"
            off = error_bounds.beyond(got, right, distance)
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
    """Check that every element of every output is within the schema's error bound for these arrays."""
    Truth(attr, arrays, expected, slack).assert_close(outputs, label)
