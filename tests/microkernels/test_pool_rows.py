"""Vectorized pooling of rows: every width and number of rows, next to guard pages."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.reduction.embedding_bag_lanes import pool_lanes
from jitkernels.microkernels.reduction.embedding_bag_rows import pool_rows
from jitkernels.runtime.loading import loader
from jitkernels.tools.testing.guard_pages import Guarded

FEATURES = {"all": (), "without flags": ("avx512vl",), "without masks": ("avx512vl", "avx2")}
SCALE = 0.5
ROWS = (1, 2, 7, 8, 9, 17)


@pytest.fixture(params=FEATURES)
def masks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """This processor's features, and fewer features with vectors of the same width."""
    target = cpu_target.target()
    less = replace(target, features=target.features.difference(FEATURES[request.param]))
    monkeypatch.setattr(cpu_target, "target", lambda: less)
    return str(request.param)


def called(name: str, arguments: tuple[str, ...], body: Any) -> Callable[..., int]:
    """The function of a loop nest, for addresses and numbers."""
    nest = RangeKernel(name, arguments, body, extent=len(arguments) - 1)
    kinds = [ctypes.c_void_p if "*" in kind else ctypes.c_int64 for kind in arguments]
    found: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(loader.address_of(nest))
    return found


def joined_rows(pool: str, dtype: str, width: int, looked_up: bool) -> Callable[..., int]:
    """``(x, y, ids, stride, rows, columns, is_more, step)``"""
    rows_to_one = pool_rows(pool, dtype, width, looked_up=looked_up)
    is_scaled, scale = pool == "mean", np.dtype(dtype).type(SCALE)

    def body(
        x: Any, y: Any, ids: Any, stride: int, rows: int, columns: int, is_more: int, step: int, begin: int, end: int
    ) -> None:
        if is_scaled:
            if looked_up:
                rows_to_one(x, stride, rows, y, columns, is_more, scale, ids, step)
            else:
                rows_to_one(x, stride, rows, y, columns, is_more, scale)
        elif looked_up:
            rows_to_one(x, stride, rows, y, columns, is_more, ids, step)
        else:
            rows_to_one(x, stride, rows, y, columns, is_more)

    return called("joined_rows", (f"{dtype}*", f"{dtype}*", "int64*", *5 * ["int64"]), body)


def true(pool: str, rows: AnyArray) -> AnyArray:
    """Exact, as the numbers of these tests are small."""
    found: AnyArray = rows.max(axis=0) if pool == "max" else rows.sum(axis=0) * (SCALE if pool == "mean" else 1)
    return found


@pytest.mark.parametrize("looked_up", [False, True])
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_rows_of_every_width(masks: str, pool: str, dtype: str, width: int, looked_up: bool) -> None:
    join, random = joined_rows(pool, dtype, width, looked_up), np.random.default_rng(width)
    lanes = width // np.dtype(dtype).itemsize
    for columns in (*range(1, 4 * lanes + 2), 9 * lanes + 1):
        for h in ROWS:
            for side in ("start", "end"):
                values = random.integers(-99, 99, (h, columns)).astype(dtype)
                if pool == "max" and random.random() < 0.5:
                    values[random.integers(h), random.integers(columns)] = np.nan
                x, y = Guarded(values, side), Guarded(np.ones(columns, dtype), side)
                step = 3
                ids = random.integers(0, h, h * step) if looked_up else np.repeat(np.arange(h), step)
                rows = values[ids[::step]]
                for is_more in (0, 1):
                    expected = true(pool, np.vstack([y.array, rows]) if is_more else rows)
                    places = (x.array.ctypes.data, y.array.ctypes.data, ids.ctypes.data)
                    assert join(*places, columns, h, columns, is_more, step) == 0
                    np.testing.assert_array_equal(y.array, expected, str((columns, h, side, is_more)))
                assert x.intact()
                assert y.intact()


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_vectors_of_narrow_rows(pool: str, dtype: str, width: int) -> None:
    lanes_to_row, scale = pool_lanes(pool, dtype, width), np.dtype(dtype).type(SCALE)

    def body(x: Any, y: Any, n: int, w: int, begin: int, end: int) -> None:
        lanes_to_row(x, n, y, w, scale)

    join = called("joined_lanes", (f"{dtype}*", f"{dtype}*", "int64", "int64"), body)
    random = np.random.default_rng(width)
    lanes = min(width, cpu_target.target().vector_bytes) // np.dtype(dtype).itemsize
    for w in (1, 2, 4, 8, 16):
        for h in (*range(lanes // w, 4 * lanes), 40 * lanes + 1):
            if w > lanes or h == 0:
                continue
            values = random.integers(-99, 99, (h, w)).astype(dtype)
            if pool == "max" and random.random() < 0.5:
                values[random.integers(h), random.integers(w)] = np.nan
            x, y = Guarded(values, "end"), Guarded(np.ones(w, dtype), "end")
            assert join(x.array.ctypes.data, y.array.ctypes.data, h * w, w) == 0
            np.testing.assert_array_equal(y.array, true(pool, values), str((h, w)))
            assert x.intact()
            assert y.intact()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_negative_zeros_and_lowest_numbers(masks: str, dtype: str) -> None:
    for columns in (1, 3, 70):
        for h in ROWS:
            for pool, value in (("sum", -0.0), ("mean", -0.0), ("max", -np.inf)):
                x, y = np.full((h, columns), value, dtype), np.ones(columns, dtype)
                ids = np.zeros(1, np.int64)
                places = (x.ctypes.data, y.ctypes.data, ids.ctypes.data)
                assert joined_rows(pool, dtype, 64, False)(*places, columns, h, columns, 0, 1) == 0
                assert (y == value).all(), (pool, columns, h)
                assert np.signbit(y).all(), (pool, columns, h)
