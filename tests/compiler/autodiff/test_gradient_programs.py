"""Whole programs: derivatives by all arguments against finite differences, equal at all levels."""

from typing import Any

import numpy as np
import pytest
from differences import agree, along, gradient
from gradient_programs import PROGRAMS, SECOND

import jitkernels as jk


def weights_of(shape: Any) -> Any:
    """What a result is multiplied with: random numbers, always the same."""
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape)


def loss_of(function: Any, shape: Any) -> Any:
    """The dot product of a result with random numbers."""
    weights = weights_of(shape)
    return lambda *arrays: np.sum(function(*arrays) * weights)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: Any) -> None:
    """Levels 0 and 3 agree with one another, and with differences: of NumPy's values, and of the gradients.

    Directional derivatives of the gradient are computed in two ways: forward over reverse, and reverse over reverse.
    """
    function, arrays = PROGRAMS[name]
    given = [one.copy() for one in arrays]
    loss = loss_of(function, np.shape(function(*given)))
    numbers = tuple(range(len(arrays)))
    directions = tuple(np.cos(np.arange(one.size) + i).reshape(one.shape) for i, one in enumerate(arrays))

    def pushed(arrays: Any, directions: Any) -> Any:
        return jk.jvp(jk.grad(loss, argnums=numbers), arrays, directions)[1]

    def pulled(arrays: Any, directions: Any) -> Any:
        return jk.grad(lambda *x: dot(jk.grad(loss, argnums=numbers)(*x), directions), argnums=numbers)(*arrays)

    compiled = jk.jit(jk.value_and_grad(loss, argnums=numbers))
    value, first = compiled(*arrays)
    assert compiled.stats().kernels
    plain = jk.jit(compiled, opt_level=0)
    unfused, unfused_first = plain(*arrays)
    agree(value, loss(*given), 1e-12)
    agree(unfused, value, 1e-12)
    ways = [jk.jit(one, backend="interpreter")(arrays, directions) for one in (pushed, pulled)]
    if name in SECOND:
        ways.append(jk.jit(pushed)(arrays, directions))
    for i in numbers:
        agree(unfused_first[i], first[i], 1e-11, (name, i))
        agree(first[i], gradient(loss, arrays, i), 1e-6, (name, i))
        slope = along(lambda *x, i=i: compiled(*x)[1][i], arrays, directions)
        for way in ways:
            agree(way[i], slope, 1e-6, (name, i))


def dot(arrays: Any, directions: Any) -> Any:
    return sum(np.sum(one * u) for one, u in zip(arrays, directions, strict=True))
