"""Quicksort and selection of one row: adversarial keys, all tails of vectors, each width, and badly divided parts."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jitkernels.attrs.order_statistics import OrderStatisticsAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sort_topk import SortAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen import order_statistics, sort_topk
from jitkernels.microkernels.sort import pivot_selection, quicksort
from jitkernels.runtime.loading import loader

DTYPES = ("float32", "float64")
INTEGERS = ("int32", "int64", "uint64")
WAYS = ("32", "16", "without permutations", "never divided again", "rarely divided")
SENTINEL = 77.0
LENGTHS = (*range(1, 71), *range(129, 200), 255, 256, 257, 1000, 2047, 2048, 2049, 5001)


@pytest.fixture(params=WAYS)
def vector_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of vectors, in code for this processor, for one without permutations, or with few divisions."""
    if request.param == "without permutations":
        monkeypatch.setattr(pivot_selection, "has_permutations", lambda *_: False)
        monkeypatch.setattr(quicksort, "has_permutations", lambda *_: True)
    if "divided" in request.param:
        monkeypatch.setattr(quicksort, "PARTITIONS_PER_BIT", int("rarely" in request.param))
    return 16 if request.param == "16" else 32


def rows(n: int, dtype: str) -> Iterator[tuple[str, AnyArray]]:
    """Rows that pivots divide badly, or not at all."""
    generator = np.random.default_rng(n)
    number = np.arange(n)
    normal = generator.standard_normal(n)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).max, np.finfo(dtype).tiny])
    yield from {
        "normal": normal,
        "sorted": number,
        "reversed": number[::-1],
        "up and down": np.minimum(number, number[::-1]),
        "sawtooth": number % 16,
        "equal": np.full(n, -3.0),
        "all but one equal": np.where(number == n // 3, 1.0, 2.0),
        "two values": generator.integers(0, 2, n),
        "few values": generator.integers(-3, 4, n),
        "mostly one value": np.where(generator.random(n) < 0.9, 0.5, normal),
        "special": generator.choice(special, n),
        "some NaN": np.where(generator.random(n) < 0.3, np.nan, normal),
        "all NaN": np.full(n, np.nan),
        "zeros": np.where(generator.random(n) < 0.5, 0.0, -0.0),
        "powers": np.ldexp(1.0, number % 250 - 125) * np.where(number % 3, 1, -1),
        "median of three killer": np.where(number % 2, number, number[::-1] // 2),
        "largest in front": np.concatenate((number[n // 2 :], number[: n // 2])),
    }.items()


def function_of(nest: RangeKernel, pointers: int) -> Any:
    kinds = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * (len(nest.arguments) - pointers)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(loader.address_of(nest))


def in_order(x: AnyArray) -> AnyArray:
    return x[np.lexsort((~np.signbit(x), np.where(np.isnan(x), 0, x), np.isnan(x)))]


def bits(x: AnyArray) -> AnyArray:
    """NaN have one value, zeros two."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.itemsize}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted(dtype: str, vector_bytes: int) -> None:
    """Into memory of its own, and in place; nothing is written around it."""
    nest = sort_topk.sort(SortAttr(rows=1, n=5001, dtype=dtype), vector_bytes=vector_bytes, parallel=False)
    sort = function_of(nest, 2)
    for n in LENGTHS:
        for name, values in rows(n, dtype):
            x, y = values.astype(dtype), np.full(n + 200, SENTINEL, dtype)
            before, right = x.copy(), in_order(values.astype(dtype))
            assert sort(x.ctypes.data, y[100:].ctypes.data, 1, n) == 0
            np.testing.assert_array_equal(bits(y[100 : n + 100]), bits(right), err_msg=f"{name} of {n}")
            assert (np.delete(y, np.s_[100 : n + 100]) == SENTINEL).all(), f"{name} of {n}"
            assert x.tobytes() == before.tobytes()
            sort(x.ctypes.data, x.ctypes.data, 1, n)
            np.testing.assert_array_equal(bits(x), bits(right), err_msg=f"{name} of {n} in place")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.per_push(6)
def test_rows_of_integers_are_sorted(dtype: str, vector_bytes: int) -> None:
    """Into memory of its own, and in place; nothing is written around it."""
    limits: Any = np.iinfo(dtype)
    nest = sort_topk.sort(SortAttr(rows=1, n=5001, dtype=dtype), vector_bytes=vector_bytes, parallel=False)
    sort = function_of(nest, 2)
    for n in LENGTHS:
        generator, number = np.random.default_rng(n), np.arange(n)
        extremes = np.array([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype)
        for values in (
            generator.integers(limits.min, limits.max, n, dtype, endpoint=True), generator.choice(extremes, n),
            generator.integers(0, 5, n), number, number[::-1], np.full(n, 3), number % 16,
        ):  # fmt: skip
            x, y, right = values.astype(dtype), np.full(n + 200, 77, dtype), np.sort(values.astype(dtype))
            assert sort(x.ctypes.data, y[100:].ctypes.data, 1, n) == 0
            np.testing.assert_array_equal(y[100 : n + 100], right)
            assert (np.delete(y, np.s_[100 : n + 100]) == 77).all()
            sort(x.ctypes.data, x.ctypes.data, 1, n)
            np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "count", [0, 1, 3, order_statistics.MAX_SELECTED_INDICES, order_statistics.MAX_SELECTED_INDICES + 1]
)
@pytest.mark.per_push(10)
def test_elements_are_selected(dtype: str, count: int, vector_bytes: int) -> None:
    attr = OrderStatisticsAttr(rows=1, n=5001, count=count, dtype=dtype)
    select = function_of(order_statistics.order_statistics(attr, vector_bytes=vector_bytes, parallel=False), 3)
    generator = np.random.default_rng(count)
    for n in LENGTHS[count % 3 :: 5]:
        for name, values in rows(n, dtype):
            x, k = values.astype(dtype), generator.integers(0, n, count)
            y = np.full(count + 2, SENTINEL, dtype)
            assert select(x.ctypes.data, k.ctypes.data, y[1:].ctypes.data, 1, n, count) == 0
            np.testing.assert_array_equal(bits(y[1:-1]), bits(in_order(x)[k]), err_msg=f"{name} of {n} at {k}")
            assert y[0] == y[-1] == SENTINEL
