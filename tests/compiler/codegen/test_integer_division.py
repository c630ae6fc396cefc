"""Integer division, elementwise or by one divisor, for which vectors have no instruction."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": np.fmod,
}


def numbers(dtype: str, count: int = 300) -> Any:
    """Integers of all lengths, with the least and the largest and what is near them."""
    kind, rng = np.iinfo(dtype), np.random.default_rng(0)
    found = rng.integers(kind.min, kind.max, count, dtype, endpoint=True)
    found >>= rng.integers(0, kind.bits, count).astype(dtype)
    edges = [kind.min, kind.min + 1, kind.max, kind.max - 1, kind.max // 2, kind.max // 2 + 1, 1, 2, 3]
    found[: len(edges)] = edges
    return found


def divisors(dtype: str) -> Any:
    """Small ones, powers of two and their neighbours, and edges, of both signs."""
    kind = np.iinfo(dtype)
    found = {*range(-12, 13), *(int(one) for one in numbers(dtype, 30))}
    found |= {sign * 2**bit + near for bit in range(kind.bits) for near in (-1, 0, 1) for sign in (-1, 1)}
    return np.array(sorted(one for one in found if kind.min <= one <= kind.max), dtype)


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_quotients_and_remainders_are_exact(name: str, dtype: str) -> None:
    plain, function = DIVISIONS[name], jk.jit(lambda x, y: DIVISIONS[name](x, y))
    given = numbers(dtype)
    pairs = [(given, given[::-1].copy())]
    for divisor in divisors(dtype):
        multiples = quietly(np.multiply, given, divisor)
        pairs += [(one, divisor) for one in (given, multiples, multiples - multiples.dtype.type(1))]
        pairs.append((pairs[-1][0], np.full_like(given, divisor)))
    for x, y in pairs:
        np.testing.assert_array_equal(quietly(function, x, y), quietly(plain, x, y))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_each_row_has_a_divisor(dtype: str) -> None:
    function = jk.jit(lambda x, y: (x // y, x % y, (x // y).sum(axis=1)))
    for rows, columns in ((0, 4), (4, 0), (7, 1), (5, 3), (6, 200)):
        x = np.resize(numbers(dtype), (rows, columns))
        y = np.resize(divisors(dtype), (rows, 1))
        found, expected = (quietly(one, x, y) for one in (function, function.__wrapped__))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [0, 1, 5, 100, 1000])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_division_warnings_match_numpy(dtype: str, count: int) -> None:
    def divided(x: Any, y: Any) -> Any:
        return x // y

    function, lowest = jk.jit(divided), np.iinfo(dtype).min
    zero, one, minus = np.array([0, 1, -1 if lowest else 1], dtype)
    cases = [(np.full(count, fill, dtype), y) for fill in (0, lowest, 5) for y in (zero, one, minus)]
    for x, y in cases + [(x, np.full(count, y)) for x, y in cases]:
        reports = []
        for each in (function, function, divided):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = each(x, y)
            reports.append(([str(warning.message) for warning in caught], found.tolist()))
        assert reports[0] == reports[1] == reports[2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_int_divisors_are_compiled(dtype: str) -> None:
    def divided(x: Any, n: Any) -> Any:
        return x // n + n

    function, x, called = jk.jit(divided), np.arange(1, 100, dtype=dtype), []
    function(x, 7)
    for n in (7, 3, 100, 1):
        expected = x // n + n
        sys.setprofile(lambda frame, event, _: called.append(event) if frame.f_code is divided.__code__ else None)
        try:
            found = function(x, n)
        finally:
            sys.setprofile(None)
        np.testing.assert_array_equal(found, expected)
    assert not called
    if dtype.startswith("u"):
        with pytest.raises(OverflowError):
            function(x, -1)


def by_python_ints(x: Any, table: Any, n: int) -> Any:
    """Ints of Python: those of 2**62 and more are Python's own in the compiled function's place."""
    out = np.zeros((len(x), 4), np.int64)
    for i in range(len(x)):
        k = int(x[i])
        out[i] = k // n, k % n, k // len(table), k % len(table)
    return out


def by_sizes(x: Any, table: Any, n: int) -> Any:
    """Ints of NumPy, the least one among them."""
    out = np.zeros((len(x), 2), np.int64)
    for i in range(len(x)):
        out[i, 0] = x[i] // len(table)
        out[i, 1] = x[i] % len(table)
    return out


@pytest.mark.per_push
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("program", [by_python_ints, by_sizes])
def test_loops_divide_by_positive_ints(program: Callable[..., Any], n: int) -> None:
    function = jk.jit(program, strict=True)
    x = numbers("int64") >> (2 if program is by_python_ints else 0)
    for given in (x, x - x % n, x - x % n - 1):
        np.testing.assert_array_equal(function(given, np.zeros(n), n), program(given, np.zeros(n), n))


@pytest.mark.parametrize("n", [0, -1, -7])
def test_loops_divide_by_other_ints(n: int) -> None:
    def remainders(x: Any, n: int) -> Any:
        out = np.zeros(len(x), np.int64)
        for i in range(len(x)):
            out[i] = int(x[i]) % n
        return out

    function, x = jk.jit(remainders), np.arange(-9, 9)
    np.testing.assert_array_equal(function(x, 5), remainders(x, 5))
    if n:
        np.testing.assert_array_equal(function(x, n), remainders(x, n))
    else:
        with pytest.raises(ZeroDivisionError):
            function(x, n)
