"""Calls beside plain Python: values, dtypes, shapes, exceptions, and what happens to the arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jitted import reasons

import jitkernels as jk
from jitkernels.errors import JitKernelsError

Program = Callable[..., Any]


def copies(given: Sequence[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in given]


def outcome(function: Program, given: Sequence[Any]) -> Any:
    """What a call returns, or the type and text of its exception."""
    try:
        with np.errstate(all="ignore"):
            return function(*given)
    except JitKernelsError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever plain Python raises
        return f"{type(error).__name__}: {error}"


def assert_same(found: Any, expected: Any) -> None:
    """Equal results; sums may be taken in another order, and Python's floats be NumPy's."""
    if isinstance(expected, tuple | list):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
    if isinstance(expected, np.ndarray | np.generic | float | int):
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.dtype == expected.dtype
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if expected.dtype == "float32" else 1e-12, atol=1e-13)
    else:
        assert found == expected


def check(function: Program, calls: Sequence[Sequence[Any]], *, backend: str = "native") -> Any:
    """Compare all calls with plain Python; returns the compiled function. The first call must not fall back."""
    compiled = jk.jit(function, backend=backend)
    for number, given in enumerate(calls):
        own, other = copies(given), copies(given)
        expected = outcome(function, other)
        assert_same(outcome(compiled, own), expected)
        for one, two in zip(own, other, strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_allclose(one, two, rtol=1e-12, err_msg=f"argument of call {number}")
        assert number or not reasons(compiled), reasons(compiled)
    return compiled
