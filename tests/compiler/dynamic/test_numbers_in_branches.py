"""Arrays without dimensions that loops and branches write to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def made_here(x: Any, a: Any) -> Any:
    total = np.zeros(())
    for value in x:
        if value > 1:
            total[...] = total + value
        elif value < 0:
            total -= 1
    return total, total + a


def argument(x: Any, a: Any) -> Any:
    same = a
    for i in range(len(x)):
        if x[i] > 1:
            a += x[i]
        else:
            same *= 0.5
    return same + 1


def view(x: Any, a: Any) -> Any:
    before, whole = a[()], a[...]
    for i in range(len(x)):
        if x[i] > 1:
            whole[...] = x[i] + before
    return a + 0, before


@pytest.mark.parametrize("function", [made_here, argument, view])
def test_numbers_in_branches(function: Callable[..., Any]) -> None:
    x = np.array([1.0, 2, -3, 4] * 5)
    own, other = np.array(3.0), np.array(3.0)
    got, expected = jk.jit(function, strict=True)(x, own), function(x, other)
    assert repr(got) == repr(expected)
    assert own == other
