"""Ten million elements, and a prime number of about as many, along each extent that may be so long."""

from typing import Any

import cases
import oracles
import pytest

import jitkernels as jk
from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.registry import implementations
from jitkernels.testing import sizes

Row = Any
LENGTHS = (10**7, 9_999_991)
MOST_BYTES, MOST_WORK = 400 << 20, 4e9
"""What is not too long to be checked in long double."""


def long_ones(row: Row) -> list[KernelAttr]:
    """Each extent in turn of either length, the others 1 to 3, in the first dtype."""
    base = testing.middle(row, "float32")
    names = sizes.integers(base)
    small = {name: min(int(getattr(base, name)), 3) for name in names}
    base = sizes.changed(base, small) or sizes.changed(base, dict.fromkeys(names, 1)) or base
    found = []
    for place, name in enumerate(names):
        attr = sizes.changed(base, {name: LENGTHS[place % 2]}, MOST_BYTES)
        if attr is not None and attr.operations() <= MOST_WORK:
            found.append(attr)
    return found


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_ten_million(row: Row) -> None:
    """What is picked, and the loops of our own."""
    for attr in long_ones(row):
        chosen = {"pick": jk.get_default_best(attr)}
        if "gen" in implementations(row) and "gen" in (all_of := jk.get_all_candidates(attr)):
            chosen["gen"] = all_of["gen"]
        for label, function in chosen.items():
            testing.checks.check_values(attr, function, oracles.expected, label=f"{label}, {attr.text()}")


def test_most_rows_may_be_long() -> None:
    """Else the test above would pass for want of attrs."""
    rows = [param.values[0] for param in cases.every_row()]
    assert sum(bool(long_ones(row)) for row in rows[::8]) >= 0.75 * len(rows[::8])
