"""Derivatives of indexing by ints, masks and indices known at run time, also in loops and branches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import agree, difference

import jitkernels as jk

PROGRAMS: dict[str, Any] = {}
x, rows = np.random.default_rng(5).normal(size=8), np.random.default_rng(6).normal(size=(5, 3))
places = np.array([0, 2, -1, 5, 2])


def program(*given: Any) -> Callable[[Any], Any]:
    """A program that gives a float, and its arguments, of which derivatives are by the first one."""

    def kept(function: Any) -> Any:
        PROGRAMS[function.__name__] = function, given
        return function

    return kept


@program(x, places, 40)
def written(x: Any, idx: Any, n: Any) -> Any:
    """Of equal numbers the last one counts."""
    y = np.ones(8)
    for k in range(n):
        y[idx] = x[idx] * np.sin(y[idx[::-1]] + k) + np.arange(5) * 0.1
    return np.sum(y * y)


@program(x, places, 40)
def added(x: Any, idx: Any, n: Any) -> Any:
    y = np.ones(8)
    for k in range(n):
        np.add.at(y, idx, 0.05 * x[:5] * np.cos(y[idx]))
        y[idx] += 0.01 * k * x[idx]
    return np.sum(y * y)


@program(rows, 40)
def computed(x: Any, n: Any) -> Any:
    """Rows and single elements by numbers that each round computes."""
    y = x.copy()
    for k in range(n):
        i = (np.arange(5) * 3 + k) % 5
        y = 0.8 * y + 0.1 * np.tanh(y[i]) * x
        y[i[:3], k % 3] -= 0.1 * y[i[1:4], i[:3] % 3]
    return np.sum(y * y)


@program(x, places, 40)
def chosen(x: Any, idx: Any, n: Any) -> Any:
    y, s = x.copy(), 0.0
    for k in range(n):
        if s < 1.0:
            y[idx] = np.sin(y[idx] + k) * x[idx]
        else:
            y[np.arange(3).reshape(3, 1),] *= 0.9
        s = s + y[idx[0]] ** 2 * 0.2
        y[y > 2.0] = 0.5
    return np.sum(y * y) + s


@program(rows, rows[::-1] ** 2)
def along_an_axis(x: Any, values: Any) -> Any:
    order, y = np.argsort(x, axis=1), x.copy()
    np.put_along_axis(y, order[:, :2], values[:, :2] * np.take_along_axis(x, order, axis=1)[:, 1:], axis=1)
    return np.sum(y * y * np.arange(3.0))


@program(x, 30)
def listed(x: Any, n: Any) -> Any:
    """A list of which only the running code knows how long it gets."""
    found = []
    for k in range(n):
        v = x[k % 8] * k * 0.1 + 0.05
        if v > 0.0:
            found.append(np.sin(v))
    return np.mean(np.sqrt(np.array(found) ** 2 + x[0] ** 2)) + found[-1]


@program(x.astype(np.float32), x, 30)
def of_two_types(x: Any, y: Any, n: Any) -> Any:
    s = 0.0
    for _ in range(n):
        s = s + np.sum(x * x) * 0.1 if s < 3.0 else s * 0.9 + np.sum(y * x)
    return s


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: Any) -> None:
    """Check first derivatives and their directional derivatives."""
    function, (x, *others) = PROGRAMS[name]
    value, first = jk.value_and_grad(function)(x, *others)
    is_wide = x.dtype == np.float64
    agree(value, function(x.copy(), *others), 1e-12 if is_wide else 1e-5)
    agree(first, difference(lambda one: float(function(one, *others)), x.astype(float)), 1e-6 if is_wide else 1e-3)
    if is_wide:
        weights = np.random.default_rng(7).normal(size=x.shape)
        gradient = jk.grad(function)
        _, second = jk.jvp(lambda one: gradient(one, *others), (x,), (weights,))
        agree(np.sum(second), difference(lambda t: np.sum(gradient(x + t * weights, *others)), np.float64(0)))


def test_indices_out_of_bounds() -> None:
    """Indices out of bounds raise as without the derivative, before anything is written."""

    def function(x: Any, idx: Any, n: Any) -> Any:
        y = x.copy()
        for k in range(n):
            y[idx + k] += 1.0
        return np.sum(y * y)

    for compiled in (jk.jit(function), jk.grad(function)):
        compiled(np.ones(6), np.array([-3, 2]), 3)
        for idx, length in ((np.array([0, 5]), 6), (np.array([-7, 0]), 6), (np.array([0]), 0)):
            with pytest.raises(IndexError, match="out of bounds"):
                compiled(np.ones(length), idx, 3)


def test_unselected_elements_get_no_gradients() -> None:
    """Elements that no mask selects may lack a derivative where others have one."""
    x = np.array([0.0, 1.0, -1.0, 2.0])

    def masked(x: Any, s: Any) -> Any:
        y = np.zeros_like(x)
        y[x > 0] = np.sqrt(x[x > 0]) * s
        return np.sum(np.log(x[x > 0] * s) / np.sqrt(x[x > 0])) + np.sum(y)

    def parts(x: Any, s: Any) -> Any:
        return np.sum(np.divide(s, x, out=np.zeros_like(x), where=x != 0)) + np.sum(
            np.sqrt(x * s, out=np.zeros_like(x), where=x > 0)
        )

    for function in (masked, parts):
        by_x, by_s = jk.grad(function, argnums=(0, 1))(x, 2.0)
        chosen = x > 0 if function is masked else x != 0
        alone = x[chosen]
        agree(by_x[chosen], difference(lambda one: float(function(one, 2.0)), alone))  # noqa: B023
        agree(by_s, difference(lambda one: float(function(alone, one)), np.float64(2.0)))  # noqa: B023
        assert not by_x[~chosen].any()


def test_infinite_powers() -> None:
    for power in (2.0, 0.5, 3, 1.0):
        value, slope = jk.value_and_grad(lambda x, power=power: x**power)(np.inf)
        assert value == np.inf
        assert slope == power * np.inf ** (power - 1)
    with pytest.raises(OverflowError):
        jk.grad(lambda x: x**2)(1e300)
