"""Reductions of rows of a few vectors, several rows at a time, and the serpentine order of loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.nest.serpentine_order import SerpentineOrder
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.schedule.nest import row_packing, serpentine_rule
from jitkernels.compiler.schedule.nest.trip_bounds import most_steps
from jitkernels.tools.testing import guard_pages, guarded_workspaces

DTYPES = ("float32", "float64")
COLUMNS = (*range(1, 41), 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025)
PRODUCTS = 1
ROWS = (*range(1, 14), 31, 32, 33, 40)


def product(a: Any, b: Any, x: Any) -> Any:
    return a @ x + b


def every_kind(a: Any, b: Any, x: Any) -> Any:
    y = a * x
    return y.sum(1), y.prod(1), y.min(1) - b, y.max(1) + b, (y > 3).any(1), (y < 3).all(1), y.sum(1) * b


def two_phases(a: Any, b: Any, x: Any) -> Any:
    return a.var(axis=1), (np.exp(a - a.max(axis=1, keepdims=True)) @ x) * b


def backwards(a: Any, b: Any, x: Any) -> Any:
    return (a[::-1, ::-1] * x[::-1]).sum(axis=1) + b


def several_outer(a: Any, b: Any, x: Any) -> Any:
    return (np.stack([a, -a]) * x).sum(axis=-1) - b


PROGRAMS = (product, every_kind, two_phases, backwards, several_outer)


def given(rows: int, columns: int, dtype: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(rows * 2000 + columns)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in ((rows, columns), rows, columns))


def flat(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_every_size_next_to_a_guard_page(program: Callable[..., Any], dtype: str) -> None:
    compiled, tolerance = jk.jit(program), 1e-4 if dtype == "float32" else 1e-11
    for number, columns in enumerate(COLUMNS):
        for rows in ROWS if columns in (17, 33, 40, 65) else ROWS[number % 3 :: 3]:
            arrays = given(rows, columns, dtype)
            placed = [guard_pages.Guarded(one, "end").array for one in arrays]
            for got, right in zip(flat(compiled(*placed)), flat(program(*arrays)), strict=True):
                np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance * columns)
    assert "0 calls of NumPy" in str(compiled.explain(*given(9, 40, dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
def test_special_numbers_stay_in_their_row(special: float, dtype: str) -> None:
    compiled = jk.jit(every_kind)
    for columns in (40, 72, 200):
        for where in {0, 31, columns - 1}:
            a, b, x = given(9, columns, dtype)
            a[5, where] = special
            with np.errstate(all="ignore"):
                expected, found = every_kind(a, b, x), compiled(a, b, x)
            for kind, got, right in zip(range(7), found, expected, strict=True):
                if kind != PRODUCTS or not np.isinf(special):  # infinity times what underflows in some order
                    np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-3)
        assert not np.signbit(compiled(np.full((9, columns), -0.0, dtype), b, x)[0]).any()


def test_sums_do_not_depend_on_other_rows() -> None:
    """The rows of a group are independent of one another: of their number and of their values."""
    compiled = jk.jit(product)
    for columns in (40, 64, 129, 500):
        a, b, x = given(40, columns, "float64")
        whole = compiled(a, b, x)
        other = a.copy()
        other[1::2] = np.nan
        assert np.array_equal(compiled(other, b, x)[::2], whole[::2])
        for rows in range(4, 40):
            assert np.array_equal(compiled(a[:rows], b[:rows], x), whole[:rows])
    assert row_packing.MAX_ROW_VECTORS * 8 >= 500


def steps(a: Any, x: Any, count: int) -> Any:
    found = np.zeros((count, a.shape[0]))
    for i in range(count):
        x = np.tanh(a @ x + i)
        found[i] = x
    return found


def in_branches(a: Any, x: Any, count: int) -> Any:
    total = np.zeros(a.shape[0])
    for i in range(count):
        if i % 3 == 0:
            total = total + (a * x).max(axis=1)
        else:
            for _ in range(2):
                total = total + np.abs(a[:, ::-1] @ x)
    return total


def stencil(a: Any, x: Any, count: int) -> Any:
    b = a.copy()
    for _ in range(count):
        b[1:-1] = a[1:-1] * 0.5 + (a[:-2] + a[2:]) * 0.25
        a[1:-1] = b[1:-1] * 0.5 + (b[:-2] + b[2:]) * 0.25
    return b.sum(axis=0) * x


def in_place(a: Any, x: Any, count: int) -> Any:
    for _ in range(count):
        a[1:] = a[1:] + a[:-1] * x
        a[:-1] += a[1:] * 0.5
    return a


@pytest.mark.parametrize("program", [steps, in_branches, stencil, in_place], ids=lambda one: one.__name__)
def test_serpentine_loops(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are right however little they read."""
    monkeypatch.setattr(serpentine_rule, "MIN_SERPENTINE_BYTES", 0)
    with guarded_workspaces("end"):
        compiled = jk.jit(program)
        for size in (*range(2, 41), 64, 100):
            for count in (0, 1, 2, 5):
                a, _, x = given(size, size, "float64")
                a /= size
                expected = program(a.copy(), x, count)
                found = compiled(guard_pages.Guarded(a.copy(), "end").array, guard_pages.Guarded(x, "end").array, count)
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_serpentine_order_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are independent of one another."""
    for program in (steps, in_branches, stencil, in_place):
        results = []
        for least in (0, 1 << 60):
            monkeypatch.setattr(serpentine_rule, "MIN_SERPENTINE_BYTES", least)
            compiled = jk.jit(program)
            results.append([compiled(given(n, n, "float64")[0] / n, given(n, n, "float64")[2], 4) for n in (37, 90)])
        for one, other in zip(*results, strict=True):
            assert np.array_equal(one, other)


def test_which_loops_are_serpentine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that read a matrix larger than the first cache are; others are not."""
    reversals: list[bool] = []
    plain = SerpentineOrder.either_way

    def seen(self: Any, *given: Any) -> Any:
        reversals.append(True)
        return plain(self, *given)

    monkeypatch.setattr(SerpentineOrder, "either_way", seen)
    rng = np.random.default_rng(0)
    for size, count, expected in ((100, 3, True), (20, 3, False), (1000, 3, False)):
        reversals.clear()
        jk.jit(steps)(rng.standard_normal((size, size)) / size, np.ones(size), count)
        assert bool(reversals) == expected, size
    reversals.clear()
    jk.jit(product)(rng.standard_normal((100, 100)), np.ones(100), np.ones(100))
    assert not reversals


def gates(z: Any, c: Any) -> Any:
    n = c.shape[0]
    i, f, o = 1.0 / (1.0 + np.exp(-z[: 3 * n])).reshape(3, n)
    c = f * c + i * np.tanh(z[3 * n :])
    return c, o * np.tanh(c)


def overlapping(z: Any, c: Any) -> Any:
    n, y = c.shape[0], np.exp(np.sin(z))
    return y[:n] * y[1 : n + 1] + y[2 : n + 2] * c


def many_parts(z: Any, c: Any) -> Any:
    y = np.exp(np.sin(z[:24])).reshape(8, 3)
    return y[0] + y[1] * y[2] - y[3] * y[4] + y[5] / y[6] * y[7]


@pytest.mark.parametrize("size", [*range(3, 41), 64, 100])
def test_long_nests_compute_partial_stores(size: int) -> None:
    """The gates of a cell are one nest: each slice is computed where it is needed, and nothing is materialized."""
    _, z, c = given(4 * size, size, "float64")
    for program, compiled in COMPILED.items():
        for got, right in zip(flat(compiled(z, c)), flat(program(z, c)), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-13, atol=1e-13)


COMPILED = {one: jk.jit(one) for one in (gates, overlapping)}


def test_values_are_computed_where_needed() -> None:
    z, c = np.linspace(-1, 1, 400), np.linspace(-1, 1, 100)
    assert COMPILED[gates].explain(z, c).kernels == 1
    assert COMPILED[overlapping].explain(z, c).kernels == 2
    assert jk.jit(many_parts).explain(z, c).kernels == 2
    np.testing.assert_allclose(jk.jit(many_parts)(z, c), many_parts(z, c), rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_with_known_and_unknown_trip_counts(dtype: str) -> None:
    """Of integers, which are exact."""
    free = jk.jit(lambda x: x.sum(axis=0))
    for steps in (1, 2, 3, 17, 40, 255, 256, 257, 300, 513):
        for columns in (1, 7, 16, 17, 40, 130):
            rng = np.random.default_rng(steps)
            weights, x = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((steps, columns), (1, steps)))
            assert np.array_equal(free(weights), weights.sum(axis=0))
            if columns == 130 and steps in (3, 256, 257):
                fixed = jk.jit(lambda x, w=weights: x @ w, static_argnames=("w",))
                assert np.array_equal(fixed(x), x @ weights)
    zeros = np.full((40, 30), -0.0, dtype)
    assert np.array_equal(np.signbit(free(zeros)), np.signbit(zeros.sum(axis=0)))
    for special in (np.nan, np.inf, -np.inf):
        x = np.ones((40, 30), dtype)
        x[20, 7] = special
        assert np.array_equal(free(x), x.sum(axis=0), equal_nan=True)


def test_upper_bound_of_trip_counts() -> None:
    """By the guards on its symbols alone."""
    scope = Scope()
    columns, rows = scope.symbol("columns", 100), scope.symbol("rows", 3)
    assert (most_steps(columns), most_steps(7)) == (None, 7)
    assert columns <= 300
    assert rows * columns < 90_000
    assert (most_steps(columns), most_steps(rows), most_steps(columns * rows)) == (300, None, 89_999)
    assert columns < 200
    assert rows == 3
    assert (most_steps(columns), most_steps(rows)) == (199, 3)


@pytest.mark.usefixtures("restored_threads")
def test_parallel_iterations_reverse_independently(monkeypatch: pytest.MonkeyPatch) -> None:
    def independent(a: Any, x: Any) -> Any:
        found = np.zeros((x.shape[0], a.shape[0]))
        for i in range(x.shape[0]):
            for _ in range(2):
                found[i] = np.tanh((a * (x[i] + found[i].sum())).sum(axis=1))
        return found

    monkeypatch.setattr(serpentine_rule, "MIN_SERPENTINE_BYTES", 0)
    a, _, x = given(70, 70, "float64")
    many = np.outer(np.linspace(0, 1, 60), x)
    results = []
    for threads in (1, 2):
        jk.set_num_threads(threads)
        compiled = jk.jit(independent)
        results += [compiled(a, many), compiled(a, many)]
    np.testing.assert_allclose(results[0], independent(a, many), rtol=1e-9)
    assert all(np.array_equal(one, results[0]) for one in results)
