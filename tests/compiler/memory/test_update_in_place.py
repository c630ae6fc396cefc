"""In-place updates: loops run in a direction in which nothing is read after it was overwritten."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.schedule import loop_direction

SIZES = (1, 2, 3, 4, 15, 16, 17, 33, 64, 65, 129, 700)


def backwards(u: Any) -> None:
    u[1:] -= 3 * (u[1:] - u[:-1])


def far(u: Any) -> None:
    u[3:] = u[:-3]


def forwards(u: Any) -> None:
    u[:-2] = u[2:] + 1


def by_steps(u: Any) -> None:
    u[2::2] = u[:-2:2] * 2


def reversed_view(u: Any) -> None:
    v = u[::-1]
    v[1:] += v[:-1]


def down_and_left(u: Any) -> None:
    u[1:, :-1] = u[:-1, 1:]


def from_above_and_beside(u: Any) -> None:
    u[1:, 1:] += 0.5 * (u[:-1, 1:] + u[1:, :-1])


def along_rows(u: Any) -> None:
    u[:, 1:] *= u[:, :-1]


def along_columns(u: Any) -> None:
    u[:-1] = u[1:] - u[:-1]


def twice(u: Any) -> None:
    u[1:] += u[:-1]
    u[:-1] += u[1:]


def both_sides(u: Any) -> None:
    u[1:-1] = (u[:-2] + u[2:]) / 2


def crosswise(u: Any) -> None:
    u[1:, 1:] = u[:-1, 1:] + np.roll(u, 1, axis=1)[1:, 1:]
    u[1:, :-1] = u[:-1, :-1] + u[1:, 1:] + u[:-1, 1:]
    u[1:, 1:-1] = u[:-1, 2:] + u[:-1, :-2]


def rows_of_rows(u: Any) -> None:
    u[1:] = np.cumsum(u, axis=0)[:-1] + u[:-1]


FLAT = (backwards, far, forwards, by_steps, reversed_view, twice, both_sides)
GRIDS = (down_and_left, from_above_and_beside, along_rows, along_columns, twice, crosswise, rows_of_rows)
ALONE = (*FLAT[:5], *GRIDS[:4])


@pytest.mark.parametrize("function", FLAT, ids=lambda one: one.__name__)
def test_arrays(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for size in SIZES:
        for dtype in (np.float64, np.int16):
            for step in (1, -1, 3):
                _agree(function, compiled, (np.arange(size * abs(step)) % 91).astype(dtype), np.s_[::step])


@pytest.mark.parametrize("function", GRIDS, ids=lambda one: one.__name__)
def test_grids(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for shape in ((2, 2), (1, 9), (9, 1), (5, 3), (20, 17), (7, 200)):
        values = (np.arange(np.prod(shape)) % 91).astype(np.float32).reshape(shape)
        for place in (np.s_[:], np.s_[::-1], np.s_[:, ::-1]):
            _agree(function, compiled, values, place)
        _agree(function, compiled, np.asfortranarray(values), np.s_[:])


def _agree(function: Callable[..., Any], compiled: Callable[..., Any], values: Any, place: Any) -> None:
    expected, found = values.copy("K"), values.copy("K")
    with np.errstate(all="ignore"):
        function(expected[place])
        compiled(found[place])
    assert np.allclose(found, expected, rtol=1e-5), (values.shape, values.dtype, place)


@pytest.mark.parametrize("function", ALONE, ids=lambda one: one.__name__)
def test_updates_need_no_copy(function: Callable[..., Any]) -> None:
    given = np.ones(4000) if function in FLAT else np.ones((60, 70))
    assert jk.jit(function).explain(given).kernels == 1


def test_updates_without_a_safe_direction_copy() -> None:
    assert jk.jit(both_sides).explain(np.ones(4000)).kernels == 2


@pytest.mark.parametrize("function", [backwards, forwards, along_rows], ids=lambda one: one.__name__)
def test_threads_do_not_overtake_each_other(function: Callable[..., Any]) -> None:
    values = np.arange(4e6).astype(np.int64) % 91
    _agree(function, jk.jit(function), values if function in FLAT else values.reshape(2000, 2000), np.s_[:])


def test_many_threads_share_large_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    large = np.arange(2.0 * loop_direction.MIN_SHARED_LOOP_ELEMENTS)
    for threads, kernels in ((loop_direction.FEW_THREADS, 1), (loop_direction.FEW_THREADS + 1, 2)):
        monkeypatch.setattr(loop_direction, "get_num_threads", lambda threads=threads: threads)
        assert jk.jit(backwards).explain(large).kernels == kernels
        assert jk.jit(backwards).explain(large[:1000]).kernels == 1


def column_sums(u: Any, d: Any) -> None:
    u *= 0.5
    u += d[0, :, 0] * np.sum(d, axis=(0, 2))


def row_maxima(u: Any, d: Any) -> None:
    u[:] = u * 0.5 + d[:, :, 0].max(axis=0)


def over_its_own_sum(u: Any, d: Any) -> None:
    u[:] = u / u.sum() + d[0, :, 0]


@pytest.mark.parametrize("function", [column_sums, row_maxima], ids=lambda one: one.__name__)
def test_reductions_are_stored_over_an_operand(function: Callable[..., Any]) -> None:
    """Without a copy: each element is read before it is written."""
    compiled, random = jk.jit(function), np.random.default_rng(0)
    for n in SIZES:
        for around in ((3, 2), (70, 9)):
            u, d = random.random(n), random.random((around[0], n, around[1]))
            expected = u.copy()
            compiled(u, d)
            function(expected, d)
            np.testing.assert_allclose(u, expected, rtol=1e-12)
    assert compiled.explain(np.ones(64), np.ones((70, 64, 9))).kernels == 1


def test_an_array_is_not_written_before_all_of_it_is_summed() -> None:
    u, d = np.arange(700.0) + 2, np.ones((3, 700, 2))
    expected = u / u.sum() + 1
    jk.jit(over_its_own_sum)(u, d)
    np.testing.assert_allclose(u, expected, rtol=1e-12)
