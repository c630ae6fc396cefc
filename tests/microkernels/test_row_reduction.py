"""Vectorized row sums: every length, next to guard pages."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
import pytest

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.reduction.simd_row_sum import row_squares, row_sum
from jitkernels.runtime.loading import loader
from jitkernels.tools.testing.guard_pages import Guarded

LENGTHS = (*range(140), 255, 256, 1000)
MEAN = 0.25


def called(dtype: str, width: int) -> Callable[[Any, Any, int], int]:
    """The function ``(x, y, n)`` that writes both sums of x to y."""
    sum_of, squares_of, number = row_sum(dtype, width), row_squares(dtype, width), np.dtype(dtype).type

    def body(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        y[0] = sum_of(x, n)
        y[1] = squares_of(x, n, number(MEAN))

    nest = RangeKernel("both_sums", (f"{dtype}*", f"{dtype}*", "int64"), body, extent=2)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    found: Callable[[Any, Any, int], int] = kind(loader.address_of(nest))
    return found


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_every_length(monkeypatch: pytest.MonkeyPatch, dtype: str, width: int, masks: bool) -> None:
    target = cpu_target.target()
    if not masks:
        monkeypatch.setattr(cpu_target, "target", lambda: replace(target, features=target.features - {"avx512vl"}))
    both = called(dtype, width)
    random = np.random.default_rng(width)
    for n in LENGTHS:
        for side in ("start", "end"):
            guarded = Guarded(random.integers(-99, 99, n).astype(dtype) / 4, side)  # whose sums are exact
            x, y = guarded.array, np.empty(2, dtype)
            assert both(x.ctypes.data, y.ctypes.data, n) == 0
            assert y[0] == fsum(x), (n, side)
            assert y[1] == fsum((x.astype(np.float64) - MEAN) ** 2), (n, side)
            assert guarded.intact()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_at_every_position(dtype: str) -> None:
    both = called(dtype, 64)
    y = np.empty(2, dtype)
    for n in (1, 7, 16, 70, 139):
        x = np.full(n, -0.0, dtype)
        both(x.ctypes.data, y.ctypes.data, n)
        assert np.signbit(y[0]), n
        for at in range(n):
            for value in (np.nan, np.inf, -np.inf):
                x = np.ones(n, dtype)
                x[at] = value
                both(x.ctypes.data, y.ctypes.data, n)
                assert np.array_equal(y[:1], np.array([value], dtype), equal_nan=True), (n, at)
                assert not y[1] < np.inf, (n, at)
