"""Functions run by NumPy and compiled: results and arguments must come out the same, types and identities included."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.frontends import specialisation

TOLERANCE = {np.dtype("f2"): 1e-2, np.dtype("f4"): 2e-5, np.dtype("f8"): 1e-10}
"""Sums may be taken in another order, and products added in one step."""


def array(*shape: int, dtype: str = "f8", seed: int = 1) -> Any:
    """Numbers from -2 to 6, or as many of them as the type has."""
    return (np.random.default_rng(seed).random(shape) * 8 - (0 if dtype[0] == "u" else 2)).astype(dtype)


def given(value: Any) -> Callable[[], Any]:
    """What makes an argument that is always the same."""
    return lambda: value


def reasons(function: Any) -> list[str]:
    """Why calls were left to NumPy."""
    made = [one.reason for kept in function._specialisations.values() for one in kept if one.reason]
    return [*made, *function._plain_calls]


def notes(function: Any) -> list[str]:
    """What was noted while the function was traced."""
    return [note for kept in function._specialisations.values() for one in kept for note in one.notes]


def agree(
    function: Callable[..., Any], *make: Callable[[], Any], plain: bool = False, calls: int = 3, **config: Any
) -> Any:
    """Compare a function with itself compiled, for arguments made anew for each call; gives the compiled one.

    `plain`: whether it is one that has to be left to NumPy.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):  # small arrays are what tests are made of
            patch.setattr(specialisation, name, 0.0)
        return _agree(jk.jit(function, **config), function, make, plain, calls)


def _agree(
    compiled: Any, function: Callable[..., Any], make: Sequence[Callable[[], Any]], plain: bool, calls: int
) -> Any:
    expected_arguments = [one() for one in make]
    raised: Exception | None = None
    expected: Any = None
    try:
        expected = function(*expected_arguments)
    except Exception as error:  # noqa: BLE001  # whatever the function raises
        raised = error
    for _ in range(calls):
        arguments = [one() for one in make]
        if raised is not None:
            with pytest.raises(type(raised)) as caught:
                compiled(*arguments)
            assert str(caught.value) == str(raised)
        else:
            result = compiled(*arguments)
            same(result, expected)
            identities(result, arguments, expected, expected_arguments)
        same(arguments, expected_arguments)
    assert not [note for note in notes(compiled) if "compiler failed" in note]
    if raised is None:
        assert bool(reasons(compiled)) == plain, reasons(compiled)
    return compiled


def same(found: Any, expected: Any) -> None:
    """Fail where structure, type, dtype, shape or value differ."""
    assert type(found) is type(expected), (type(found), type(expected))
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            same(found[name], value)
    elif isinstance(expected, np.ndarray | np.generic):
        right: Any = expected
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        tolerance = TOLERANCE.get(expected.dtype, 0)
        if tolerance:
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            np.testing.assert_array_equal(found, expected)
        if isinstance(expected, np.ndarray):
            assert found.flags.writeable == expected.flags.writeable
    elif is_dataclass(expected) and not isinstance(expected, type):
        for field in fields(expected):
            same(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert found == expected


def arrays(value: Any) -> list[Any]:
    """The arrays in nested tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [array for one in value for array in arrays(one)] if isinstance(value, list | tuple) else []


def identities(result: Any, arguments: Sequence[Any], expected: Any, given: Sequence[Any]) -> None:
    """Fail unless results are, or share memory with, the arguments and results that NumPy's do."""
    here = [*arrays(result), *arrays(list(arguments))]
    there = [*arrays(expected), *arrays(list(given))]
    for i in range(len(arrays(result))):
        for j in range(i + 1, len(here)):
            assert (here[i] is here[j]) == (there[i] is there[j]), (i, j)
            assert np.shares_memory(here[i], here[j]) == np.shares_memory(there[i], there[j]), (i, j)
