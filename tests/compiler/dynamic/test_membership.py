"""``value in container`` in compiled loops: constants, lists that grow, arrays, ranges."""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import TracingError

CHOSEN = frozenset([1, 5])
NOTHING: tuple[int, ...] = ()
TABLE = {1: 10.0, 2: 20.0}


def of_tuple(x: Any) -> Any:
    count = 0
    for value in x:
        if value in (1, 2, 7):
            count += 1
    return count


def of_set(x: Any) -> Any:
    count = 0
    for value in x:
        if value not in {1, 2.0, None, "a"}:
            count += 1
    return count


def of_globals(x: Any) -> Any:
    count = 0
    for i in range(len(x)):
        if x[i] in CHOSEN or x[i] in TABLE:
            count += i
    return count


def of_variables(x: Any) -> Any:
    count, before = 0, (5,)
    for value in x:
        if value in before or value + 0.5 in (1.5, value):
            count += 1
        before = (value,)
    return count


def of_arrays(x: Any) -> Any:
    count = 0
    for i in range(len(x)):
        if x[i] in x[:i]:
            count += 1
    return count, 3 in x, 99 in x


def of_ranges(x: Any) -> Any:
    count = 0
    for value in x:
        if value in range(0, 9, 3):
            count += 1
        if value in range(5, -5, -2):
            count += 10
        if value in NOTHING:
            count += 1000
        if 1 < value in (2, 3):
            count += 100
    return count


def of_results(x: Any) -> Any:
    return [i in (1, 3) for i in range(len(x))], sum(1 for value in x if value in {2}), len(x) in (3, 9)


def of_growing_lists(x: Any) -> Any:
    seen: list[Any] = []
    for value in x:
        if value not in seen:
            seen.append(value)
    return len(seen), [int(value) for value in seen]


def of_lists_in_branches(x: Any) -> Any:
    seen: list[Any] = []
    count = 0
    for i in range(len(x)):
        if x[i] * 2 in seen:
            count += i
        elif x[i] > 1 or 7 in seen:
            seen.append(x[i] * 2)
    return count, len(seen)


def of_nan(x: Any) -> Any:
    count = 0
    for i in range(len(x)):
        value = x[i] * np.nan
        if value in (1, float("nan")):
            count += 1
        if value in (2, value):
            count += 10
        if x[i] - x[i] in (-0.0,):
            count += 100
    return count


FUNCTIONS = [
    of_tuple, of_set, of_globals, of_variables, of_arrays, of_ranges, of_results, of_growing_lists,
    of_lists_in_branches, of_nan,
]  # fmt: skip
ARRAYS = [
    np.array([1, 2, 3, 7, 9, 2, 1] * 9),
    np.array([1.0, 2.5, 2.0, 5, 7, 7, -3] * 9),
    np.array([2, 4, 2]),
    np.zeros(0),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_membership(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for x in ARRAYS:
        assert compiled(x) == function(x), x


def test_hundreds_of_elements_in_a_growing_list() -> None:
    x = np.random.default_rng(0).integers(0, 500, 3000)
    assert jk.jit(of_growing_lists, strict=True)(x) == of_growing_lists(x)


def test_what_is_refused_says_so() -> None:
    many = tuple(range(0, 400, 2))

    def of_many(x: Any) -> Any:
        count = 0
        for value in x:
            if value in many:
                count += 1
        return count

    with pytest.raises(TracingError, match="in a tuple of more than 64 elements"):
        jk.jit(of_many, strict=True)(ARRAYS[0])
    assert jk.jit(of_many)(ARRAYS[0]) == of_many(ARRAYS[0])


def of_colliding(x: Any) -> Any:
    count = 0
    for value in x:
        if value in {0, 8, 16}:
            count += 1
    return count


def test_order_of_a_constant_set() -> None:
    """Colliding elements of a constant set may be in another order in code that was loaded from a .pyc file."""
    saved = frozenset([16, 8, 0])
    assert [*saved] != [*frozenset([0, 8, 16])]
    constants = tuple(saved if isinstance(one, frozenset) else one for one in of_colliding.__code__.co_consts)
    code = of_colliding.__code__.replace(co_consts=constants)
    x = np.array([0, 3, 8, 16, 8] * 9)
    assert jk.jit(types.FunctionType(code, globals()), strict=True)(x) == 36
