"""NaN, infinities, signed zeros, subnormals and the limits of the range give the mathematical results."""

from collections.abc import Callable, Mapping

import cases
import numpy as np
import oracles
import pytest
from cases import Failures, Row

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementations
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import bfloat16
from jitkernels.tools import testing

KINDS: dict[str, Callable[[AnyArray, str], object]] = {
    "positive": lambda v, _: (v > 0).all(),
    "negative": lambda v, _: (v < 0).all(),
    "constant": lambda v, _: (v == v.flat[0]).all() and v.flat[0] != 0,
    "zero": lambda v, _: (v == 0).all(),
    "far from zero": lambda v, _: np.abs(v).min() > 50 and np.ptp(v) < 20,
    "tiny": lambda v, dtype: 0 < np.abs(v).max() < 1e6 * float(bfloat16.limits(dtype).tiny),
    "huge": lambda v, dtype: np.isfinite(v).all() and np.abs(v).max() > float(bfloat16.limits(dtype).max) ** 0.3,
    "ties": lambda v, _: len(np.unique(v)) == 3 < v.size // 2,
    "peak": lambda v, _: np.isfinite(v).all() and np.abs(v).max() > 100 * np.median(np.abs(v)),
    "NaN": lambda v, _: np.isnan(v).any(),
    "infinity": lambda v, _: np.isinf(v).any(),
    "negative zero": lambda v, _: ((v == 0) & np.signbit(v)).any(),
    "subnormal": lambda v, dtype: ((v != 0) & (np.abs(v) < float(bfloat16.limits(dtype).tiny))).any(),
}
"""What arrays of floats hold in some call of each row's tests; the first two as far as the domain goes."""
MANY = 8
"""Elements that an array needs for ties, or for a peak."""


ALONE = 3
"""Beside the middle attrs, one in so many has each value alone; another one in the next row."""


@pytest.mark.parametrize("row", cases.every_row())
def test_special_values(row: Row) -> None:
    """At the middle size, for every value of every flag, choice and float; each value alone for some of them."""
    middles = [attr for name in implementations(row) for attr in cases.middles_in_scope(row, name)]
    first = cases.middles(row)[0].fields()["dtype"]
    turn = all_schemas().index(row)
    _check(
        row,
        {
            other: other in middles or (other.fields()["dtype"] == first and (number + turn) % ALONE == 0)
            for attr in dict.fromkeys(middles)
            for number, other in enumerate(testing.flags(attr))
        },
    )


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_each_special_value_of_every_dtype(row: Row) -> None:
    middles = [attr for name in implementations(row) for attr in cases.middles_in_scope(row, name)]
    _check(row, {other: True for attr in middles for other in testing.flags(attr)})


@pytest.mark.parametrize("row", cases.every_row())
def test_special_values_in_long_arrays(row: Row) -> None:
    """At the largest "ci" size, where unrolled loops and the code paths of libraries for long vectors run."""
    found = [
        [attr for attr in cases.in_scope(row, name) if attr.fields()["dtype"] == dtype]
        for name in implementations(row)
        for dtype in ("float32", "float64")
    ]
    _check(row, {max(attrs, key=_size): False for attrs in found if attrs})


@pytest.mark.parametrize("row", cases.every_row())
def test_drawn_data_contains_every_kind_of_value(row: Row) -> None:
    """Look for each kind in each array of floats that the tests of values and special values draw."""
    attr = cases.middles(row)[0]
    drawn = [testing.data.sample(attr, fill) for fill in testing.kinds(attr).values()]
    drawn += testing.data.with_special_values(attr, alone=True)
    for place, parameter in enumerate(attr.signature().arrays):
        if parameter.role == "out" or not parameter.is_float or not parameter.nbytes:
            continue
        values = [parameter.numbers(arrays[place]) for arrays in drawn]
        lacking = {"negative"} if parameter.domain[0] >= 0 else set()
        lacking |= {"ties", "peak"} if values[0].size < MANY else set()
        with np.errstate(all="ignore"):
            missing = {k for k, has in KINDS.items() if not any(has(v, parameter.dtype) for v in values)}
        assert not missing - lacking, f"{parameter.name}: {missing}"


def _check(row: Row, attrs: Mapping[KernelAttr, bool]) -> None:
    """All implementations of one attr after the other: the truth is the same for them. Values come `alone` too."""
    failures = Failures()
    for attr, callables in cases.together(row, list(attrs)):
        for label, function in callables.items():
            with failures.gathered():
                assert testing.check_special_values(attr, function, oracles.expected, label=label, alone=attrs[attr])
    failures.tell()


def _size(attr: KernelAttr) -> int:
    return sum(array.nbytes for array in attr.signature().arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_complete(dtype: str) -> None:
    """Both zeros, both infinities, NaN and subnormals of both signs are in the list, without duplicates."""
    values = testing.special_values(dtype)
    assert values.dtype == dtype
    texts = {repr(float(value)) for value in values}
    assert {"nan", "inf", "-inf", "0.0", "-0.0"} <= texts
    assert len(texts) > 30
