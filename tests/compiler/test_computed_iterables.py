"""Loops over slices at computed bounds, together, and functions of computed arguments in loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def pairs(data: Any, places: Any, starts: Any, x: Any) -> Any:
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        for j, v in zip(places[starts[i] : starts[i + 1]], data[starts[i] : starts[i + 1]]):  # noqa: B905
            y[i] += v * x[j]
    return y


def pairs_of_same_length(data: Any, places: Any, starts: Any, x: Any) -> Any:
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        for j, v in zip(places[starts[i] : starts[i + 1]], data[starts[i] : starts[i + 1]], strict=True):
            y[i] += v * x[j]
    return y


def pairs_of_other_lengths(data: Any, places: Any, starts: Any, x: Any) -> Any:
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        for j, v, k in zip(places[starts[i] : starts[i + 1]], data[starts[i] :], range(2, 5)):  # noqa: B905
            y[i] += k * v * x[j]
    return y


def with_a_range(data: Any, places: Any, starts: Any, x: Any) -> Any:
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        for k, j in zip(range(starts[i], starts[i + 1]), places[starts[i] : starts[i + 1]]):  # noqa: B905
            y[i] += data[k] * x[j]
    return y


def first_elements(data: Any, places: Any, starts: Any, x: Any) -> Any:
    """Elements of views that shrink."""
    m = np.outer(data[:9], x)
    total = 0.0
    for k in range(m.shape[1]):
        column = m[k:, k]
        total += column[0] - m[k:, k:][0, 0]
    return total


def rolled(data: Any, places: Any, starts: Any, x: Any) -> Any:
    y = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        y[i] = np.roll(x, places[i])
    return y


def counted(data: Any, places: Any, starts: Any, x: Any) -> Any:
    for _ in range(len(starts)):
        x = x + np.bincount(places, weights=data * x[places], minlength=len(x))
    return x


@pytest.mark.parametrize(
    "function",
    [pairs, pairs_of_same_length, pairs_of_other_lengths, with_a_range, first_elements, rolled, counted],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_loops_over_slices(function: Callable[..., Any], backend: str) -> None:
    compiled = jk.jit(function, strict=True, backend=backend)
    for seed, size in enumerate((2, 5, 9)):
        arguments = sparse(seed, size)
        np.testing.assert_allclose(compiled(*arguments), function(*arguments), rtol=1e-12)


def sparse(seed: int, size: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(generator.integers(0, 4, size)), [10 + 4 * size]])
    return generator.random(starts[-1]), generator.integers(0, size, starts[-1]), starts, generator.random(size)


def lengths_differ(data: Any, places: Any, starts: Any, x: Any) -> Any:
    total = 0.0
    for i in range(len(starts) - 1):
        for j, v in zip(places[starts[i] : starts[i + 1]], data[: starts[i]], strict=True):
            total += x[j] * v
    return total


def test_strict_zip_raises_as_python_does() -> None:
    with pytest.raises(ValueError, match="zip"):
        jk.jit(lengths_differ)(*sparse(1, 5))
