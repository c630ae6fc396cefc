"""What universal functions take and return: numbers, types, no elements, and arguments that they refuse."""

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import ArgumentError, ArgumentTypeError, JitKernelsError

rng = np.random.default_rng(11)
GRID = rng.standard_normal((3, 4))


def less_mean(a: Any, b: Any) -> Any:
    return a - np.mean(a) + b


def largest(a: Any, b: Any) -> Any:
    return np.max((a, b)) - a


def by_methods(a: Any, b: Any) -> Any:
    return a.max() + b.sum() * a.size


def negated(a: Any, b: Any) -> Any:
    return not (a * b)


def contained(a: Any, b: Any) -> Any:
    return a in (1, 2)


def identical(a: Any, b: Any) -> Any:
    return a is b


def sorted_one(a: Any, b: Any) -> Any:
    return np.sort(a, axis=None)[0] + b


def summed(a: Any, b: Any) -> Any:
    return np.add.reduce((a, b))


def clipped(a: Any, b: Any) -> Any:
    return np.clip(np.where(b > 0, a, b), -0.5, 0.5)


@pytest.mark.per_push
@pytest.mark.parametrize(
    "function", [less_mean, largest, by_methods, negated, contained, identical, sorted_one, summed, clipped]
)
def test_functions_that_mean_something_else_for_arrays(function: Callable[..., Any]) -> None:
    """Only functions of operators and universal functions are applied to whole arrays."""
    made = jk.vectorize(function)
    for arguments in ((GRID, GRID[0]), (GRID[:3, :3], GRID[:3, :3]), (np.arange(4), np.arange(4)), (1.0, 2.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fallbacks
            _check(made(*arguments), made._plain(*arguments))


def chosen(a: Any, b: Any) -> Any:
    if a < 0:
        return a
    return b


def constant(a: Any, b: Any) -> Any:
    return 5 if a > 0 else 2


def floored(a: Any, b: Any) -> Any:
    return a // b if b != 0 else a % 3


def both(a: Any, b: Any) -> Any:
    if a > b:
        return a, b, 0
    return b, a, 1


DTYPES = "?bBhHiIlLefd"
FORMS: list[Callable[[Any], Any]] = [
    lambda x: x, lambda x: x.tolist(), lambda x: x[0], lambda x: x[0].item(), lambda x: x[:1].reshape(()), list,
    lambda x: [x.tolist()] * 2,
]  # fmt: skip


@pytest.mark.per_push(16)
@pytest.mark.parametrize("function", [chosen, constant, floored, both])
@pytest.mark.parametrize("dtypes", [f"{one}{DTYPES[5 * i % 12]}" for i, one in enumerate(DTYPES)])
@pytest.mark.parametrize("forms", range(7))
def test_types_of_results(function: Callable[..., Any], dtypes: str, forms: int) -> None:
    """Results have the dtypes that the function returns: lists and numbers are arrays for it, not Python's numbers."""
    made = jk.vectorize(function)
    values = [np.abs(rng.standard_normal(4) * 3).astype(code) for code in dtypes]
    for other in range(7):
        arguments = FORMS[forms](values[0]), FORMS[other](values[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fallbacks and divisions by zero
            _check(made(*arguments), made._plain(*arguments))


def difference(a: Any, b: Any) -> Any:
    if a > b:
        return a - b
    return a + b


LOOPS = [["ff->f", "dd->d"], ["bb->b", "ll->l", "dd->d"], ["dd->d"], ["ff->f"], ["ld->d", "lf->f"]]
SINGLE, INTS = GRID[0].astype(np.float32), np.array([3, -2, 1, 0], np.int8)
CALLS: list[tuple[Any, Any]] = [
    (SINGLE, 0.5), (SINGLE, 2), (2, SINGLE), (GRID, 2), (INTS, 2), (INTS, 2.5), (INTS, 300), (SINGLE, np.float64(0.5)),
    (0.5, 0.25), (1, 2), (np.float32(1), 0.5), (SINGLE, np.array(0.5)), (True, SINGLE), (INTS > 0, 2),
    (SINGLE[:0], 0.5),
]  # fmt: skip


@pytest.mark.per_push(20)
@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_python_numbers_and_declared_types(loops: list[str], number: int) -> None:
    """Python's numbers take the dtype of a loop, as those of NumPy's universal functions do."""
    types = [numba.from_dtype(np.dtype(code)) for loop in loops for code in loop if code.isalpha()]
    theirs = numba.vectorize([types[i + 2](*types[i : i + 2]) for i in range(0, len(types), 3)])(difference)
    made = jk.vectorize(difference, types=loops)
    arguments = CALLS[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks
        try:
            expected = theirs(*arguments)
        except (TypeError, OverflowError) as error:
            for function in (made, made._plain):
                with pytest.raises(OverflowError if isinstance(error, OverflowError) else ArgumentError):
                    function(*arguments)
            return
        for function in (made, made._plain, jk.jit(lambda a, b: theirs(a, b))):
            _check(function(*arguments), expected, tolerance=1e-6)


def test_no_elements() -> None:
    """They have the dtypes that are declared, or those of results for ones."""
    for function in (difference, clipped, both):
        made = jk.vectorize(function)
        for empty in (GRID[:0], GRID.astype(np.float32)[:, :0]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fallbacks
                _check(made(empty, empty), made._plain(empty, empty))
                _check(made(empty, empty), jk.vectorize(function)._plain(empty, empty))
    typed = jk.vectorize(difference, types="dd->f")
    _check(typed(GRID[:0], 1.0), np.empty((0, 4), np.float32))


def product(a: Any, b: Any, result: Any) -> None:
    for i in range(a.shape[0]):
        result[i] = a[i] * b[i]


ROWS = jk.guvectorize("(n),(n)->(n)", types="dd->d")(product)
NUMBER: Any = 3
REFUSED: list[tuple[Callable[[], Any], type[JitKernelsError], str]] = [
    (lambda: jk.vectorize(difference)(), ArgumentTypeError, "difference: expected arguments"),
    (lambda: jk.vectorize(difference, types=NUMBER), ArgumentTypeError, "types: expected loops such as"),
    (
        lambda: jk.vectorize(difference, types="dd->dd")(GRID, GRID),
        ArgumentError,
        "difference: expected as many results",
    ),
    (lambda: jk.vectorize(lambda a: [a, a])(GRID), ArgumentTypeError, "expected numbers as results"),
    (
        lambda: jk.vectorize(lambda a: (a,) if a > 0 else a)(GRID),
        ArgumentError,
        "expected as many results of each call",
    ),
    (
        lambda: jk.vectorize(both).reduce(GRID),
        ArgumentError,
        "both: expected a function of two numbers with one result",
    ),
    (lambda: jk.vectorize(both).accumulate(GRID), ArgumentError, "both: expected a function of two numbers"),
    (lambda: jk.vectorize(lambda a, b, c: a).reduce(GRID), ArgumentError, "expected a function of two numbers"),
    (lambda: jk.vectorize(difference).reduce(GRID, 2), ArgumentError, "axis: expected one of 2 dimensions, got 2"),
    (lambda: jk.vectorize(difference).reduce(GRID, (0, 1)), ArgumentTypeError, r"axis: expected an int, got \(0, 1\)"),
    (lambda: jk.vectorize(difference).accumulate(GRID, None), ArgumentTypeError, "axis: expected an int, got None"),
    (lambda: jk.vectorize(difference).accumulate(1.0), ArgumentError, "axis: expected one of 0 dimensions"),
    (lambda: jk.guvectorize("(3)->()", types="d->d"), ArgumentError, "layout: expected one such as"),
    (lambda: ROWS(GRID, GRID, np.empty((3, 4), int)), ArgumentTypeError, "argument 2: expected an array that takes"),
    (lambda: ROWS(GRID, GRID, [0.0] * 4), ArgumentTypeError, "argument 2: expected an array for results"),
    (lambda: ROWS(GRID, GRID, GRID.copy(), out=GRID.copy()), ArgumentTypeError, "out: expected 2 arguments beside it"),
]


@pytest.mark.per_push
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused_arguments(number: int) -> None:
    call, error, text = REFUSED[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks
        with pytest.raises(error, match=text):
            call()


def _check(result: Any, expected: Any, tolerance: float = 1e-3) -> None:
    results, others = (one if isinstance(one, tuple) else (one,) for one in (result, expected))
    assert len(results) == len(others)
    for one, other in zip(results, others, strict=True):
        assert type(one) is type(other)
        assert np.shape(one) == np.shape(other)
        assert one.dtype == other.dtype
        exact = one.dtype.kind in "?biu" or one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-12 if exact else tolerance)


def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


def with_square(a: Any, b: Any) -> Any:
    return a + b * b


def equal_ones(a: Any, b: Any) -> Any:
    return a == b


@pytest.mark.parametrize("types", ["dd->d", "ff->f dd->d", "ll->l dd->d"])
@pytest.mark.parametrize("function", [larger, with_square])
@pytest.mark.parametrize("dtype", ["d", "f", "l", "b", "?"])
def test_folds_of_declared_types(dtype: str, function: Callable[..., Any], types: str) -> None:
    """As numba's: of the first loop that takes the elements, one row too; compiled, not called in Python."""
    made = jk.vectorize(types=types.split())(function)
    codes = {"d": numba.float64, "f": numba.float32, "l": numba.int64}
    theirs = numba.vectorize([codes[one[0]](codes[one[0]], codes[one[1]]) for one in types.split()])(function)
    for shape in ((8,), (1,), (4, 5), (1, 3)):
        array = (4 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
        for axis in range(array.ndim):
            for name in ("reduce", "accumulate"):
                found, expected = (getattr(one, name)(array, axis=axis) for one in (made, theirs))
                assert np.asarray(found).dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-5)
    explained = str(jk.jit(lambda x: made.reduce(x) + made.accumulate(x)[0]).explain(np.ones((4, 5), dtype)))
    assert "falls back" not in explained


def test_folds_of_results_of_other_types() -> None:
    """The next call takes such a result as its argument."""
    made, values = jk.vectorize(types=["dd->?", "??->?"])(equal_ones), np.array([2.0, 2.0, 1.0])
    assert made.reduce(values) == np.True_
