"""Reductions of short rows, several at once in registers: all lengths and counts around the code's boundaries."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.schedule.nest.trip_bounds import least_steps

WIDTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129)
ROWS = (1, 2, 3, 4, 5, 7, 8, 9, 17)
DTYPES = ("float32", "float64")


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def with_columns(x: Any) -> Any:
    return (x * np.arange(x.shape[1], dtype=x.dtype)).sum(axis=1), x[::-1].max(axis=1), x * x[0]


def by_columns(x: Any) -> Any:
    transposed = np.ascontiguousarray(x).T
    return transposed[:, ::-1].sum(axis=0), (transposed + 1).min(axis=0)


def every_kind(x: Any) -> Any:
    return (x.sum(axis=1), x.min(axis=1), x.max(axis=1), (x > 0).any(axis=1), (x > 0).all(axis=1), x.argmax(axis=1))


def differences(x: Any) -> Any:
    total = (x[:, 1:] - x[:, :-1]).sum(axis=1)
    return total, x[:, ::2].max(axis=1) - total


def in_place(x: Any) -> Any:
    x -= x.mean(axis=1, keepdims=True)
    return x.sum(axis=1)


def columns_only(x: Any) -> Any:
    return (np.exp(-np.arange(x.shape[1], dtype=x.dtype)) * x).sum(axis=1) / (1 + x.shape[0])


PROGRAMS = (softmax, layer_norm, with_columns, by_columns, every_kind, differences, in_place, columns_only)
NEED: dict[Callable[[Any], Any], int] = {every_kind: 1, softmax: 1, differences: 2, with_columns: 1, by_columns: 1}
"""Columns that NumPy needs: there is no largest of nothing."""


def equal(program: Callable[[Any], Any], compiled: Callable[[Any], Any], x: Any, tolerance: float) -> None:
    one, other = x.copy(), x.copy()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, found = program(one), compiled(other)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(found, tuple) else (found,)
    for right, got in zip((*expected, one), (*found, other), strict=True):
        assert got.dtype == right.dtype
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance, err_msg=f"{x.shape}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_every_length(program: Callable[[Any], Any], dtype: str) -> None:
    compiled = jk.jit(program)
    rng = np.random.default_rng(0)
    for width in WIDTHS:
        for rows in ROWS:
            if width < NEED.get(program, 0):
                continue
            x = rng.standard_normal((rows, width)).astype(dtype)
            equal(program, compiled, x, 1e-4 if dtype == "float32" else 1e-11)
    assert compiled.stats().compiles > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_adjacent_rows(program: Callable[[Any], Any], dtype: str) -> None:
    """Every lane computes a row, in whole vectors and in the remainder."""

    def transposed(x: Any) -> Any:
        return program(x.T)

    compiled = jk.jit(transposed)
    rng = np.random.default_rng(2)
    for width in (3, 9, 40):
        for rows in (1, 5, 31, 33, 64, 100):
            x = rng.standard_normal((width, rows)).astype(dtype)
            equal(transposed, compiled, x, 1e-4 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "bool", "float16"])
def test_other_types(dtype: str) -> None:
    compiled = jk.jit(every_kind)
    rng = np.random.default_rng(1)
    for width in (1, 3, 15, 16, 31, 32, 33, 64, 65, 127, 128, 129, 255, 256, 257):
        for rows in (3, 4, 9):
            x = rng.integers(0, 2 if dtype == "bool" else 100, (rows, width)).astype(dtype)
            equal(every_kind, compiled, x, 1e-2 if dtype == "float16" else 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e-42])
def test_special_numbers(special: float, dtype: str) -> None:
    """Each affects its own row alone, at any position; ties resolve to the first."""
    program, norm = jk.jit(every_kind), jk.jit(softmax)
    for width in (1, 4, 8, 12, 16, 24, 33, 64, 70):
        for where in {0, width // 2, width - 1}:
            x = np.tile(np.linspace(-1, 1, width, dtype=dtype), (9, 1))
            x[5, where] = special
            equal(every_kind, program, x, 1e-5)
            equal(softmax, norm, x, 1e-5)
            zeros = np.full((9, width), -0.0, dtype)
            assert np.array_equal(np.signbit(program(zeros)[0]), np.signbit(zeros.sum(axis=1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_of_sums(dtype: str) -> None:
    """Exact quotients stay exact; signs, infinities and tiny numbers are kept."""

    def shares(x: Any, y: Any) -> Any:
        return y / x.sum(axis=1, keepdims=True)

    compiled = jk.jit(shares)
    tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
    totals = [3, 7, 49, -49, 1e-3, tiny, tiny / 8, huge, 1 / huge, 0, -0.0, np.inf, np.nan, 2.0**60, 1 + 2.0**-20]
    for width in (5, 16, 40, 100, 300):
        x = np.zeros((len(totals), width), dtype)
        x[:, width // 2] = totals
        y = np.tile(np.resize([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, tiny, tiny / 4, huge], width), (len(totals), 1))
        y = y.astype(dtype)
        with np.errstate(all="ignore"):
            y[:, -3:] = 3 * x[:, width // 2, None]
            expected, found = shares(x, y), compiled(x, y)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(found[:, -3:], expected[:, -3:])
        np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))
        finite = np.isfinite(expected) & (abs(expected) < huge)
        with np.errstate(all="ignore"):
            np.testing.assert_array_almost_equal_nulp(found[finite], expected[finite], 1)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
        subnormal = (x[:, width // 2] != 0) & (abs(x[:, width // 2]) < tiny)  # whose reciprocals overflow
        assert np.isfinite(expected[subnormal]).any(axis=1).all()
        np.testing.assert_array_equal(found[subnormal], expected[subnormal])


def test_rounded_quotients() -> None:
    """Nearly all quotients by sums are rounded like NumPy's."""

    def shares(x: Any, y: Any) -> Any:
        return y / x.sum(axis=1, keepdims=True)

    rng = np.random.default_rng(3)
    x = np.zeros((200, 1024), np.float32)
    x[:, 0] = rng.uniform(1e-3, 1e3, 200)
    y = rng.standard_normal(x.shape).astype(np.float32)
    assert (jk.jit(shares)(x, y) != shares(x, y)).mean() < 1e-4


def test_in_place_results_of_partial_groups() -> None:
    """The last rows are computed twice where they do not fill a group."""
    compiled: Any = jk.jit(softmax)
    for rows in range(1, 20):
        for width in (3, 8, 16, 30, 64):
            x = np.random.default_rng(rows).standard_normal((rows, width)).astype(np.float32)
            expected = softmax(x)
            assert np.allclose(compiled(x, out=x), expected, rtol=1e-5)
            assert np.allclose(x, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_positions_of_extremes_in_long_rows(dtype: str) -> None:
    """Ties resolve to the first, and NaN comes before all numbers, at any position."""

    def places(x: Any) -> Any:
        return x.argmax(axis=1), x.argmin(axis=1), x.max(axis=1), x.min(axis=1)

    compiled, whole = jk.jit(places), jk.jit(np.argmax)
    rng = np.random.default_rng(5)
    for width in (100, 1000, 5000, 70_001):
        for special in (None, np.nan, np.inf, -np.inf):
            if special is not None and dtype[0] != "f":
                continue
            x = rng.integers(0, 50, (3, width)).astype(dtype)
            if special is not None:
                x[1, rng.integers(0, width, 3)] = special
                x[2] = special
            for found, expected in zip(compiled(x), places(x), strict=True):
                np.testing.assert_array_equal(found, expected)
            assert [int(whole(row)) for row in x] == [int(np.argmax(row)) for row in x]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_several_parts(dtype: str) -> None:
    """As many parts as a part has elements, a few less or more; sums are as accurate as those of one part."""
    compiled: Any = jk.jit(every_kind)
    rng = np.random.default_rng(7)
    for width in (100, 4095, 4096, 4097, 8192, 8300, 30_000):
        x = rng.uniform(0.5, 1.5, (3, width)).astype(dtype)
        x[1, width // 2 :] *= -1
        equal(every_kind, compiled, x, 1e-3 if dtype == "float32" else 1e-10)
        exact = np.array([math.fsum(row) for row in x])
        size = np.array([math.fsum(row) for row in abs(x)])
        assert (abs(compiled(x)[0] - exact) <= 30 * np.finfo(dtype).eps * size).all()


def test_lower_bound_of_trip_counts() -> None:
    """By its symbols and the guards on it alone; at least 0 for a loop."""
    scope = Scope()
    columns, rows = scope.symbol("columns", 100), scope.symbol("rows", 3)
    assert (least_steps(columns), least_steps(columns * rows), least_steps(7)) == (2, 4, 7)
    assert columns > 64
    assert columns + rows >= 90
    assert rows < 50
    assert (least_steps(columns), least_steps(rows), least_steps(columns - rows)) == (65, 2, 0)
    assert columns >= 70
    assert least_steps(columns) == 70


def test_few_specializations_serve_all_row_lengths() -> None:
    """Whatever the order of lengths, at most four are compiled."""
    x = np.random.default_rng(0).standard_normal((20, 500)).astype(np.float32)
    every = [*range(2, 140), 300, 500]
    for widths, most in (([500, 300, 200], 1), ([3, 2], 1), (every, 4), (every[::-1], 4)):
        compiled = jk.jit(softmax)
        for width in (*widths, *widths):
            part = np.ascontiguousarray(x[:, :width])
            np.testing.assert_allclose(compiled(part), softmax(part), rtol=1e-5)
        assert compiled.stats().compiles == most
