"""Compiled functions under `numpy.errstate`: where NumPy is to raise or to call, it does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.native import floating_errors

Array = np.ndarray[Any, Any]


def inverse(x: Array) -> Array:
    return 1 / x


ZEROS = np.zeros(5)


@pytest.fixture
def compiled() -> Callable[[Array], Array]:
    function: Callable[[Array], Array] = jk.jit(inverse)
    for _ in range(3):  # so that calls go without Python
        assert np.isinf(function(ZEROS)).all()
    return function


def test_what_is_to_be_raised_is(compiled: Callable[[Array], Array]) -> None:
    for _ in range(2):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            compiled(ZEROS)
        assert np.isinf(compiled(ZEROS)).all()


def test_what_is_to_be_called_is(compiled: Callable[[Array], Array]) -> None:
    told: list[str] = []
    with np.errstate(divide="call", call=lambda text, flags: told.append(text)):
        assert np.isinf(compiled(ZEROS)).all()
    assert told == ["divide by zero"]


def test_what_is_ignored_runs_as_ever(compiled: Callable[[Array], Array]) -> None:
    plain: Any = compiled
    calls = len(plain._plain_calls)
    with np.errstate(all="ignore"):
        assert not floating_errors.are_told()
        assert np.isinf(compiled(ZEROS)).all()
    assert len(plain._plain_calls) == calls


def test_the_word_of_settings_is_read_right() -> None:
    assert floating_errors.is_word_known()
    with np.errstate(over="raise"):
        assert floating_errors.are_told()
