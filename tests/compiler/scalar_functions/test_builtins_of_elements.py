"""``round``, ``int``, ``bool``, ``min``, ``max``, ``sum``, ``any`` and ``all`` of traced numbers and arrays."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import reasons, same

import jitkernels as jk


def to_int(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = round(x[i]) + 3 * round(float(x[i])) + int(x[i])
    return out


def numpy_scalar(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = round(x[i], 2)
    return out


def float_to(digits: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = round(float(x[i]), digits)
        return out

    return run


def whole(x: Any) -> Any:
    return max(x), min(x), sum(x), any(x), all(x), abs(max(x)), sum(x, 2.5)


def parts(x: Any) -> Any:
    total, count = 0.0, 0
    for i in range(3, len(x) - 1):
        total += max(x[:i]) - min(x[:i]) + sum(x[i:])
        if any(x[:i] > 1) and not all(x[i:] < 1):
            count += 1
    return total, count


def truths(x: Any) -> int:
    count = 0
    for i in range(len(x)):
        count += bool(x[i]) + 2 * bool(x[i] > 0)
    return count


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "to_int": to_int, "numpy_scalar": numpy_scalar, "whole": whole, "parts": parts, "truths": truths,
    **{f"to_{digits}_decimals": float_to(digits) for digits in (0, 1, 2, 3, 10)},
}  # fmt: skip
TIES = (
    0.125, 0.375, 2.5, 0.5, -0.5, 1.5, 2.675, 1.005, 0.015, 0.045, -0.045, 1e15 + 0.25, -1e-9, 5e-324, 1e-40,
    123456789.125, 4.5e13 + 0.125, 0.285, 1.115, -2.5, 0.0, -0.0, 0.25, 0.0005, 8.5, 2.0**51 + 0.5,
)  # fmt: skip
"""Halfway between two decimals, or by its decimal text alone."""
random = np.random.default_rng(1)
ARRAYS = {
    "ties": np.array(TIES), "thousandths": random.integers(-(10**5), 10**5, 400) / 1000.0,
    "millionths": random.integers(-(10**9), 10**9, 400) / 1e6, "normal": random.normal(size=40),
    "positive": abs(random.normal(size=40)) + 0.1, "float32": random.normal(size=40).astype(np.float32),
    "ints": random.integers(-9, 9, 40), "zeros": np.array([0.0, -0.0] * 6), "other zeros": np.array([-0.0, 0.0] * 6),
    "int32": random.integers(1, 9, 40).astype(np.int32),
}  # fmt: skip


def bits(result: Any) -> list[Any]:
    """Types and values, the signs of zeros included."""
    listed = result if isinstance(result, tuple) else (result,)
    return [(type(one), np.asarray(one).dtype, np.asarray(one).tobytes()) for one in listed]


@pytest.mark.parametrize("values", ARRAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_pythons_bit_by_bit(name: str, values: str) -> None:
    function, x = FUNCTIONS[name], ARRAYS[values]
    compiled = jk.jit(function, strict=True, opt_level=1)  # sums in the order of iterations
    assert bits(compiled(x)) == bits(function(x))
    assert not reasons(compiled)


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return bits(function(*arguments))
    except Exception as error:  # noqa: BLE001  # whatever it raises
        return type(error), str(error)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, 2.0**53, 2.0**62, -(2.0**63)])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unusual_numbers(name: str, value: float) -> None:
    function = FUNCTIONS[name]
    for place in (0, 5, 9):
        x = np.linspace(0.125, 2, 10)
        x[place] = value
        assert outcome(jk.jit(function), x) == outcome(function, x)


@pytest.mark.parametrize("x", [np.zeros(0), np.zeros((3, 4)), np.ones(1), np.zeros(()), np.zeros((0, 2))], ids=repr)
def test_other_shapes(x: Any) -> None:
    """What Python raises, or adds up row by row."""
    for name in ("max", "min", "sum", "any", "all"):
        builtin = __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name)
        assert outcome(jk.jit(lambda x: builtin(x)), x) == outcome(builtin, x), name  # noqa: B023


@pytest.mark.per_push(8)
@pytest.mark.parametrize("function", [round, math.trunc, math.floor, math.ceil], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "float16", "float32", "float64"])
def test_methods_that_numpys_numbers_lack(dtype: str, function: Any) -> None:
    """NumPy's numbers have no ``__trunc__`` unless they are Python's too, and bools no ``__round__``."""

    def of_element(x: Any, one: Any) -> Any:
        return function(x[0]), function(float(x[0])), function(one)

    def in_loop(x: Any, one: Any) -> Any:
        return [function(value) for value in x if value > one - 1]

    x, one = np.ones(2, dtype), np.ones((), dtype)[()]
    for plain in (of_element, in_loop):
        assert outcome(jk.jit(plain), x, one) == outcome(plain, x, one)


def counted(x: Any, k: int) -> Any:
    total = 0
    for i in range(len(x)):
        j = int(x[i])
        if abs(j - k > 1):
            total += abs(j < 2) + 3 * abs(j == 4)
        total += +(j > 2)
        total -= -(j > 3)
    return total, abs(total > 2), +(total > 2), -(total > 2)


def test_signs_of_bools_are_ints() -> None:
    x = np.arange(9) % 6
    found = jk.jit(counted, strict=True)(x, 3)
    same(found, counted(x, 3))
