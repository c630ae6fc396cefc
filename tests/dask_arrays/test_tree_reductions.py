"""Reductions by a tree: values are NumPy's, and bits those of any scheduler."""

from typing import Any

import dask.array as da
import numpy as np
import pytest

from jitkernels.dask_arrays.tree_reduction import KINDS, reduce_blocks
from jitkernels.errors import ArgumentError

X = np.random.default_rng(0).random((40, 33)) + 0.5


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind: str, axis: Any) -> None:
    lazy = da.from_array(X, chunks=(7, (10, 20, 3)))
    for keepdims in (False, True):
        result = reduce_blocks(lazy, kind, axis=axis, keepdims=keepdims)
        truth = getattr(np, kind)(X, axis=axis, keepdims=keepdims)
        assert (result.shape, result.dtype) == (truth.shape, truth.dtype)
        np.testing.assert_allclose(result.compute(scheduler="sync"), truth, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool", "complex128"])
def test_dtypes_are_those_of_numpy(dtype: str) -> None:
    x = (X * 3).astype(dtype)
    result = reduce_blocks(da.from_array(x, chunks=9))
    assert result.dtype == x.sum().dtype
    np.testing.assert_allclose(result.compute(scheduler="sync"), x.sum(), rtol=1e-5)


def test_schedulers_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_POLICY", "reproducible")
    lazy = da.from_array(X * 1e3, chunks=(3, 4))
    result = reduce_blocks(lazy, before=np.sqrt, split_every=2)
    bits = {
        float(result.compute(scheduler=scheduler)).hex() for scheduler in ("sync", "threads", "threads", "processes")
    }
    assert len(bits) == 1
    np.testing.assert_allclose(float.fromhex(bits.pop()), np.sqrt(X * 1e3).sum(), rtol=1e-12)


def test_what_is_refused() -> None:
    lazy = da.from_array(X, chunks=9)
    with pytest.raises(ArgumentError, match="kind: expected sum"):
        reduce_blocks(lazy, "median")
    with pytest.raises(ArgumentError, match="expected known chunks"):
        reduce_blocks(lazy[lazy[:, 0] > 1], "mean")


def test_axes_that_do_not_exist_or_repeat() -> None:
    x = da.ones((4, 4), chunks=2, dtype=np.float32)
    for axis in (2, -3, (0, -2), (0, 0)):
        with pytest.raises(ArgumentError, match="axis: expected different axes of 2"):
            reduce_blocks(x, "sum", axis=axis)
    assert reduce_blocks(x, "mean", axis=(0, 1)).dtype == np.float32
