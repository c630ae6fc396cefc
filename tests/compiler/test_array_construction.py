"""Grids, medians, reductions of lists, elements of reshaped arrays, and arrays in C order that loops replace."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmarks.science.science_program import results_of
from jitkernels.compiler.capture.numpy.order_statistics import LONGEST_NETWORK, exchanges

X = np.random.default_rng(0).random((24, 30))


def grids(x: Any) -> Any:
    height, width = x.shape
    rows, columns = np.mgrid[0:height, 1:width:3]
    open_rows, open_columns = np.ogrid[0:height, 0:width]
    return rows + 100 * columns, open_rows * open_columns, np.mgrid[0:width]


def medians(x: Any) -> Any:
    rows = [x[:2].sum(axis=1), np.median(x, axis=0), np.median(x[:, :4], axis=1), np.median(x), np.median(x, axis=1)]
    return (*rows, np.median(x, keepdims=True), np.median(np.stack([x[0], x[1], x[2]]), axis=0))


def median_filter(x: Any) -> Any:
    out = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = np.median(x[i - 1 : i + 2, j - 1 : j + 2])
    return out


def reduced_lists(x: Any) -> Any:
    best = x
    for i in range(9):
        best = np.maximum.reduce([best, x[::-1], x * (0.1 * i)])
    return best, np.add.reduce((x, 2 * x), axis=0) if x.shape[0] > 1 else best


def reshaped_elements(x: Any) -> Any:
    flat, pairs, total = x.ravel(), x.reshape(-1, 2), 0.0
    for i in range(flat.size):
        if flat[i] > 0.5:
            total += flat[i]
    for i in range(pairs.shape[0]):
        for j in range(2):
            total += pairs[i, j] * (i + 2 * j)
    flat[3] = 7.0
    for i in range(9):
        flat[i + 1] += total
    return total, x


def replaced_by_views(x: Any) -> Any:
    square = x[:, :24].copy()
    while square.min() < 0.7:
        new = np.maximum(square, square[::-1] + 0.1)
        square = np.maximum(new, square[:, 3, None] + square[None, 3, :])
    return square


@pytest.mark.parametrize(
    "function", [grids, medians, median_filter, reduced_lists, reshaped_elements, replaced_by_views]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_programs(function: Any, dtype: str) -> None:
    given = X.astype(dtype)
    expected, got = results_of(function(given.copy())), results_of(jk.jit(function, strict=True)(given.copy()))
    assert [one.dtype for one in got] == [one.dtype for one in expected]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12 if dtype == "float64" else 1e-5)


def test_medians_with_nan_and_infinities() -> None:
    given = X.copy()
    given[3, 4], given[5, 6], given[5, 7], given[6, :16] = np.nan, np.inf, -np.inf, np.inf
    for one, other in zip(jk.jit(medians, strict=True)(given), medians(given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)  # sums in another order


@pytest.mark.parametrize("count", range(1, LONGEST_NETWORK + 1))
def test_networks_sort(count: int) -> None:
    """A network that sorts all sequences of zeros and ones sorts all sequences."""
    bits = np.arange(2 ** min(count, 14))[:, None] >> np.arange(count) & 1
    bits[:, 14:] = np.random.default_rng(count).integers(0, 2, bits[:, 14:].shape)
    expected = np.sort(bits, axis=1)
    for first, second in exchanges(count):
        low, high = np.minimum(*bits[:, [first, second]].T), np.maximum(*bits[:, [first, second]].T)
        bits[:, first], bits[:, second] = low, high
    assert np.array_equal(bits, expected)
