"""Arguments of programs: random arrays of about a number of elements, with reproducible values."""

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import Arguments

MIN_SAMPLES, MIN_SIDE = 4, 3
"""Minima for samples that vary, and for a grid point with neighbours on every side."""


def values(shape: int | tuple[int, ...], dtype: str, low: float = 0.0, high: float = 1.0, seed: int = 0) -> Any:
    """Return random numbers between two limits."""
    drawn = np.random.default_rng(seed).random(shape, np.float64)
    return (low + (high - low) * drawn).astype(dtype)


def vectors(count: int, low: float = -2.0, high: float = 2.0) -> Arguments:
    """Return a factory of `count` one-dimensional arrays."""
    return lambda elements, dtype: tuple(values(elements, dtype, low, high, seed) for seed in range(count))


def rows(elements: int) -> tuple[int, int]:
    """Return a nearly square shape; the number of columns is the next power of two."""
    columns = 1 << (max(elements, 1).bit_length() // 2)
    return max(1, elements // columns), columns


def matrices(count: int) -> Arguments:
    """Return a factory of `count` matrices."""
    return lambda elements, dtype: tuple(values(rows(elements), dtype, -2, 2, seed) for seed in range(count))


def with_columns(*limits: tuple[float, float]) -> Arguments:
    """Return a factory of a matrix, and for each pair of limits an array with a number for each column."""

    def arguments(elements: int, dtype: str) -> tuple[Any, ...]:
        shape = rows(elements)
        further = (values(shape[1], dtype, *limit, seed) for seed, limit in enumerate(limits, 1))
        return (values(shape, dtype, -2, 2), *further)

    return arguments


def grid(*after: Any, channels: int = 0) -> Arguments:
    """Return a factory of a square grid, of one or several channels, and the program's other arguments."""

    def arguments(elements: int, dtype: str) -> tuple[Any, ...]:
        side = max(MIN_SIDE, isqrt(elements // max(channels, 1)))
        return (values((side, side, channels) if channels else (side, side), dtype), *after)

    return arguments


def samples(features: int, *further: Callable[[int, int, str], Any]) -> Arguments:
    """Return a factory of samples of at most `features` features, and the arguments that `further` computes."""

    def arguments(elements: int, dtype: str) -> tuple[Any, ...]:
        columns = min(features, max(1, elements // 4))
        count = max(MIN_SAMPLES, elements // columns)
        return (values((count, columns), dtype, -1, 1), *(make(count, columns, dtype) for make in further))

    return arguments
