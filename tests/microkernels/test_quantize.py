"""QUANTIZE by the reciprocal: rounded as quotients are, also near ties."""

import numpy as np
import pytest

import jitkernels as jk

SCALES = (0.02, 1 / 3, 2.0, -0.7, 1e-3, 3e-39, 1e38, 0.0, np.inf, np.nan)
"""Of which a reciprocal is right, is none of a normal number, or is none at all."""
COUNT = 3000


@pytest.mark.parametrize("q_dtype", ["int8", "uint8"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_near_ties(dtype: str, q_dtype: str) -> None:
    random = np.random.default_rng(3)
    scale = np.array(SCALES, dtype)
    x = np.empty((scale.size, COUNT), dtype)
    for row, factor in zip(x, scale, strict=True):
        with np.errstate(all="ignore"):
            row[:] = (random.integers(-300, 300, COUNT) + 0.5).astype(dtype) * factor
    bits = x.view(f"i{x.itemsize}")
    bits[:, ::2] += random.integers(-2, 3, (scale.size, COUNT // 2))
    x[:, COUNT // 2 :] = random.normal(0, 1, (scale.size, COUNT // 2))  # whose blocks need no division
    x[:, 1000:1003] = np.nan, np.inf, -np.inf
    x[:, 2200:2204] = 1e30, -1e30, np.inf, -np.inf
    x[::2, 2700], x[1::2, 2700] = np.nan, np.copysign(np.nan, -1)
    zero = random.integers(0, 100, scale.size).astype(q_dtype)
    attr = jk.QuantizeAttr(rows=scale.size, n=COUNT, q_dtype=q_dtype, dtype=dtype)
    found, expected = (np.empty(x.shape, q_dtype) for _ in range(2))
    jk.get_all_candidates(attr)["gen"](x, scale, zero, found)
    jk.get_refer(attr)(x, scale, zero, expected)
    assert (found == expected).all()
