"""Functions of ``@numba.stencil`` in compiled functions, against slices of arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import stencil

import jitkernels as jk
from jitkernels.errors import TracingError


def _peaks(x: Any) -> Any:
    return (x[0] > x[-1]) & (x[0] >= x[1])


def _shift(x: Any) -> Any:
    a = x[1] + x[-1] - 2 * x[0]
    b = (x[1] - x[-1]) / 2
    if np.abs(b) >= np.abs(a):
        return 0
    return -b / a


def _mean_of_neighbors(x: Any) -> Any:
    return 0.25 * (x[0, 1] + x[0, -1] + x[1, 0] + x[-1, 0])


def _moving_sum(x: Any) -> Any:
    total = 0.0
    for i in range(-3, 1):
        total += x[i]
    return total


def _weighted(x: Any, w: Any, scale: Any) -> Any:
    return x[-1] * w[0] + x[0] * w[1] + scale * x[1]


peaks: Any = stencil(_peaks)
shift: Any = stencil(_shift)
mean_of_neighbors: Any = stencil(cval=np.float64(1.5))(_mean_of_neighbors)
moving_sum: Any = stencil(neighborhood=((-3, 0),), cval=np.nan)(_moving_sum)
weighted: Any = stencil(standard_indexing=("w",))(_weighted)
WEIGHTS = np.array([0.5, -2.0])


def expected_shift(x: Any) -> Any:
    result = np.zeros(len(x))
    a, b = x[2:] + x[:-2] - 2 * x[1:-1], (x[2:] - x[:-2]) / 2
    result[1:-1] = np.where(np.abs(b) >= np.abs(a), 0, -b / a)
    return result


def expected_mean(x: Any) -> Any:
    result = np.full(x.shape, 1.5)
    result[1:-1, 1:-1] = 0.25 * (x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1])
    return result


CASES: list[tuple[Any, Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda x: peaks(x), lambda x: np.r_[False, (x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:]), False], (30,)),
    (lambda x: shift(x), expected_shift, (30,)),
    (lambda x: mean_of_neighbors(x), expected_mean, (8, 9)),
    (lambda x: moving_sum(x), lambda x: np.r_[[np.nan] * 3, np.convolve(x, np.ones(4), "valid")], (30,)),
    (
        lambda x: weighted(x, WEIGHTS, 3.0),
        lambda x: np.r_[0, x[:-2] * WEIGHTS[0] + x[1:-1] * WEIGHTS[1] + 3 * x[2:], 0],
        (30,),
    ),
]


@pytest.mark.parametrize(("function", "expected", "shape"), CASES)
def test_stencils(function: Callable[..., Any], expected: Callable[..., Any], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape)
    got = jk.jit(function, strict=True)(x)
    np.testing.assert_allclose(got, expected(x), rtol=1e-12)
    assert got.dtype == np.asarray(expected(x)).dtype


def test_other_kernels_are_refused() -> None:
    factor = 2.0
    closed: Any = stencil(lambda x: factor * x[0] + x[1])
    with pytest.raises(TracingError, match="stencil of slices, of free variables"):
        jk.jit(lambda x: closed(x), strict=True)(np.ones(5))
