"""Euclidean distances and the loops of k-means against NumPy in long double, at sizes around those of tiles."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.patching.native_kernels import SamplePanels, euclidean_distances, nearest_rows

DTYPES = (np.float32, np.float64)
SHAPES = [
    (1, 1, 1),
    (2, 3, 5),
    (7, 33, 4),
    (12, 16, 20),
    (13, 65, 31),
    (97, 193, 17),
    (100, 128, 300),
    (200, 129, 1030),
]


def squares(x: AnyArray, y: AnyArray) -> AnyArray:
    differences = x.astype(np.longdouble)[:, np.newaxis] - y.astype(np.longdouble)
    result: AnyArray = (differences * differences).sum(axis=-1)
    return result


def samples(rows: int, columns: int, dtype: Any, seed: int) -> AnyArray:
    numbers: AnyArray = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)
    return numbers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("by_products", [False, True])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_euclidean_distances(dtype: Any, squared: bool, by_products: bool, is_symmetric: bool) -> None:
    for m, n, d in SHAPES:
        x = samples(m, d, dtype, 0)
        y = x if is_symmetric else samples(n, d, dtype, 1)
        norms = ((x * x).sum(axis=1), (y * y).sum(axis=1)) if by_products else None
        result = euclidean_distances(x, y, norms, squared=squared)
        expected = squares(x, y)
        limit = float(np.finfo(dtype).eps) * (d + 4) * (8 * d if by_products else 1)
        tolerance = limit if by_products else limit * expected
        error = np.abs((result if squared else np.square(result.astype(np.longdouble))) - expected)
        assert (error <= tolerance * 4).all(), (m, n, d)
        if is_symmetric:
            np.testing.assert_array_equal(result, result.T)
            assert not result.diagonal().any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_nearest_rows(dtype: Any, threads: int) -> None:
    before = jk.get_num_threads()
    jk.set_num_threads(threads)
    try:
        for m, n, d in [*SHAPES, (5000, 30, 20)]:
            x, y = samples(m, d, dtype, 0), samples(n, d, dtype, 1)
            labels, packed = np.full((2, m), -1, np.int32)
            nearest_rows(x, y, labels)
            SamplePanels(x).label(y, packed)
            np.testing.assert_array_equal(labels, packed)
            distances = squares(x, y)
            chosen = np.take_along_axis(distances, labels[:, np.newaxis].astype(np.intp), axis=1)[:, 0]
            assert (chosen <= distances.min(axis=1) + float(np.finfo(dtype).eps) * 16 * d * d).all()
    finally:
        jk.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equal_rows_is_nearest(dtype: Any) -> None:
    x, y = samples(70, 9, dtype, 0), samples(1, 9, dtype, 1).repeat(11, axis=0)
    labels = np.full(70, -1, np.int32)
    nearest_rows(x, y, labels)
    assert not labels.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_closest_squares(dtype: Any) -> None:
    for m, n, d in SHAPES:
        x, y = samples(n, d, dtype, 0), samples(m, d, dtype, 1)
        closest = np.random.default_rng(2).random(n).astype(dtype) * 2 * d
        z = np.empty((m, n), dtype)
        SamplePanels(x).closest_squares(y, closest, z)
        expected = np.minimum(squares(y, x), closest)
        np.testing.assert_allclose(z, expected.astype(dtype), rtol=float(np.finfo(dtype).eps) * (d + 8))
