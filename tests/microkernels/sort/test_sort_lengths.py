"""SORT and TOPK of rows of any length: full powers of two, and padded rows."""

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.gen.sort_topk import ALL, MAX_INSERTION_K
from jitkernels.microkernels.sort.merge_sort import MAX_MERGED_ELEMENTS, MAX_NETWORK_ELEMENTS

LENGTHS = sorted({k * MAX_NETWORK_ELEMENTS + d for k in (1, 2, 3, 4, 5, 6, 9, 12, 17) for d in (-1, 0, 1, 37)})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [*LENGTHS, MAX_MERGED_ELEMENTS - MAX_NETWORK_ELEMENTS - 1, MAX_MERGED_ELEMENTS])
def test_rows_are_sorted(n: int, dtype: str) -> None:
    generator = np.random.default_rng(n)
    x = np.stack([
        generator.standard_normal(n),
        generator.integers(-3, 3, n),
        np.arange(n)[::-1],
        np.arange(n),
        np.where(generator.random(n) < 0.3, np.inf, -np.inf),
        np.where(generator.random(n) < 0.3, np.nan, generator.standard_normal(n)),
    ]).astype(dtype)  # fmt: skip
    y = jk.sort(x)
    np.testing.assert_array_equal(y, np.sort(x, axis=-1))
    zeros = np.where(generator.random(n) < 0.5, -0.0, 0.0).astype(dtype)
    assert np.signbit(jk.sort(zeros)).sum() == np.signbit(zeros).sum()
    assert (np.diff(np.signbit(jk.sort(zeros)).astype(int)) <= 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "n", [MAX_INSERTION_K + 1, 100, ALL, ALL + 1, 1000, MAX_MERGED_ELEMENTS, MAX_MERGED_ELEMENTS + 1]
)
def test_topk_of_many_elements(n: int, dtype: str) -> None:
    """Ties resolve to the first; some differ only in their last bits, which do not fit into a word beside the index."""
    generator = np.random.default_rng(n)
    last_bits = generator.integers(0, 50, n) * np.finfo(dtype).eps
    x = np.stack([
        generator.standard_normal(n),
        generator.integers(-3, 3, n),
        1 + last_bits,
        np.where(generator.random(n) < 0.1, 1 + last_bits, generator.standard_normal(n)),
        np.where(generator.random(n) < 0.3, np.inf, -np.inf),
        np.where(generator.random(n) < 0.3, np.nan, generator.standard_normal(n)),
        np.where(generator.random(n) < 0.5, -0.0, 0.0),
    ]).astype(dtype)  # fmt: skip
    is_number = ~np.isnan(x)
    right = np.lexsort((-np.where(is_number, x, 0), is_number), axis=-1)
    for k in (MAX_INSERTION_K + 1, n // 2, n - 1, n):
        if k > MAX_INSERTION_K:
            values, indices = jk.topk(x, k)
            np.testing.assert_array_equal(indices, right[:, :k])
            assert values.tobytes() == np.take_along_axis(x, indices, -1).tobytes()
