"""Values that a nest needs at several places are stored once: the last of a chain, not each value on the way to it."""

import re
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def pairs(pos: Any, box: Any) -> Any:
    """A chain of costly values of each row, read for each of the three columns."""
    d = pos[0] - pos[1:]
    d = d - box * np.rint(d / box)
    r2 = (d * d).sum(axis=1)
    near = np.where(r2 < 9.0, np.exp(-r2) / r2, 0.0)
    return (near * (2.0 * near - 1.0) / r2)[:, None] * d


def forces(pos: Any, box: Any) -> Any:
    """The same in a loop."""
    force = np.zeros_like(pos)
    for i in range(len(pos) - 1):
        d = pos[i] - pos[i + 1 :]
        d = d - box * np.rint(d / box)
        r2 = (d * d).sum(axis=1)
        near = np.where(r2 < 9.0, np.exp(-r2) / r2, 0.0)
        f = (near * (2.0 * near - 1.0) / r2)[:, None] * d
        force[i] += f.sum(axis=0)
        force[i + 1 :] -= f
    return force


def outer(x: Any, y: Any) -> Any:
    """A costly row, read by all rows of the result."""
    return np.log(1.0 + np.exp(np.sin(x) * np.cos(x)))[None, :] * y


CASES = [
    (pairs, lambda n: (np.random.default_rng(n).random((n, 3)), 0.7)),
    (forces, lambda n: (np.random.default_rng(n).random((n, 3)), 0.7)),
    (outer, lambda n: (np.random.default_rng(n).random(n), np.random.default_rng(n).random((5, n)))),
]


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_no_stored_value_is_unread(function: Any, arguments: Any) -> None:
    text = jk.jit(function).loops(*arguments(100))
    stored = set(re.findall(r"^ +(t\d+)\[", text, re.MULTILINE))
    assert stored or function is pairs
    for name in stored:
        assert len(re.findall(rf"= .*\b{name}\[", text)), f"{name} is stored and never read:\n{text}"


@pytest.mark.parametrize(("function", "arguments"), CASES)
@pytest.mark.parametrize("size", [2, 3, 40])
def test_values(function: Any, arguments: Any, size: int) -> None:
    given = arguments(size)
    np.testing.assert_allclose(jk.jit(function, strict=True)(*given), function(*given), rtol=1e-11)
