"""Cumulative sums, products and extremes: bitwise NumPy's, fused with surrounding operations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.tools.testing.guard_pages import Guarded, Side

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "uint64")
SIDES: tuple[Side, ...] = ("start", "end")
SHAPES = ((1,), (2,), (333,), (5, 40), (40, 5), (3, 4, 70), (0,), (3, 0))
chosen = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def _compile_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)


def array(*shape: int, dtype: str = "float64") -> Any:
    """Numbers of which sums are rounded, and some that are special."""
    if dtype[0] != "f":
        return chosen.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    found = np.asarray(chosen.standard_normal(shape) * 3, dtype)
    return np.where(chosen.random(shape) < 0.05, np.array(-0.0, dtype), found)


def same(compiled: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> None:
    with np.errstate(all="ignore"):
        expected = function(*arguments)
        for _ in range(3):
            found = compiled(*arguments)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
            assert found.dtype == expected.dtype


def agrees(function: Callable[..., Any], *arguments: Any, kernels: int | None = None) -> None:
    """Fail unless a function gives the same bits compiled, in so many kernels and no call of NumPy."""
    compiled = jk.jit(function)
    same(compiled, function, *arguments)
    explained = compiled.explain(*arguments)
    assert not any(group.kind == "NumPy" and group.text != "reshape" for group in explained.groups), str(explained)
    if kernels is not None:
        assert explained.kernels == kernels, str(explained)


SCANS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis=axis),
    "maximum": lambda x, axis: np.maximum.accumulate(x, axis=axis),
    "minimum": lambda x, axis: np.minimum.accumulate(x, axis=axis),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*(("cumsum", dtype) for dtype in DTYPES), ("cumprod", "float32"), ("cumprod", "int16"), ("cumprod", "float16")]
    + [(name, dtype) for name in ("maximum", "minimum") for dtype in ("float64", "float16", "int8", "uint64")],
)
def test_scans_match_numpy_bit_by_bit(name: str, dtype: str) -> None:
    compiled = jk.jit(SCANS[name], static_argnames="axis")
    for shape in SHAPES:
        for axis in range(len(shape)):
            x = array(*shape, dtype=dtype)
            backwards = np.repeat(x, 2, axis)[(slice(None),) * axis + (slice(None, None, -2),)]
            for given in (x, backwards) if x.ndim != 2 else (x, np.asfortranarray(x), backwards):
                same(lambda x, axis=axis: compiled(x, axis), lambda x, axis=axis: SCANS[name](x, axis), given)


FUSED: dict[str, tuple[Callable[..., Any], int, tuple[Any, ...]]] = {
    "around": (lambda x: np.cumsum(x - 1) + 1, 1, (array(500),)),
    "products": (lambda x, y: np.cumsum(x * y), 1, (array(500), array(500))),
    "running products": (lambda x: np.cumprod(x / 3) + x, 1, (array(50),)),
    "rows": (lambda x: np.cumsum(x * 0.5, axis=1) - x, 1, (array(30, 20),)),
    "columns": (lambda x: np.cumsum(x * 0.5, axis=0) - x, 1, (array(30, 20),)),
    "middle": (lambda x: np.cumsum(x * 0.5, axis=1) - x, 1, (array(5, 30, 20),)),
    "largest": (lambda x: np.cumsum(x).max(), 1, (array(700),)),
    "largest of rows": (lambda x: np.cumsum(x, axis=1).max(1), 1, (array(30, 70),)),
    "largest of columns": (lambda x: np.cumsum(x, axis=0).max(0), 1, (array(30, 70),)),
    "place of it": (lambda x: np.cumsum(x, axis=1).argmax(1), 1, (array(30, 70),)),
    "two": (lambda x: np.cumsum(x) + np.maximum.accumulate(x), 1, (array(300),)),
    "one of another": (lambda x: np.cumsum(np.cumsum(x)), 1, (array(300),)),
    "along both": (lambda x: np.cumsum(np.cumsum(x, axis=0), axis=1), 2, (array(30, 40),)),
    "of what is broadcast": (lambda x, y: np.cumsum(x[:, None] + y, axis=1), 1, (array(30), array(40))),
    "of one number": (lambda x: np.cumsum(np.broadcast_to(x[0], (50,))), 1, (array(5),)),
    "broadcast": (lambda x, y: np.cumsum(x)[:, None] * y, 2, (array(30), array(30, 40))),
    "shifted": (lambda x: np.cumsum(x)[1:] - np.cumsum(x)[:-1], 2, (array(300),)),
    "shares of the whole": (lambda x: np.cumsum(x, axis=1) / x.max(1, keepdims=True), 1, (array(30, 40),)),
    "of the rest of a row": (lambda x: np.cumsum(x - x.max(1, keepdims=True), axis=1), 1, (array(30, 40),)),
    "beyond the whole": (
        lambda x: np.cumsum(x, axis=1) / np.cumsum(x, axis=1).max(1, keepdims=True),
        2,
        (array(30, 40),),
    ),
    "backwards": (lambda x: np.cumsum(x[::-1])[::-1] * 2, 2, (array(300),)),
    "picked": (lambda x, i: np.cumsum(x[i]), 2, (array(30), chosen.integers(0, 30, 200))),
    "in another dtype": (lambda x: np.cumsum(x, dtype="float64"), 1, (array(300, dtype="float32"),)),
    "all of it": (lambda x: np.cumsum(x), 1, (array(30, 40),)),
    "of bools": (lambda x: np.cumsum(x > 0), 1, (array(300),)),
    "beside others": (lambda x: np.stack([np.cumsum(x), x * 2]), 2, (array(300),)),
}


@pytest.mark.parametrize("name", FUSED)
def test_scans_fuse_with_producers_and_consumers(name: str) -> None:
    function, kernels, arguments = FUSED[name]
    agrees(function, *arguments, kernels=kernels)


@pytest.mark.parametrize("level", [0, 2])
def test_lower_levels(level: int) -> None:
    for name, (function, _, arguments) in FUSED.items():
        found = jk.jit(function, opt_level=level)(*arguments)
        np.testing.assert_array_equal(found, function(*arguments), err_msg=name)


def test_scans_with_nan_and_infinity() -> None:
    x = array(200)
    x[20], x[90], x[150] = np.inf, -np.inf, np.nan
    for scan in SCANS.values():
        for part in (x, x[:90], x[:21], x[91:]):
            agrees(lambda x, scan=scan: scan(x, 0), part)


def test_scans_written_to_arguments() -> None:
    def accumulate(x: Any, y: Any) -> None:
        np.cumsum(x, axis=0, out=y)
        x[1:] = np.cumsum(x, axis=0)[:-1]
        x += np.cumsum(x[::-1], axis=0)

    compiled = jk.jit(accumulate)
    for shape in ((300,), (30, 7), (7, 30)):
        x, y = array(*shape), array(*shape)
        here, there = x.copy(), y.copy()
        compiled(here, there)
        accumulate(x, y)
        np.testing.assert_array_equal(here, x)
        np.testing.assert_array_equal(there, y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_accesses_out_of_bounds(dtype: str, axis: int) -> None:
    compiled = jk.jit(lambda x: np.cumsum(x, axis=axis))
    for n in (*range(1, 20), 33, 64, 65):
        for side in SIDES:
            x = Guarded(array(3, n, dtype=dtype), side)
            right = np.cumsum(x.array, axis=axis)
            out = Guarded(np.zeros_like(right), side)
            compiled(x.array, out=out.array)
            np.testing.assert_array_equal(out.array, right)
            assert x.intact()
            assert out.intact()


def test_results_that_are_larger_than_caches() -> None:
    x = array(2_300_000)[1:]
    same(jk.jit(lambda x: np.cumsum(x * 2)), lambda x: np.cumsum(x * 2), x)
