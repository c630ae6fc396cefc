"""Guard pages around arrays: compiled functions touch no byte outside of them."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.tools.testing.guard_pages import Guarded, Side

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
LARGEST, MORE = 34, 70
SIDES: tuple[Side, ...] = ("start", "end")

Make = Callable[[int], tuple[int, ...]]
CASES: dict[str, tuple[Callable[..., Any], Make]] = {
    "elementwise": (lambda x, y: x + y, lambda n: (n,)),
    "choice": (lambda x, y: np.where(x > y, x, y), lambda n: (n,)),
    "sum": (lambda x, y: x.sum() + y.max(), lambda n: (n,)),
    "neighbours": (lambda x, y: x[1:] + y[:-1], lambda n: (n,)),
    "every second": (lambda x, y: x[::2] + y[::2], lambda n: (n,)),
    "every third": (lambda x, y: x[1::3] + y[1::3], lambda n: (n,)),
    "backwards": (lambda x, y: x[::-1] + y, lambda n: (n,)),
    "every second backwards": (lambda x, y: x[::-2] + y[::-2], lambda n: (n,)),
    "rows": (lambda x, y: x.sum(1) + y.max(1), lambda n: (3, n)),
    "columns": (lambda x, y: x.sum(0) + y.max(0), lambda n: (3, n)),
    "few columns": (lambda x, y: (x + y[:1]).sum(0), lambda n: (n, 3)),
    "transposed": (lambda x, y: x.T + y.T[::-1], lambda n: (n, 5)),
    "part": (lambda x, y: x[1:, ::2] + y[:-1, ::2], lambda n: (3, n)),
    "index": (lambda x, y: x.argmax() + y.argmin(), lambda n: (n,)),
    "joined": (lambda x, y: np.concatenate([x[1:], y]), lambda n: (n,)),
    "cast": (lambda x, y: x.astype("float32") + y, lambda n: (n,)),
    "product": (lambda x, y: x @ y.T, lambda n: (3, n)),
    "deviation": (lambda x, y: x.var(-1) + y.mean(-1), lambda n: (2, n)),
}


def values(shape: tuple[int, ...], dtype: str) -> Any:
    return (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)


def taken(x: Any, y: Any, function: Callable[..., Any]) -> Any:
    return function(x, y)


@functools.cache
def compiled(name: str) -> Any:
    return jk.jit(CASES[name][0])


def reads_and_writes_inside(name: str, dtype: str, largest: int) -> None:
    function, shape_of = CASES[name]
    for n in range(1, largest):
        shape = shape_of(n)
        for side in SIDES:
            one, other = (Guarded(values(shape, dtype), side) for _ in range(2))
            right = function(one.array, other.array)
            got = compiled(name)(one.array, other.array)
            np.testing.assert_allclose(got, right, rtol=1e-2, err_msg=f"{name} {dtype} {n}")
            if isinstance(right, np.ndarray):
                out = Guarded(np.zeros_like(right), side)
                compiled(name)(one.array, other.array, out=out.array)
                np.testing.assert_allclose(out.array, right, rtol=1e-2)
                assert out.intact(), f"{name} {dtype} {n} writes beside its result"
            assert one.intact(), f"{name} {dtype} {n} writes to what it reads"
            assert other.intact(), f"{name} {dtype} {n} writes to what it reads"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
def test_no_accesses_out_of_bounds(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        reads_and_writes_inside(name, dtype, LARGEST)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_accesses_out_of_bounds_of_larger_arrays(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        reads_and_writes_inside(name, dtype, MORE)


@pytest.mark.parametrize("step", [2, 3, 4, 5, -1, -2, -3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_no_accesses_out_of_bounds_of_views(dtype: str, step: int) -> None:
    """Arguments with gaps, whose last element ends a page, or whose first one begins it."""
    add = jk.jit(lambda x, y: x + y)
    for n in range(1, LARGEST):
        for side in SIDES:
            base = Guarded(np.zeros((n - 1) * abs(step) + 1, dtype), side)
            view = base.array[::step]
            view[...] = values((n,), dtype)
            other = Guarded(values((n,), dtype), side)
            np.testing.assert_array_equal(add(view, other.array), view + other.array)
            np.testing.assert_array_equal(add(other.array, view), view + other.array)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_writes_to_arguments_stay_inside(dtype: str) -> None:
    def change(x: Any, y: Any) -> None:
        x[1:-1] = y[2:]
        x[::2] |= y[::2]
        x[-1] = 1

    def change_floats(x: Any, y: Any) -> None:
        x[1:-1] = y[2:]
        x[::2] += y[::2]
        x[-1] = 1

    plain = change_floats if dtype[0] == "f" else change
    function = jk.jit(plain)
    for n in range(3, MORE):
        for side in SIDES:
            one, other = (Guarded(values((n,), dtype), side) for _ in range(2))
            right = one.array.copy()
            plain(right, other.array)
            function(one.array, other.array)
            np.testing.assert_array_equal(one.array, right)
            assert one.intact(), f"{n}"
            assert other.intact(), f"{n}"


def test_specializations_guard_the_sign_of_strides() -> None:
    function = jk.jit(lambda x: x * 2 if x.strides[0] > 0 else x * 3)
    x = np.arange(40.0)
    for step in (2, -2, 3, -3):
        np.testing.assert_array_equal(function(x[::step]), x[::step] * (2 if step > 0 else 3))
