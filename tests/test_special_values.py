"""NaN, infinities, signed zeros, subnormals and the ends of the range come out as mathematics has them."""

import cases
import oracles
import pytest
from cases import Failures, Row

from jitkernels import testing


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_special_values(row: Row, name: str) -> None:
    """At the middle size, for every value of every flag, choice and float."""
    failures = Failures()
    changed = [other for attr in cases.middles_in_scope(row, name) for other in testing.flags(attr)]
    for attr in cases.affordable(row, name, changed):
        for label, function in cases.callables_of(attr, name).items():
            with failures.gathered():
                assert testing.check_special_values(attr, function, oracles.expected, label=label)
    failures.tell()


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_special_values_in_long_arrays(row: Row, name: str) -> None:
    """At the largest "ci" size, where unrolled loops and the code paths of libraries for long vectors run."""
    for dtype in ("float32", "float64"):
        attrs = [attr for attr in cases.in_scope(row, name) if attr.fields()["dtype"] == dtype]
        attr = max(attrs, key=lambda attr: sum(array.nbytes for array in attr.signature().arrays))
        for label, function in cases.callables_of(attr, name).items():
            testing.check_special_values(attr, function, oracles.expected, label=label, alone=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_special(dtype: str) -> None:
    """The list itself: both zeros, both infinities, NaN, subnormals of both signs, no duplicates lost."""
    values = testing.special_values(dtype)
    assert values.dtype == dtype
    texts = {repr(float(value)) for value in values}
    assert {"nan", "inf", "-inf", "0.0", "-0.0"} <= texts
    assert len(texts) > 30
