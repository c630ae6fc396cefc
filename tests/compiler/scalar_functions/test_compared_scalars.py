"""Comparisons with NumPy's scalars on the left, and loops whose ``else`` raises."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("scalar", [np.float64(0.5), np.float32(0.5), np.int64(1), np.bool_(True)], ids=repr)
def test_scalar_on_the_left(compare: Callable[..., Any], scalar: Any) -> None:
    def number(x: Any) -> Any:
        return x * 2.0 if compare(scalar, x) else -x

    def elements(x: Any) -> Any:
        return compare(scalar, x)

    compiled = jk.jit(number, strict=True)
    values = (0.25, 0.5, 1.0, 3.0, np.nan)
    for x in values:
        np.testing.assert_equal(compiled(x), number(x))
    np.testing.assert_array_equal(jk.jit(elements, strict=True)(np.array(values)), elements(np.array(values)))


def test_chain() -> None:
    def within(x: Any, kind: int) -> Any:
        if kind == 0 and np.sqrt(0.6) < x < np.sqrt(1.4):
            return x * 2.0
        return x

    compiled = jk.jit(within, strict=True)
    for x in (0.1, 0.9, 1.3):
        for kind in (0, 1):
            assert compiled(x, kind) == within(x, kind)


def halved(x: Any, most: int) -> Any:
    count = 0
    while count < most:
        x = 0.5 * x
        y = np.cos(x)
        if x < 0.1:
            break
        count += 1
    else:
        raise RuntimeError("no convergence")
    z = y + count
    return x, z


def searched(x: Any, most: int) -> Any:
    for i in range(most):
        if x[i] > 0.9:
            break
    else:
        raise RuntimeError("no convergence")
    return x[i] + 1.0


@pytest.mark.parametrize(("function", "x"), [(halved, 9.0), (searched, np.arange(10) / 8)])
def test_else_that_raises(function: Callable[..., Any], x: Any) -> None:
    compiled = jk.jit(function, strict=True)
    np.testing.assert_array_equal(compiled(x, 10), function(x, 10))
    with pytest.raises(RuntimeError, match="no convergence"):
        compiled(x, 3)
