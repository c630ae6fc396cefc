"""Stores under a condition in innermost loops: which become stores of every iteration, and that values are NumPy's."""

import warnings
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.transforms.store_if_conversion import convert_conditional_stores


def shortest(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def clipped(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 1.0:
            x[i] = 1.0
    return x


def either(x: Any, y: Any) -> Any:
    """Both sides store, so that nothing need be read."""
    out = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] < y[i]:
            out[i] = -x[i]
        else:
            out[i] = abs(y[i])
    return out


def nested(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] != 0:  # noqa: SIM102  # a branch in a branch
            if x[i] < 0:
                x[i] = -x[i]
    return x


def otherwise(x: Any, limit: Any) -> Any:
    for i in range(1, len(x)):
        if x[i - 1] <= limit:
            pass
        else:
            x[i - 1] = limit
    return x


def ints(x: Any) -> Any:
    for i in range(len(x) - 1, -1, -1):
        if x[i] > 3:
            x[i] = x[i] - 5
    return x


def twice(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 1:
            x[i] = 1
        if x[i] < -1:
            x[i] = -1
    return x


def divided(x: Any) -> Any:
    """A quotient sets floating-point flags: it is computed where it is wanted only."""
    for i in range(len(x)):
        if x[i] != 0:
            x[i] = 1 / x[i]
    return x


def previous(x: Any) -> Any:
    """Iterations depend on one another."""
    for i in range(1, len(x)):
        if x[i - 1] > x[i]:
            x[i] = x[i - 1]
    return x


def elsewhere(x: Any, at: Any) -> Any:
    """Other elements are read, some of them behind the end: only the condition says that there are such."""
    for i in range(len(x)):
        if at[i] < len(x):
            x[i] = x[at[i]]
    return x


CONVERTED = {shortest, clipped, either, otherwise, ints, twice}
FLOATS = np.array([0.5, -0.0, np.nan, 2.5, np.inf, -np.inf, 1.0, -3.0, 0.0, 1e300, -1e-310, 7.0, -2.0])


def floats(n: int) -> Any:
    return np.resize(FLOATS, n)


def arguments(function: Any, n: int) -> tuple[Any, ...]:
    random = np.random.default_rng(n)
    match function.__name__:
        case "shortest":
            weights = np.where(random.random((n, n)) < 0.4, random.random((n, n)), np.inf)
            weights[random.random((n, n)) < 0.05] = np.nan
            return (weights,)
        case "either":
            return floats(n), floats(n)[::-1].copy()
        case "otherwise":
            return floats(n), 1.5
        case "ints":
            return (random.integers(-9, 9, n),)
        case "elsewhere":
            return random.random(n), random.integers(0, n + 3, n)
    return (floats(n),)


FUNCTIONS = (shortest, clipped, either, nested, otherwise, ints, twice, divided, previous, elsewhere)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_values(function: Any, n: int) -> None:
    compiled = jk.jit(function, strict=True)
    with np.errstate(all="ignore"):
        expected = function(*arguments(function, n))
    np.testing.assert_array_equal(compiled(*arguments(function, n)), expected)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_which_are_converted(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def noted(graph: Any) -> Any:
        result = convert_conditional_stores(graph)
        found.append(result.roots != graph.roots)
        return result

    monkeypatch.setattr("jitkernels.compiler.lowering.lower_graph.convert_conditional_stores", noted)
    jk.jit(function, strict=True)(*arguments(function, 7))
    assert any(found) == (function in CONVERTED)


def test_no_warning_of_what_is_not_wanted() -> None:
    compiled = jk.jit(divided, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(compiled(np.array([0.0, 2.0, 0.0])), [0.0, 0.5, 0.0])


def eliminated(a: Any) -> Any:
    """Rows of one array, of which LLVM does not know that they are apart."""
    n = len(a)
    for k in range(n):
        for i in range(n):
            if i != k:
                f = a[i, k] / a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= f * a[k, j]
    return a


def shifted(a: Any) -> Any:
    """Rows of one array, of which iterations read what others write."""
    n = len(a)
    for k in range(n):
        for i in range(n):
            for j in range(1, n):
                a[i, j] = a[i, j] + 0.5 * a[k, j - 1]
    return a


def reread(a: Any) -> Any:
    """An element of the row that is written, in a column that moves."""
    n = len(a)
    for i in range(n):
        for j in range(n):
            a[i, j] = a[i, j] + a[i, n // 2]
    return a


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("function", [eliminated, shifted, reread], ids=lambda function: function.__name__)
def test_rows_of_one_array(function: Any, n: int) -> None:
    a = np.random.default_rng(n).random((n, n)) + n * np.eye(n)
    compiled = jk.jit(function, strict=True)
    np.testing.assert_allclose(compiled(a.copy()), function(a.copy()), rtol=1e-12)
