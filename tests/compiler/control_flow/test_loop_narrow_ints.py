"""Ints of loops combined with narrower NumPy ints: NumPy serves those out of range, and raises."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given

DTYPES = ("int8", "uint8", "int32", "uint16", "uint64", "int64", "float32", "bool")


def _stored(a: Any, o: Any, low: int) -> Any:
    for i in range(len(o)):
        o[i] = i * 30 + low
    return o


def _of_elements(a: Any, o: Any, low: int) -> Any:
    for i in range(len(o)):
        o[i] = a[i] * 40 + low
    return o


def _of_floats(a: Any, o: Any, low: int) -> Any:
    for i in range(len(o)):
        o[i] = float(a[i]) * 1.5 + low
    return o


def _whole(a: Any, o: Any, low: int) -> Any:
    o[2:4] = a[3] * 40 + low
    o[:2] = a[4]
    return o


def _beside(a: Any, o: Any, low: int) -> Any:
    return [o[i] + (i + low) for i in range(len(o))]


def _of_ints(a: Any, o: Any, low: int) -> Any:
    return [int(a[i]) * 30 * o[i] for i in range(len(o))]


def _compared(a: Any, o: Any, low: int) -> Any:
    found = 0
    for i in range(len(o)):
        if o[i] > i - 5 + low:
            found += 1
        if i * 50 != o[i]:
            found += 100
    return found


FUNCTIONS = [_stored, _of_elements, _of_floats, _whole, _beside, _of_ints, _compared]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_overflowing_ints_match_numpy(function: Callable[..., Any]) -> None:
    for dtype in DTYPES:
        for low in (0, -3):
            o = array(12, dtype="i8").astype(dtype)
            a = np.arange(12) % 7
            if dtype == "bool" and function in (_stored, _of_floats):
                continue
            with np.errstate(over="ignore"):
                agree(function, lambda a=a: a.copy(), lambda o=o: o.copy(), given(low), calls=2)  # type: ignore[misc]


def test_index_errors_have_numpys_message() -> None:
    def message_of(a: Any, at: int) -> Any:
        try:
            return a[0, at]
        except IndexError as error:
            return str(error)

    for at in (9, -9):
        agree(message_of, given(np.ones((2, 3))), given(at), plain=True)


def test_sign_of_negative_zero_is_positive() -> None:
    def signs(x: Any) -> Any:
        return np.copysign(1.0, np.sign(x) * 1)

    agree(signs, given(np.array([0.0, -0.0, np.nan, -2.0] * 5)))
