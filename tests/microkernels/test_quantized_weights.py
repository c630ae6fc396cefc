"""Products with quantized weights, whose access pattern depends on their size."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED

DEPTH = 4096
COLUMNS = STREAMED // DEPTH + 3
"""Of bytes, more than are read as if caches held them, and a number that no columns side by side divide."""


@pytest.mark.parametrize(
    ("function", "dtype", "size", "rounded"),
    [
        (jk.matmul_int8_weights, "int8", 32, "float"),
        (jk.matmul_int8_weights, "int8", 32, "int8"),
        (jk.matmul_int8_weights, "int8", DEPTH, "int16"),
        (jk.matmul_int4, "uint8", 64, "int8"),
    ],
)
def test_streamed_weights_have_the_bits_of_cached_ones(function: Any, dtype: str, size: int, rounded: str) -> None:
    generator = np.random.default_rng(0)
    groups = DEPTH // size
    weights = generator.integers(0, 256, (COLUMNS, groups, size), np.uint8).view(dtype)
    scale = generator.random((COLUMNS, groups), np.float32)
    a = generator.random(DEPTH * (2 if dtype == "uint8" else 1), np.float32)
    half = COLUMNS // 2
    parts = [function(a, weights[some], scale[some], rounded=rounded) for some in (slice(half), slice(half, COLUMNS))]
    assert np.array_equal(function(a, weights, scale, rounded=rounded), np.concatenate(parts))
