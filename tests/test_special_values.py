"""NaN, infinities, signed zeros, subnormals and the ends of the range come out as mathematics has them."""

from collections.abc import Iterable

import cases
import oracles
import pytest
from cases import Failures, Row

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.registry import implementations


@pytest.mark.parametrize("row", cases.every_row())
def test_special_values(row: Row) -> None:
    """At the middle size, for every value of every flag, choice and float."""
    middles = [attr for name in implementations(row) for attr in cases.middles_in_scope(row, name)]
    _check(row, dict.fromkeys(other for attr in middles for other in testing.flags(attr)), alone=True)


@pytest.mark.parametrize("row", cases.every_row())
def test_special_values_in_long_arrays(row: Row) -> None:
    """At the largest "ci" size, where unrolled loops and the code paths of libraries for long vectors run."""
    found = [
        [attr for attr in cases.in_scope(row, name) if attr.fields()["dtype"] == dtype]
        for name in implementations(row)
        for dtype in ("float32", "float64")
    ]
    _check(row, dict.fromkeys(max(attrs, key=_size) for attrs in found if attrs), alone=False)


def _check(row: Row, attrs: Iterable[KernelAttr], *, alone: bool) -> None:
    """All implementations of one attr after the other: the truth is the same for them."""
    failures = Failures()
    for attr, callables in cases.together(row, list(attrs)):
        for label, function in callables.items():
            with failures.gathered():
                assert testing.check_special_values(
                    attr, function, oracles.expected, label=label, alone=alone
                )
    failures.tell()


def _size(attr: KernelAttr) -> int:
    return sum(array.nbytes for array in attr.signature().arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_special(dtype: str) -> None:
    """The list itself: both zeros, both infinities, NaN, subnormals of both signs, no duplicates lost."""
    values = testing.special_values(dtype)
    assert values.dtype == dtype
    texts = {repr(float(value)) for value in values}
    assert {"nan", "inf", "-inf", "0.0", "-0.0"} <= texts
    assert len(texts) > 30
