"""Extents of ten million, and of a prime of that magnitude, along each dimension that may be so long.

Where the parts of an extent are independent its arrays repeat themselves after so many elements that no power of two
comes near, and the truth is that of one period. Elsewhere it is computed whole.
"""

from typing import Any

import cases
import numpy as np
import oracles
import parts
import pytest

import jitkernels as jk
from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementations
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.tools import testing
from jitkernels.tools.testing import sizes
from jitkernels.tools.testing.expected import Truth
from jitkernels.tools.testing.guard_pages import Guarded

Row = Any
LENGTHS = (10**7, 9_999_991)
PERIOD = 10_007
MAX_BYTES, MOST_WORK = 400 << 20, 4e9
"""What is not too long to be checked."""


def long_ones(row: Row) -> list[tuple[KernelAttr, str]]:
    """Each extent in turn of either length, the others at most 3, in the first dtype; with the name of the extent."""
    middle = testing.middle(row, "float32")
    names = sizes.integers(middle)
    found: dict[str, KernelAttr] = {}
    for most in (3, 2, 1):
        base = sizes.changed(middle, {name: min(int(getattr(middle, name)), most) for name in names}) or middle
        for place, name in enumerate(names):
            attr = sizes.changed(base, {name: LENGTHS[place % 2]}, MAX_BYTES)
            if attr is not None and attr.operations() <= MOST_WORK:
                found.setdefault(name, attr)
    return [(attr, name) for name, attr in found.items()]


class Periodic:
    """Arrays that repeat themselves along an extent, and their truth."""

    def __init__(self, attr: KernelAttr, name: str) -> None:
        self.attr, self.name, self.extent = attr, name, int(getattr(attr, name))
        self.period = PERIOD if parts.has_independent_slices(attr, name) else self.extent
        short = sizes.changed(attr, {name: self.period})
        assert short is not None, f"{attr} with {name} of {self.period}"
        self.truth = Truth.by(oracles.expected, short, short.signature().sample(0))
        self.short = short

    def arrays(self) -> list[AnyArray]:
        if self.period == self.extent:
            return [array.copy() for array in self.truth.arrays]
        found = [np.empty(p.shape, p.numpy) for p in self.attr.signature().arrays]
        for start in range(0, self.extent, self.period):
            for whole, own in zip(self.of(found, start), self.of(self.truth.arrays, None), strict=True):
                whole[...] = own[tuple(slice(0, extent) for extent in whole.shape)]
        return found

    def of(self, arrays: Any, start: int | None) -> list[AnyArray]:
        """A period of the arrays that begins somewhere, of those of one period all."""
        attr = self.short if start is None else self.attr
        begin, end = (0, self.period) if start is None else (start, min(start + self.period, self.extent))
        arguments = parts.arguments_of(attr)
        return [parts.part(a, one, attr, self.name, begin, end) for a, one in zip(arrays, arguments, strict=True)]

    def check(self, function: Any, label: str) -> None:
        """Outputs are right, inputs as before, and nothing around the arrays is touched."""
        guarded = [Guarded(array, "end") for array in self.arrays()]
        function(*[guard.array for guard in guarded])
        assert all(guard.intact() for guard in guarded), f"{label} wrote outside an array"
        after = [guard.array for guard in guarded]
        if self.period == self.extent:
            self.truth.assert_right(after, label)
            return
        wanted = iter(zip(self.truth.expected, self.truth.distances, strict=True))
        shapes = [array.shape for array in self.of(self.truth.arrays, None)]
        references: list[Any] = []
        for parameter, before, shape in zip(self.truth.signature.arrays, self.truth.arrays, shapes, strict=True):
            if parameter.output:
                references.append([np.broadcast_to(one, parameter.shape).reshape(shape) for one in next(wanted)])
            else:
                references.append([before.reshape(shape)])
        for start in range(0, self.extent, self.period):
            for parameter, got, right in zip(
                self.truth.signature.arrays, self.of(after, start), references, strict=True
            ):
                cut = [one[tuple(slice(0, extent) for extent in got.shape)] for one in right]
                if parameter.output:
                    off = error_bounds.beyond(parameter.numbers(got), *cut)
                else:
                    off = got.view(f"u{got.itemsize}") != cut[0].view(f"u{got.itemsize}")
                assert not off.any(), f"{label}: {parameter.name} is off {int(off.sum())} times from {start} on"


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_long_extents(row: Row) -> None:
    """Check the selected implementation, and the package's own loops."""
    for attr, name in long_ones(row):
        chosen = {"pick": jk.get_default_best(attr)}
        if "gen" in implementations(row) and "gen" in (all_of := jk.get_all_candidates(attr)):
            chosen["gen"] = all_of["gen"]
        periodic = Periodic(attr, name)
        for label, function in chosen.items():
            periodic.check(function, f"{label}, {attr.text()}")


def test_most_rows_allow_long_extents() -> None:
    """Else the test above would pass for want of attrs."""
    rows = [param.values[0] for param in cases.every_row()]
    assert sum(bool(long_ones(row)) for row in rows[::3]) >= 0.75 * len(rows[::3])
