"""Rows and elements at indices computed in loops or branches: reads and writes are NumPy's."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

places = np.array([0, 3, 1, -1, 0])


def views(x: Any, idx: Any, n: Any) -> Any:
    """A row is a view: what is written to it, and to the array meanwhile, both see."""
    for k in range(n):
        v = x[idx[k]]
        for j in range(n):
            v *= 0.9
            x[idx[j], 1:] += 0.1 * v[1]
            v[j % 3] += 0.1
    return np.sum(x)


def reversed_rows(x: Any, idx: Any, n: Any) -> Any:
    for k in range(n):
        r = x[idx[k]][::-1]
        r[:2] -= 0.1
        c = x[:, idx[k] % 3]
        c += x[idx[k], 0]
        x[idx[k]] = x[idx[k]][::-1]
    return np.sum(x)


def swapped(x: Any, idx: Any, n: Any) -> Any:
    """Rows change places, one with itself as well; in a branch, and as pairs of numbers."""
    for k in range(n):
        p = np.argmax(x[:, k % 3])
        if p != k % 4:
            t = x[k % 4].copy()
            x[k % 4] = x[p]
            x[p] = t
        x[[idx[k], p]] = x[[p, idx[k]]]
        x[idx[: k + 1], k % 3] += x[k % 4, 0]
        x[idx.reshape(5, 1), np.arange(2)] *= 0.9
    return np.sum(x)


@pytest.mark.parametrize("function", [views, reversed_rows, swapped])
def test_writes_through_views_of_gathered_rows(function: Any) -> None:
    compiled = jk.jit(function)
    given = np.random.default_rng(0).normal(size=(4, 3))
    for n in (5, 1, 0):
        x, own = np.array(given, order="F"), np.array(given, order="F")
        assert np.isclose(compiled(x, places, n), function(own, places, n), rtol=1e-13)
        assert np.allclose(x, own, rtol=1e-13, atol=0)
    assert compiled.stats().kernels
    for one, call in ((x, compiled), (own, function)):
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            call(one, np.full(5, 4), 5)
    assert np.allclose(x, own, rtol=1e-13, atol=0)


def relaxed(x: Any, sources: Any, targets: Any, rounds: Any) -> Any:
    for _ in range(rounds):
        x = x * 0.5
        for _ in range(2):
            np.add.at(x, targets, x[sources])
    return x


def test_indices_that_stay_are_tested_before_the_loop() -> None:
    x, sources, targets = np.arange(40.0), np.arange(100) % 40, np.arange(100) % 7 - 7
    compiled = jk.jit(relaxed, strict=True)
    np.testing.assert_allclose(compiled(x, sources, targets, 3), relaxed(x, sources, targets, 3))
    before, _, inside = compiled.loops(x, sources, targets, 3).partition(": loop\n")
    assert before.count("accumulator of any") == 2
    assert "accumulator of any" not in inside


@pytest.mark.parametrize("index", [40, -41])
def test_indices_out_of_bounds_raise_where_the_loop_runs(index: int) -> None:
    x, sources = np.arange(40.0), np.arange(100) % 40
    wrong = np.where(sources == 9, index, sources)
    both: tuple[Any, Any] = jk.jit(relaxed), relaxed
    for compiled in both:
        np.testing.assert_array_equal(compiled(x, wrong, sources, 0), x)
        for arguments in ((wrong, sources), (sources, wrong)):
            with pytest.raises(IndexError):
                compiled(x, *arguments, 2)


def test_indices_that_change_are_tested_in_the_loop() -> None:
    def function(x: Any, idx: Any) -> Any:
        idx = idx.copy()
        for _ in range(4):
            x = x[idx]
            idx += 1
        return x

    x, idx = np.arange(40.0), np.arange(40) - 5
    for compiled in (jk.jit(function), function):
        with pytest.raises(IndexError):
            compiled(x, idx + 3)
    np.testing.assert_array_equal(jk.jit(function, strict=True)(x, idx), function(x, idx))


def all_near(mask: Any, r: Any) -> Any:
    found = np.empty_like(mask)
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            found[i, j] = mask[max(i - r, 0) : i + r + 1, max(j - r, 0) : j + r + 1].all()
    return found


def any_before(mask: Any, r: Any) -> Any:
    """A test of each row, which inner iterations share, and one of each column."""
    found = np.zeros(mask.shape, np.int64)
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            found[i, j] = (
                np.any(mask[max(i - r, 0) : i + 1, 0]) + 2 * np.any(mask[0, : j + 1]) + 4 * np.any(mask[r:, r])
            )
    return found


@pytest.mark.per_push
@pytest.mark.parametrize("function", [all_near, any_before])
def test_tests_of_windows_that_move(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    for shape in ((9, 12), (1, 5), (30, 40)):
        for share in (0.05, 0.9):
            mask = np.random.default_rng(3).random(shape) < share
            for r in (0, 2):
                if r < shape[0]:
                    np.testing.assert_array_equal(compiled(mask, r), function(mask, r))
