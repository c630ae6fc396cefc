"""Statistics that leave out NaN, and quantiles: compiled, with NumPy's values, dtypes, errors and warnings."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

REDUCTIONS = [np.nanmean, np.nanvar, np.nanstd, np.nanmin, np.nanmax, np.nanmedian, np.nanargmin, np.nanargmax]
QUANTILES = [np.quantile, np.percentile, np.nanquantile, np.nanpercentile]


def array(shape: tuple[int, ...], dtype: str, holes: float) -> Any:
    rng = np.random.default_rng(5)
    result = (rng.standard_normal(shape) * 20).astype(dtype)
    if np.dtype(dtype).kind == "f":
        result[rng.random(shape) < holes] = np.nan
    return result


def outcome(function: Callable[..., Any], *arguments: Any) -> tuple[Any, set[str]]:
    """The result of a call, or the exception that it raises, and the warnings that it issues."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except ValueError as error:
            result = str(error)
    return result, {str(one.message) for one in issued}


def check(function: Callable[..., Any], *arguments: Any) -> None:
    compiled = jk.jit(function, strict=True)
    (got, own), (expected, issued) = outcome(compiled, *arguments), outcome(function, *arguments)
    assert own == issued
    if isinstance(expected, str):
        assert got == expected
        return
    assert (type(got), got.dtype, got.shape) == (type(expected), expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-5 if expected.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("holes", [0.0, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda one: one.__name__)
def test_reductions(function: Any, axis: Any, holes: float) -> None:
    if isinstance(axis, tuple) and "arg" in function.__name__:
        axis = -1
    check(lambda x: function(x, axis=axis), array((7, 5), "float64", holes))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
@pytest.mark.parametrize("function", REDUCTIONS[:-2], ids=lambda one: one.__name__)
def test_dtypes(function: Any, dtype: str) -> None:
    check(lambda x: function(x, axis=0), array((9, 3), dtype, 0.2))


@pytest.mark.parametrize("ddof", [1, 2, 5])
def test_degrees_of_freedom(ddof: int) -> None:
    x = array((4, 3), "float64", 0.0)
    x[2:, 1] = np.nan
    check(lambda x: np.nanvar(x, axis=0, ddof=ddof), x)
    check(lambda x: np.nanstd(x, axis=0, ddof=ddof, keepdims=True), x)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (300,), (20, 9), (9, 20)])
@pytest.mark.parametrize("holes", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("function", QUANTILES, ids=lambda one: one.__name__)
def test_quantiles(function: Any, shape: tuple[int, ...], holes: float) -> None:
    x = array(shape, "float64", holes)
    whole = 100.0 if "percentile" in function.__name__ else 1.0
    for q in (0.3, 0.0, 0.5, 1.0, 0.77):
        check(lambda x, q: function(x, q), x, q * whole)
        check(lambda x: function(x, q * whole, axis=-1, keepdims=True), x)  # noqa: B023  # called at once
    check(lambda x: function(x, [0.25 * whole, 0.9 * whole]), x)


@pytest.mark.parametrize("function", QUANTILES, ids=lambda one: one.__name__)
def test_quantiles_of_ints(function: Any) -> None:
    x = array((40, 3), "int64", 0.0)
    for q in (0.3, 0.5):
        check(lambda x, q: function(x, q, axis=0), x, q)


@pytest.mark.parametrize("q", [1.5, -0.1, np.nan])
def test_quantiles_out_of_range(q: float) -> None:
    compiled = jk.jit(lambda x, q: np.quantile(x, q))
    compiled(np.arange(5.0), 0.5)
    with pytest.raises(ValueError, match="Quantiles must be in the range"):
        compiled(np.arange(5.0), q)


def test_within_loops() -> None:
    """Of windows, whose statistics NumPy would compute one by one."""

    def run(x: Any, width: int) -> Any:
        result = np.zeros((len(x) - width, 6))
        for i in range(len(x) - width):
            window = x[i : i + width]
            result[i, 0] = np.nanmean(window)
            result[i, 1] = np.nanstd(window)
            result[i, 2] = np.nanmedian(window)
            result[i, 3] = np.nanmax(window) - np.nanmin(window)
            result[i, 4] = np.quantile(window, 0.3)
            result[i, 5] = np.nanpercentile(window, 70)
        return result

    x = array((60,), "float64", 0.2)
    compiled = jk.jit(run, strict=True)
    for width in (9, 16):
        np.testing.assert_allclose(compiled(x, width), run(x, width), rtol=1e-12)
    assert "0 calls of NumPy" in str(compiled.explain())
