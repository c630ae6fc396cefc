"""Loops that read the previous array of a variable that an iteration rebinds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def along_itself(a: Any, c: Any) -> Any:
    for _ in range(len(a) - 1, -1, -1):
        for _, e in enumerate(c):
            c = c * 0.5 + e
    return c


def along_itself_reversed(a: Any, c: Any) -> Any:
    for _ in range(len(a)):
        for e in c[::-1]:
            c = c * 0.5 + e
    return c


def elements_of_the_old(a: Any, c: Any) -> Any:
    for _ in range(len(a)):
        old = c
        for j in range(len(c)):
            c = c * 0.5 + old[j]
    return c


def the_old_as_a_whole(a: Any, c: Any) -> Any:
    for _ in range(len(a)):
        old = c
        for j in range(1, len(c)):
            c = c * 0.5 + old * j
    return c


def a_slice_of_the_old(a: Any, c: Any) -> Any:
    c = c * 1
    for _ in range(len(a)):
        old = c[1:]
        j = 0
        while j < len(a) - 1:
            c = c * 0.5 + old[j]
            j += 1
    return c


def twice_along_itself(a: Any, c: Any) -> Any:
    for e in c:
        for d in c:
            c = c * 0.5 + d - e
    return c


def in_a_branch_along_itself(a: Any, c: Any) -> Any:
    for k in range(len(a)):
        if k % 2 == 0:
            for e, d in zip(c, a, strict=False):
                c = c * 0.5 + e * d
        c = c + 1
    return c


@pytest.mark.parametrize(
    "function",
    [
        along_itself,
        along_itself_reversed,
        elements_of_the_old,
        the_old_as_a_whole,
        a_slice_of_the_old,
        twice_along_itself,
        in_a_branch_along_itself,
    ],
)
def test_previous_values_are_read(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for size in (2, 3, 12, 40):
        a, c = np.arange(float(size)) / size, np.arange(float(size)) / size
        np.testing.assert_allclose(compiled(a, c), function(a, c), rtol=1e-12)
    assert "loop" in str(compiled.explain(a, c))
