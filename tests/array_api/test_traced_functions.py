"""Functions of `jk.xp` in what `jk.jit` traces are NumPy's functions of the same meaning."""

import warnings
from typing import Any

import numpy as np
import pytest
from array_api_cases import CASES, Case, case, operands_of, same, x34

import jitkernels as jk
from jitkernels.xp import elementwise_functions, statistical_functions

xp = jk.xp
NUMPY = {"std", "var"}
"""Reductions that run between compiled parts, as NumPy's do for a `correction` that is no int."""
LIKE = ("empty_like", "full_like", "ones_like", "zeros_like")


def compiled(function: Any, of: Case, **options: Any) -> Any:
    """The result of a function in a trace of the arrays among the arguments."""
    arrays = [one for one in of.arguments if type(one) is np.ndarray]

    def called(*given: Any) -> Any:
        left = iter(given)
        arguments = [next(left) if type(one) is np.ndarray else one for one in of.arguments]
        return function(*arguments, **of.keywords)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jk.jit(called, **options)(*arrays)


@pytest.mark.parametrize("name", sorted(elementwise_functions.UFUNCS))
def test_elementwise_functions_are_compiled(name: str) -> None:
    ufunc = elementwise_functions.UFUNCS[name]
    for sample in (np.array([0.25, 0.5, 0.75]), np.array([1, 2, 3]), np.array([0.5 + 1j, -2 + 0.25j, 3j])):
        of = case(*operands_of(name, sample, ufunc.nin))
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(*of.arguments)
            except TypeError:
                continue
        # NumPy's functions of a few complex and integral arguments run between compiled parts.
        found = compiled(getattr(xp, name), of, strict=sample.dtype.kind == "f")
        assert sample.dtype.kind != "f" or type(found) is np.ndarray
        same(xp.asarray(found), expected, 64)


@pytest.mark.parametrize("name", sorted({*statistical_functions.FUSED} - NUMPY))
@pytest.mark.parametrize("keywords", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}])
def test_reductions_are_compiled(name: str, keywords: dict[str, Any]) -> None:
    found = compiled(getattr(xp, name), case(x34, **keywords), strict=True)
    assert not isinstance(found, xp.Array)
    same(xp.asarray(found), getattr(np, name)(x34, **keywords), 64)


def _function(name: str) -> Any:
    folder, _, own = name.rpartition(".")
    return getattr(getattr(xp, folder) if folder else xp, own)


@pytest.mark.parametrize("name", sorted(name for name in CASES if name not in LIKE))
def test_other_functions_have_the_same_values(name: str) -> None:
    for of in CASES[name]:
        if not any(type(one) is np.ndarray for one in of.arguments):
            continue
        expected = _function(name)(*[xp.asarray(one) if type(one) is np.ndarray else one for one in of.arguments],
            **of.keywords)  # fmt: skip
        _same(compiled(_function(name), of), expected, of.tolerance)


def _same(found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _same(one, other, tolerance)
    elif isinstance(expected, xp.Array):
        same(xp.asarray(found), np.asarray(expected), tolerance)
    else:
        assert found == expected


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("dtype", [None, np.int32])
def test_arrays_like_traced_ones(name: str, dtype: Any) -> None:
    arguments = (x34, 2) if name == "full_like" else (x34,)
    found = compiled(getattr(xp, name), case(*arguments, dtype=dtype), strict=True)
    assert type(found) is np.ndarray
    assert found.shape == x34.shape
    assert found.dtype == (x34.dtype if dtype is None else dtype)
    if name != "empty_like":
        np.testing.assert_array_equal(found, getattr(np, name)(*arguments, dtype=dtype))


def test_choices_casts_and_conversions_are_compiled() -> None:
    def function(x: Any, y: Any) -> Any:
        chosen = xp.where(xp.isfinite(x), xp.round(x), xp.clip(y, 0.0, 1.0))
        return xp.astype(chosen, xp.float32), xp.asarray(chosen), xp.asarray(chosen, dtype=xp.int64)

    x, y = np.array([1.5, np.inf, -0.4]), np.array([0.1, 7.0, 0.3])
    found = jk.jit(function, strict=True)(x, y)
    expected = np.where(np.isfinite(x), np.round(x), np.clip(y, 0.0, 1.0))
    for one, dtype in zip(found, (np.float32, np.float64, np.int64), strict=True):
        assert type(one) is np.ndarray
        np.testing.assert_array_equal(one, expected.astype(dtype), strict=True)
