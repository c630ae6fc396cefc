"""Universal functions of functions of numbers and of rows: `jk.vectorize`, `jk.guvectorize`, and those of numba."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import ArgumentError, ArgumentTypeError, JitKernelsError

rng = np.random.default_rng(7)
GRID = rng.standard_normal((6, 5))


def difference(a: Any, b: Any) -> Any:
    if a > b:
        return a - b
    return a + b


def straight(a: Any, b: Any) -> Any:
    return a * b + 1


def by_math(a: Any, b: Any) -> Any:
    return math.sin(a) + math.hypot(a, b)


def halvings(a: Any, b: Any) -> Any:
    count = 0
    while abs(a) > 1e-3 and count < 30:
        a, count = a * 0.5 * (1 if b > 0 else -1), count + 1
    return count


def both(a: Any, b: Any) -> Any:
    return (a, 2 * b) if a > b else (b, 0 * a)


def larger(a: Any, b: Any) -> Any:
    return max(a, b) + difference(b, a)


def first(a: Any, b: Any) -> Any:
    return a


def constant(a: Any, b: Any) -> Any:
    return 1.0


FUNCTIONS = [difference, straight, by_math, halvings, both, larger, first, constant]
ARGUMENTS = {
    "same": (GRID, GRID[::-1].copy()),
    "row": (GRID, GRID[0]),
    "column": (GRID[:, :1], GRID[0]),
    "number": (GRID, 0.25),
    "strided": (GRID[::2, ::-1], GRID.T[:5:2, :5]),
    "cube": (rng.standard_normal((3, 1, 4)), rng.standard_normal((2, 1))),
    "numbers": (0.5, -2.0),
    "line": (GRID.ravel(), GRID.ravel()[::-1]),
}


def _check(result: Any, expected: Any) -> None:
    results, others = (one if isinstance(one, tuple) else (one,) for one in (result, expected))
    assert len(results) == len(others)
    for one, other in zip(results, others, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-13)


def _by_elements(function: Callable[..., Any], *arguments: Any) -> Any:
    """An oracle: the function of each element by `numpy.frompyfunc`."""
    several = isinstance(function(1.0, 1.0), tuple)
    found = np.frompyfunc(function, 2, 2 if several else 1)(*arguments)
    dtype = np.int64 if function is halvings else np.float64
    return tuple(np.asarray(one).astype(dtype)[()] for one in found) if several else np.asarray(found).astype(dtype)[()]


@pytest.mark.per_push
@pytest.mark.parametrize("function", FUNCTIONS)
def test_calls(function: Callable[..., Any]) -> None:
    made = jk.vectorize(function, strict=True)
    for arguments in ARGUMENTS.values():
        result = made(*arguments)
        _check(result, _by_elements(function, *arguments))
        assert not any(np.shares_memory(one, other) for one in np.atleast_1d(result) for other in arguments)


@pytest.mark.parametrize("function", [difference, straight, by_math, halvings])
def test_calls_of_numba(function: Callable[..., Any]) -> None:
    made = numba.vectorize(function)

    @jk.jit(strict=True)
    def call(a: Any, b: Any) -> Any:
        return made(a, b)

    for arguments in ARGUMENTS.values():
        _check(call(*arguments), _by_elements(function, *arguments))


def test_declared_types() -> None:
    signatures = [numba.float32(numba.float32, numba.float32), numba.float64(numba.float64, numba.float64)]
    theirs = numba.vectorize(signatures)(difference)
    ours = jk.vectorize(difference, types=["ff->f", "dd->d"], strict=True)
    single = GRID.astype(np.float32)
    for first, second in ((single, single[0]), (single, GRID), (GRID, np.arange(5)), (np.int8(3), single)):
        expected = theirs(first, second)
        result = ours(first, second)
        assert np.asarray(result).dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-6)
        _check(jk.jit(lambda a, b: theirs(a, b), strict=True)(first, second), result)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 4, 3), (1, 6)])
def test_folds(shape: tuple[int, ...]) -> None:
    array = rng.standard_normal(shape)
    made = jk.vectorize(difference, strict=True)
    reference = np.frompyfunc(difference, 2, 1)
    theirs = numba.vectorize(difference)
    for axis in range(-len(shape), len(shape)):
        expected = np.asarray(reference.reduce(array, axis=axis)).astype(float)[()]
        _check(made.reduce(array, axis), expected)
        _check(made.reduce(array, axis, keepdims=True), np.expand_dims(expected, axis))
        _check(jk.jit(lambda x, at=axis: theirs.reduce(x, axis=at), static_argnames="at")(array), expected)
        _check(made.accumulate(array, axis), reference.accumulate(array, axis=axis).astype(float))
    _check(made.outer(array, array[0]), reference.outer(array, array[0]).astype(float))


def moving_average(x: Any, k: Any, result: Any) -> None:
    average = x[0]
    for i in range(x.shape[0]):
        average = average + k * (x[i] - average)
        result[i] = average


def product(a: Any, b: Any, result: Any) -> None:
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += a[i, j] * b[j]
        result[i] = total


def limits(a: Any, low: Any, high: Any) -> None:
    low[0], high[0] = a.min(), a.max()


ROWS: dict[str, tuple[Any, str, str, list[Any]]] = {
    "moving average": (moving_average, "(n),()->(n)", "dd->d", [(GRID, 0.25), (GRID, GRID[:, 0]), (GRID[0], GRID)]),
    "product": (product, "(m,n),(n)->(m)", "dd->d", [(GRID, GRID[0]), (GRID[None], rng.standard_normal((3, 5)))]),
    "limits": (limits, "(n)->(),()", "d->dd", [(GRID,), (GRID[0],), (GRID.T,)]),
}


@pytest.mark.per_push
@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    function, layout, types, calls = ROWS[name]
    made = jk.guvectorize(layout, types=types, strict=True)(function)
    for arguments in calls:
        expected = made._plain(*arguments)
        _check(made(*arguments), expected)


def test_rows_of_numba() -> None:
    array, number = numba.float64[:], numba.float64
    made = numba.guvectorize([(array, number, array)], "(n),()->(n)")(moving_average)

    @jk.jit(strict=True)
    def smoothed(x: Any, k: Any) -> Any:
        return made(x, k) - x

    for arguments in ROWS["moving average"][3]:
        np.testing.assert_allclose(smoothed(*arguments), made(*arguments) - arguments[0], rtol=1e-13)


@pytest.mark.parametrize("is_declared", [False, True])
def test_outputs_as_arguments(is_declared: bool) -> None:
    array, number = numba.float64[:], numba.float64
    made = numba.guvectorize(*([[(array, number, array)]] if is_declared else []), "(n),()->(n)")(moving_average)
    lowest = numba.guvectorize("(n)->(),()")(limits)
    own = jk.guvectorize("(n),()->(n)", types="dd->d")(moving_average)

    @jk.jit(strict=True)
    def smoothed(x: Any, k: Any) -> Any:
        result, low, high = np.empty(x.shape), np.empty(x.shape[0]), np.empty(x.shape[0])
        made(x, k, result)
        lowest(result, low, high)
        return result, low, high

    expected = own(GRID, 0.25)
    _check(smoothed(GRID, 0.25), (expected, expected.min(1), expected.max(1)))
    result = np.empty_like(GRID)
    assert own(GRID, 0.25, result) is result
    _check(result, expected)
    _check(own._plain(GRID, 0.25, np.empty_like(GRID)), expected)


def backwards(x: Any, result: Any) -> None:
    for i in range(x.shape[0]):
        result[i] = x[x.shape[0] - 1 - i]


def test_outputs_that_are_inputs() -> None:
    """NumPy copies inputs that overlap outputs; so do compiled loops."""
    made = numba.guvectorize("(n)->(n)")(backwards)
    own = jk.guvectorize("(n)->(n)", types="d->d")(backwards)

    def reverse(x: Any) -> Any:
        made(x, x)
        return x

    expected = GRID[:, ::-1]
    for function in (reverse, jk.jit(reverse), lambda x: own(x, x), lambda x: own._plain(x, x)):
        np.testing.assert_array_equal(function(GRID.copy()), expected)


def test_plain_loops(caplog: pytest.LogCaptureFixture) -> None:
    """Where a function cannot be compiled, the loops run in Python, which is logged."""
    known: dict[float, float] = {}

    def noted(a: Any, b: Any) -> Any:
        known[float(a)] = float(b)
        return difference(a, b)

    made = jk.vectorize(noted)
    _check(made(GRID, 0.5), _by_elements(difference, GRID, 0.5))
    assert "noted.call" in caplog.text
    assert "falls back to NumPy" in caplog.text
    assert len(known) == GRID.size
    _check(made.reduce(GRID), np.frompyfunc(difference, 2, 1).reduce(GRID).astype(float))


def test_inside_of_compiled_functions() -> None:
    made = jk.vectorize(difference)
    rows = jk.guvectorize("(n),()->(n)", types="dd->d")(moving_average)

    @jk.jit(strict=True)
    def total(a: Any, b: Any) -> Any:
        return made(a, b).sum() + made.reduce(a).sum() + rows(a, 0.5).sum()

    expected = made(GRID, 0.1).sum() + made.reduce(GRID).sum() + rows(GRID, 0.5).sum()
    np.testing.assert_allclose(total(GRID, 0.1), expected, rtol=1e-13)
    out = np.empty_like(GRID)
    assert made(GRID, 0.1, out=out) is out
    _check(out, made(GRID, 0.1))


def test_changed_globals_are_seen() -> None:
    made = jk.vectorize(lambda a: a * SCALE if a > 0 else a)
    _check(made(np.ones(3)), np.full(3, 2.0))
    globals()["SCALE"] = 5.0
    try:
        _check(made(np.ones(3)), np.full(3, 5.0))
    finally:
        globals()["SCALE"] = 2.0


SCALE = 2.0


@jk.vectorize
def magnitude(a: Any) -> Any:
    return a if a > 0 else -a


def test_pickles_are_names() -> None:
    assert pickle.loads(pickle.dumps(magnitude)) is magnitude


def test_gradients() -> None:
    gradient = jk.grad(lambda x: (magnitude(x) * x).sum())(GRID)
    np.testing.assert_allclose(gradient, 2 * np.abs(GRID), rtol=1e-13)


REFUSED: list[tuple[Callable[[], Any], type[JitKernelsError], str]] = [
    (lambda: jk.vectorize(3), ArgumentTypeError, "function: expected a function of Python, got 3"),
    (lambda: jk.vectorize(difference, types="d->d"), ArgumentError, "types: expected 2 arguments"),
    (lambda: jk.vectorize(difference, types="x->d"), ArgumentError, "types: expected loops such as"),
    (lambda: jk.guvectorize("(n->()", types="d->d"), ArgumentError, "layout: expected one such as"),
    (lambda: jk.guvectorize("(n)->(k)", types="d->d"), ArgumentError, "layout: expected dimensions of inputs"),
    (lambda: jk.guvectorize("(n)->()", types="dd->d"), ArgumentError, "types: expected letters for 1 inputs"),
    (lambda: jk.guvectorize("(n)->()", types=()), ArgumentError, "types: expected at least one loop"),
    (lambda: jk.guvectorize("(n)->()", types="d->d")(product), ArgumentError, "layout: expected 3 arguments"),
    (lambda: jk.vectorize(difference, types="dd->d")(1j, 2.0), ArgumentError, "arguments: expected the types of a"),
    (lambda: jk.vectorize(difference).reduce(GRID[:0]), ArgumentError, "array: expected elements along the axis"),
    (lambda: jk.guvectorize("(n)->()", types="d->d")(lambda a, r: None)(1.0), ArgumentError, "argument 0: expected"),
]


@pytest.mark.per_push
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused_arguments(number: int) -> None:
    call, error, text = REFUSED[number]
    with pytest.raises(error, match=text):
        call()
