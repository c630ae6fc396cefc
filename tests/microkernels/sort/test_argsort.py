"""ARGSORT of one row, against a stable argsort of NumPy: all lengths of short rows, and each way to sort."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jitkernels.attrs.argsort import ArgsortAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sort_topk import ORDERED
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen import argsort
from jitkernels.microkernels.sort import packed_argsort, pivot_selection, radix_argsort
from jitkernels.runtime.loading import loader

WAYS = ("32", "16", "without permutations", "by radix", "by narrow digits", "few bits beside indices")
SENTINEL = 77
LENGTHS = (
    *range(1, 70), *range(127, 131), *range(254, 259), *range(1022, 1027), 2049, 5001, 16_385,
)  # fmt: skip


@pytest.fixture(params=WAYS)
def vector_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of vectors, in code that sorts all rows, or all with long keys, in one way."""
    if request.param == "without permutations":
        monkeypatch.setattr(pivot_selection, "has_permutations", lambda *_: False)
    if request.param in ("by radix", "by narrow digits"):  # words never decide
        monkeypatch.setattr(packed_argsort, "WORD_BITS", 0)
        monkeypatch.setattr(packed_argsort, "MOVES_PER_ELEMENT", -1)
    if request.param == "by narrow digits":
        monkeypatch.setattr(radix_argsort, "WIDE_DIGITS_FROM", 1 << 40)
        monkeypatch.setattr(packed_argsort, "WIDE_DIGITS_FROM", 1 << 40)
    if request.param == "few bits beside indices":
        monkeypatch.setattr(packed_argsort, "WORD_BITS", 24)
    return 16 if request.param == "16" else 32


def rows(n: int, dtype: str) -> Iterator[tuple[str, AnyArray]]:
    generator, number = np.random.default_rng(n), np.arange(n)
    if np.dtype(dtype).kind == "f":
        limits: Any = np.finfo(dtype)
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, limits.max, limits.tiny, limits.smallest_subnormal]
        yield "normal", generator.standard_normal(n).astype(dtype)
        yield "zeros", np.where(generator.random(n) < 0.5, 0.0, -0.0).astype(dtype)
        yield "some NaN", np.where(generator.random(n) < 0.3, np.nan, generator.standard_normal(n)).astype(dtype)
        yield "all NaN", np.full(n, np.nan, dtype)
        yield "last bits", (1 + generator.integers(0, 50, n) * limits.eps).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, 2]
        yield "all values", generator.integers(limits.min, limits.max, n, dtype, endpoint=True)
        yield "the largest", (limits.max - generator.integers(0, 9, n).astype(dtype)).astype(dtype)
        yield "the smallest", (limits.min + generator.integers(0, 9, n).astype(dtype)).astype(dtype)
    yield "special", generator.choice(np.array(special, dtype), n)
    yield "bytes", generator.integers(0, 1 << 7, n).astype(dtype)
    yield "as many as elements", generator.integers(0, n, n).astype(dtype)
    yield "thousands", generator.integers(0, 1 << 18, n).astype(dtype)
    yield "first bits", (generator.integers(0, 4, n) << 29).astype(dtype)
    yield "first and last bits", ((generator.integers(0, 4, n) << 28) + generator.integers(0, 2, n)).astype(dtype)
    yield "sorted", number.astype(dtype)
    yield "reversed", number[::-1].astype(dtype)
    yield "reversed but for two equal ones", np.repeat(number[::-1], 2)[:n].astype(dtype)
    yield "equal", np.full(n, 3, dtype)
    yield "all but one equal", np.where(number == n // 3, 1, 2).astype(dtype)
    yield "two values", generator.integers(0, 2, n).astype(dtype)
    yield "sawtooth", (number % 16).astype(dtype)
    yield "largest in front", np.concatenate((number[n // 2 :], number[: n // 2])).astype(dtype)


def function_of(nest: RangeKernel) -> Any:
    kinds = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * (len(nest.arguments) - 2)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(loader.address_of(nest))


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.per_push(10)
def test_indices_are_those_of_a_stable_sort(dtype: str, vector_bytes: int) -> None:
    """Nothing is written around them."""
    attr = ArgsortAttr(rows=1, n=5001, dtype=dtype)
    sort = function_of(argsort.argsort(attr, vector_bytes=vector_bytes, parallel=False))
    for n in LENGTHS:
        for name, x in rows(n, dtype):
            y, before = np.full(n + 2, SENTINEL), x.tobytes()
            assert sort(x.ctypes.data, y[1:].ctypes.data, 1, n) == 0
            right = np.argsort(x, kind="stable")
            np.testing.assert_array_equal(y[1:-1], right, err_msg=f"{name} of {n}")
            assert y[0] == y[-1] == SENTINEL
            assert x.tobytes() == before


def test_many_rows_share_buffers() -> None:
    for n in (3, 64, 65, 256, 257, 3000):
        x = np.random.default_rng(n).integers(0, 1 << 40, (5, n))
        y = np.empty((5, n), np.int64)
        sort = function_of(argsort.argsort(ArgsortAttr(rows=5, n=n, dtype="int64")))
        assert sort(x.ctypes.data, y.ctypes.data, 5, n) == 0
        np.testing.assert_array_equal(y, np.argsort(x, axis=-1, kind="stable"))
