"""Whole programs: first and second derivatives by all arguments against differences, and the same at every level."""

import functools
from typing import Any

import numpy as np
import pytest
from differences import agree, along, gradient
from gradient_programs import PROGRAMS

import jitkernels as jk


def weights_of(shape: Any) -> Any:
    """What a result is multiplied with: random numbers, always the same."""
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape)


def loss_of(function: Any, shape: Any) -> Any:
    """The dot product of a result with random numbers."""
    weights = weights_of(shape)
    return lambda *arrays: np.sum(function(*arrays) * weights)


def derivatives(loss: Any, arrays: Any, directions: Any) -> Any:
    """The value, the gradient, and how that changes along directions."""
    numbers = tuple(range(len(arrays)))
    value, first = jk.value_and_grad(loss, argnums=numbers)(*arrays)
    return value, first, jk.jvp(jk.grad(loss, argnums=numbers), arrays, directions)[1]


def gradient_of_slope(loss: Any, arrays: Any, directions: Any) -> Any:
    """The gradient of the gradient's product with directions, which is how the gradient changes along them."""
    numbers = tuple(range(len(arrays)))

    def slope(*given: Any) -> Any:
        found = jk.grad(loss, argnums=numbers)(*given)
        return sum(np.sum(one * u) for one, u in zip(found, directions, strict=True))

    return jk.grad(slope, argnums=numbers)(*arrays)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: Any) -> None:
    """Levels 0 and 3 agree with one another, and with differences: of NumPy's values, and of the gradients."""
    function, arrays = PROGRAMS[name]
    given = [one.copy() for one in arrays]
    loss = loss_of(function, np.shape(function(*given)))
    numbers = tuple(range(len(arrays)))
    directions = tuple(np.cos(np.arange(one.size) + i).reshape(one.shape) for i, one in enumerate(arrays))
    value, first, pushed = jk.jit(functools.partial(derivatives, loss))(arrays, directions)
    plain = jk.jit(jk.value_and_grad(loss, argnums=numbers), opt_level=0)
    unfused, unfused_first = plain(*arrays)
    second = jk.jit(functools.partial(gradient_of_slope, loss), backend="interpreter")(arrays, directions)
    agree(value, loss(*given), 1e-12)
    agree(unfused, value, 1e-12)
    for i in numbers:
        agree(unfused_first[i], first[i], 1e-11, (name, i))
        agree(second[i], pushed[i], 1e-9, (name, i))
        agree(first[i], gradient(loss, arrays, i), 1e-6, (name, i))
        slope = along(lambda *x, i=i: plain(*x)[1][i], arrays, directions)
        agree(pushed[i], slope, 1e-6, (name, i))
