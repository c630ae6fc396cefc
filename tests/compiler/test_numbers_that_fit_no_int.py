"""Python numbers that become elements of ints: values, and the errors of those that do not fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

Way = Callable[..., Any]


def to_element(u: Any, v: Any) -> None:
    u[0] = v


def to_slice(u: Any, v: Any) -> None:
    u[1:] = v


def to_indices(u: Any, v: Any) -> None:
    u[[0, 2]] = v


def to_mask(u: Any, v: Any) -> None:
    u[u > 1] = v


def to_each(u: Any, v: Any) -> None:
    for i in range(len(u)):
        u[i] = v


def of_list(u: Any, v: Any) -> None:
    u[:] = [v, 1, 2, 3]


def of_tuples(u: Any, v: Any) -> None:
    u.reshape(2, 2)[:] = ((1, v), (2, 3))


def fill(u: Any, v: Any) -> None:
    u.fill(v)


def full(u: Any, v: Any) -> Any:
    return np.full(3, v, dtype=u.dtype)


def full_like(u: Any, v: Any) -> Any:
    return np.full_like(u, v)


def number(u: Any, v: Any) -> Any:
    return np.array(v, dtype=u.dtype)


def array(u: Any, v: Any) -> Any:
    return np.array([1, v], dtype=u.dtype)


def nested(u: Any, v: Any) -> Any:
    return np.asarray([[1, v], [2.0, 3]], dtype=u.dtype)


WAYS = (
    to_element, to_slice, to_indices, to_mask, to_each, of_list, of_tuples, fill, full, full_like, number, array,
    nested,
)  # fmt: skip
NUMBERS = (2, 2.5, -1, -1.5, 300, 300.7, 2**40, 1e300, float("nan"), float("inf"), -float("inf"))


def outcome(function: Way, kind: str, *value: Any) -> Any:
    u = np.arange(4).astype(kind)
    try:
        result = function(u, *value)
    except (OverflowError, ValueError) as error:
        return type(error), str(error), u.tolist()
    return None if result is None else (str(result.dtype), result.tolist()), u.tolist()


@pytest.mark.filterwarnings("ignore:invalid value")  # of numpy.full
@pytest.mark.parametrize("kind", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_arguments(way: Way, kind: str) -> None:
    compiled = jk.jit(way)
    for value in NUMBERS:
        expected = outcome(way, kind, value)
        assert outcome(compiled, kind, value) == expected
        assert outcome(compiled, kind, value) == expected


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_constants(way: Way, value: float) -> None:
    def function(u: Any) -> Any:
        return way(u, value)

    compiled = jk.jit(function)
    for kind in ("uint8", "int32", "int64"):
        assert outcome(compiled, kind) == outcome(function, kind)


def test_lists_of_numpy_ints_lose_no_bits() -> None:
    def function(x: Any) -> Any:
        return np.array([x[0], 1.0], dtype=np.int64)

    x = np.array([2**62 + 1])
    assert jk.jit(function)(x).tolist() == function(x).tolist() == [2**62 + 1, 1]


def until_cubes(x: Any, n: int) -> float:
    s, size = 0.0, 2
    while size <= n * n * n and size < 20:
        s += x[size % len(x)]
        size *= 2
    return s


def above_cubes(x: Any, n: int) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i] if i <= n * n * n else 1e3
    return s


def plus_cube(x: Any, n: int) -> Any:
    return x + n**3


def times_product(x: Any, n: int) -> Any:
    m = n // 2
    return x * (n * m * (m - n))


def up_to_cube(x: Any, n: int) -> Any:
    return x[: n * n * n] * 2


@pytest.mark.parametrize(
    "function", [until_cubes, above_cubes, plus_cube, times_product, up_to_cube], ids=lambda one: one.__name__
)
def test_products_of_arguments_never_wrap(function: Way) -> None:
    """Whether a product of int arguments fits 64 bits in the first call, in later ones, or in none."""
    x = np.linspace(0.5, 1.5, 50)
    numbers = [3, 100, -7, 10**9, 5 * 10**6, -7 * 10**6, 2**31 - 1, 2**40, 2**62, -(2**62), 0]
    for first in (0, 3, 8):
        compiled = jk.jit(function)
        for number in numbers[first:] + numbers[:first]:
            try:
                expected = function(x, number)
            except OverflowError as error:
                with pytest.raises(OverflowError, match=str(error)):
                    compiled(x, number)
            else:
                np.testing.assert_allclose(compiled(x, number), expected, rtol=1e-13)
