"""Scatters: written by a nest, the last of equal indices wins, and refused as NumPy does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.tools.testing.guard_pages import Guarded, Side

DTYPES = ("float64", "float32", "float16", "int64", "int16", "uint8", "bool")
SIDES: tuple[Side, ...] = ("start", "end")
chosen = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _compile_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)


def array(*shape: int, dtype: str = "float64") -> Any:
    return (chosen.integers(-90, 100, shape) / (4 if dtype[0] == "f" else 1)).astype(dtype)


def numbers(extent: int, *shape: int) -> Any:
    return chosen.integers(-extent, extent, shape)


def assign(a: Any, i: Any, v: Any) -> None:
    a[i] = v


def add(a: Any, i: Any, v: Any) -> None:
    a[i] += v * 2


def in_a_copy(a: Any, i: Any, v: Any) -> Any:
    b = a * 2
    b[i] = v + 1
    return b - 1


def agrees(function: Callable[..., Any], *arguments: Any) -> Any:
    """Fail unless a function gives the same, and leaves the same, compiled."""
    compiled = jk.jit(function)
    for _ in range(3):
        here, there = ([one.copy(order="K") for one in arguments] for _ in range(2))
        np.testing.assert_array_equal(compiled(*here), function(*there))
        for one, other in zip(here, there, strict=True):
            np.testing.assert_array_equal(one, other)
    explained = compiled.explain(*arguments)
    assert all(group.kind != "NumPy" for group in explained.groups), str(explained)
    return compiled


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 9, 400])
def test_the_last_of_equal_indices_is_stored(dtype: str, count: int) -> None:
    for size in (1, 7, 300):
        a, i, v = array(size, dtype=dtype), numbers(size, count), array(count, dtype=dtype)
        for function in (assign, in_a_copy) if dtype == "bool" else (assign, add, in_a_copy):
            if dtype != "bool" or function is assign:
                agrees(function, a, i, v)


WAYS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "by a matrix": (assign, (array(60), numbers(60, 5, 7), array(5, 7))),
    "rows": (assign, (array(9, 30), numbers(9, 20), array(20, 30))),
    "rows by one row": (assign, (array(9, 30), numbers(9, 20), array(30))),
    "transposed": (assign, (np.asfortranarray(array(9, 30)), numbers(9, 20), array(20, 30))),
    "columns": (lambda a, i, v: a.__setitem__((slice(None), i), v), (array(9, 30), numbers(30, 20), array(9, 20))),
    "pairs": (lambda a, i, j, v: a.__setitem__((i, j), v), (array(9, 30), numbers(9, 50), numbers(30, 50), array(50))),
    "every second": (lambda a, i, v: a[::2].__setitem__(i, v), (array(60), numbers(30, 20), array(20))),
    "reversed": (lambda a, i, v: a[::-1].__setitem__(i, v), (array(60), numbers(60, 90), array(90))),
    "one number for all": (lambda a, i: a.__setitem__(i, 7), (array(60), numbers(60, 90))),
    "a list": (lambda a, v: a.__setitem__([3, 3, -1], v), (array(60), array(3))),
    "equal numbers": (lambda a, i, v: a.__setitem__(i * 0, v), (array(60), numbers(60, 90), array(90))),
    "computed numbers": (lambda a, i, v: a.__setitem__(i % 7, v * v), (array(60), numbers(60, 90), array(90))),
    "sums of rows": (lambda a, i, v: a.__setitem__(i, v.sum(1)), (array(60), numbers(60, 90), array(90, 6))),
    "what was there": (lambda a, i: a.__setitem__(i, a[i] * 2), (array(60), numbers(60, 90))),
    "what is elsewhere": (lambda a, i: a.__setitem__(i, a[i - 1]), (array(60), numbers(59, 90))),
    "by its own values": (lambda a, v: a.__setitem__(a % 5, v), (numbers(9, 60), numbers(9, 60))),
    "exchanged": (lambda a, i: a.__setitem__(i, a[i[::-1]]), (array(60), chosen.permutation(60))),
    "and read then": (lambda a, i, v: (a.__setitem__(i, v), a.sum())[1], (array(60), numbers(60, 90), array(90))),
    "twice": (lambda a, i, v: (a.__setitem__(i, v), a.__setitem__(i + 1, v))[0], (array(60), numbers(50, 9), array(9))),
    "no numbers": (assign, (array(60), numbers(60, 0), array(0))),
    "a histogram": (lambda a, i: a.__setitem__(np.cumsum(i * 0 + 1) - 1, i), (array(90), numbers(9, 90))),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_forms_of_scatters(name: str) -> None:
    function, arguments = WAYS[name]
    agrees(function, *arguments)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_lower_levels(level: int) -> None:
    for name, (function, arguments) in WAYS.items():
        here, there = ([one.copy(order="K") for one in arguments] for _ in range(2))
        found, expected = jk.jit(function, opt_level=level)(*here), function(*there)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        np.testing.assert_array_equal(here[0], there[0], err_msg=name)


@pytest.mark.parametrize("wrong", [30, -31, 10**15])
@pytest.mark.parametrize("function", [assign, add, in_a_copy])
def test_indices_out_of_bounds_write_nothing(function: Callable[..., Any], wrong: int) -> None:
    compiled = jk.jit(function)
    a, i, v = array(30), numbers(30, 500), array(500)
    for _ in range(3):
        compiled(a.copy(), i, v)
    i[499] = wrong
    kept = a.copy()
    for _ in range(3):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 30"):
            compiled(a, i, v)
        np.testing.assert_array_equal(a, kept)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_no_accesses_out_of_bounds(dtype: str) -> None:
    compiled = jk.jit(assign)
    for n in (*range(1, 20), 33, 64, 65):
        for side in SIDES:
            a, v = Guarded(array(n, dtype=dtype), side), Guarded(array(n, dtype=dtype), side)
            i = Guarded(numbers(n, n), side)
            i.array[0], i.array[-1] = -n, n - 1
            right = a.array.copy()
            assign(right, i.array, v.array)
            compiled(a.array, i.array, v.array)
            np.testing.assert_array_equal(a.array, right)
            for guarded in (a, i, v):
                assert guarded.intact()


def test_equal_indices_with_several_threads() -> None:
    compiled = jk.jit(assign)
    before = jk.get_num_threads()
    try:
        jk.set_num_threads(3)
        a, i, v = array(10), numbers(10, 400_000), array(400_000)
        b = a.copy()
        compiled(a, i, v)
        assign(b, i, v)
        np.testing.assert_array_equal(a, b)
    finally:
        jk.set_num_threads(before)
