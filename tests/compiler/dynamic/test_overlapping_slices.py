"""Assignments to slices at computed bounds of elements of the same array: NumPy copies what overlaps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

P = np.array([0, 3, 3, 7, 10])


def insert(x: Any, p: Any) -> None:
    for value in (0.5, -0.25, 2.0):
        i = np.searchsorted(x, value)
        if i < len(x):
            x[i + 1 :] = x[i:-1]
            x[i] = value


def insert_from_the_right(x: Any, p: Any) -> None:
    for j in range(len(p)):
        i = p[j]
        if i > 0:
            x[: i - 1] = x[1:i]
            x[i - 1] = j


def computed(x: Any, p: Any) -> None:
    for i in range(len(p) - 1):
        x[p[i] : p[i + 1]] = x[p[i] : p[i + 1]] * 2 + x[p[i] - 1]


def in_place(x: Any, p: Any) -> None:
    for i in range(len(p) - 1):
        if p[i + 1] > p[i]:
            x[p[i] + 1 : p[i + 1]] += x[p[i] : p[i + 1] - 1]
            x[p[i] : p[i + 1] - 1] -= x[p[i] + 1 : p[i + 1]]


def reversed_in_place(x: Any, p: Any) -> None:
    for i in range(len(p) - 1):
        x[p[i] : p[i + 1]] = x[p[i] : p[i + 1]][::-1]


PROGRAMS = (insert, insert_from_the_right, computed, in_place, reversed_in_place)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_overlaps(program: Callable[..., Any], dtype: str) -> None:
    compiled = jk.jit(program)
    for seed in range(3):
        ours = (np.sort(np.random.default_rng(seed).standard_normal(10)) * 4).astype(dtype)
        numpys = ours.copy()
        compiled(ours, P)
        program(numpys, P)
        np.testing.assert_array_equal(ours, numpys)
    explanation = compiled.explain(numpys, P)
    assert not explanation.reason
    assert not explanation.breaks


def rows(m: Any, n: Any) -> None:
    for i in range(len(n)):
        m[i, 1 : n[i]] = m[i, : n[i] - 1]
        m[0, : n[i]] += m[i, : n[i]]


def columns(m: Any, n: Any) -> None:
    for i in range(len(n)):
        m[..., : n[i]] *= 2
        m[1, ..., n[i] :] += m[0, n[i] :]


def frames(m: Any, n: Any) -> None:
    """As overlap-add."""
    width = m.shape[-1] // 2
    for i in range(len(n)):
        begin = n[i]
        if width > m.shape[-1] - begin:
            width = m.shape[-1] - begin
        m[0, ..., begin : begin + width] += m[i, :width]


@pytest.mark.parametrize("program", [rows, columns, frames], ids=lambda program: program.__name__)
def test_of_matrices(program: Callable[..., Any]) -> None:
    compiled, n = jk.jit(program), np.array([3, 9, 1, 4])
    ours = np.random.default_rng(0).standard_normal((4, 9))
    numpys = ours.copy()
    compiled(ours, n)
    program(numpys, n)
    np.testing.assert_array_equal(ours, numpys)
