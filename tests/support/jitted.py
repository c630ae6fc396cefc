"""Run functions in NumPy and compiled: results and arguments must be equal, types and identities included."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

TOLERANCE = {np.dtype("f2"): 1e-2, np.dtype("f4"): 2e-5, np.dtype("f8"): 1e-10}
"""Sums may be reordered, and multiply-adds contracted."""


def array(*shape: int, dtype: str = "f8", seed: int = 1) -> Any:
    """Return numbers from -2 to 6, or those of them that the type has."""
    return (np.random.default_rng(seed).random(shape) * 8 - (0 if dtype[0] == "u" else 2)).astype(dtype)


def given(value: Any) -> Callable[[], Any]:
    """Return a factory of an argument that is always the same."""
    return lambda: value


def reasons(function: Any) -> list[str]:
    """Return why calls fell back to NumPy."""
    reasons_of_variants = [
        variant.reason for variants in function._specializations.values() for variant in variants if variant.reason
    ]
    return [*reasons_of_variants, *function._fallbacks]


def notes(function: Any) -> list[str]:
    """Return the notes that tracing the function recorded."""
    return [note for variants in function._specializations.values() for variant in variants for note in variant.notes]


def agree(
    function: Callable[..., Any], *make: Callable[[], Any], plain: bool = False, calls: int = 3, **config: Any
) -> Any:
    """Compare a function with its compiled form, with new arguments for each call; return the compiled form.

    `plain`: whether it must fall back to NumPy.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):  # else small arrays fall back
            patch.setattr(specialization, name, 0.0)
        return _agree(jk.jit(function, **config), function, make, plain, calls)


def _agree(
    compiled: Any, function: Callable[..., Any], make: Sequence[Callable[[], Any]], plain: bool, calls: int
) -> Any:
    expected_arguments = [make_argument() for make_argument in make]
    raised: Exception | None = None
    expected: Any = None
    try:
        expected = function(*expected_arguments)
    except Exception as error:  # noqa: BLE001  # whatever the function raises
        raised = error
    for _ in range(calls):
        arguments = [make_argument() for make_argument in make]
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


def same(result: Any, expected: Any) -> None:
    """Fail where structure, type, dtype, shape or value differ."""
    assert type(result) is type(expected), (type(result), type(expected))
    if isinstance(expected, list | tuple):
        assert len(result) == len(expected)
        for got, want in zip(result, expected, strict=True):
            same(got, want)
    elif isinstance(expected, dict):
        assert list(result) == list(expected)
        for name, value in expected.items():
            same(result[name], value)
    elif isinstance(expected, np.ndarray | np.generic):
        right: Any = expected
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        tolerance = TOLERANCE.get(expected.dtype, 0)
        if tolerance:
            np.testing.assert_allclose(result, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            np.testing.assert_array_equal(result, expected)
        if isinstance(expected, np.ndarray):
            assert result.flags.writeable == expected.flags.writeable
    elif is_dataclass(expected) and not isinstance(expected, type):
        for field in fields(expected):
            same(getattr(result, field.name), getattr(expected, field.name))
    elif isinstance(expected, float):
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    else:
        assert result == expected


def arrays(value: Any) -> list[Any]:
    """Yield the arrays in nested tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [array for item in value for array in arrays(item)] if isinstance(value, list | tuple) else []


def identities(result: Any, arguments: Sequence[Any], expected: Any, given: Sequence[Any]) -> None:
    """Fail unless results alias, or are identical to, the same arguments and results as with NumPy."""
    here = [*arrays(result), *arrays(list(arguments))]
    there = [*arrays(expected), *arrays(list(given))]
    for i in range(len(arrays(result))):
        for j in range(i + 1, len(here)):
            assert (here[i] is here[j]) == (there[i] is there[j]), (i, j)
            assert np.shares_memory(here[i], here[j]) == np.shares_memory(there[i], there[j]), (i, j)
