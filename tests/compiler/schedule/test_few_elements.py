"""Loop nests of few elements in loops: computed one by one, as processors forward no vectors from several stores."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def in_loop(function: Any, *arguments: Any) -> list[str]:
    """The lines of the loop nests in a function's first loop."""
    lines = jk.jit(function).loops(*arguments).splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith(": loop"))
    inside = lines[first + 1 :]
    return [line for number, line in enumerate(inside) if all(one.startswith("  ") for one in inside[: number + 1])]


def filtered(z: Any, q: Any) -> Any:
    x, p, f = np.zeros((2, 1)), np.eye(2), np.array([[1.0, 0.1], [0.0, 1.0]])
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q * np.eye(2)
        gain = p[:, :1] / (p[0, 0] + 1.0)
        x = x + gain * (z[t] - x[0, 0])
        p = p - gain @ p[:1]
    return x, p


def diffused(a: Any, weights: Any) -> Any:
    for i in range(1, len(a) - 3):
        error = a[i] - np.round(a[i])
        a[i] -= error
        a[i : i + 3] += error * weights
    return a


def smoothed(rows: Any) -> Any:
    total = np.zeros(16)
    for row in rows:
        total = np.sqrt(total + row[0])
    return total


def summed(rows: Any) -> Any:
    total = np.zeros((3, 3))
    for row in rows:
        edges = np.array([row[:2], row[1:3], row[2:4]])
        total += edges @ edges.T / (1.0 + abs(edges[0, 0]))
    return total


FEW = [
    (filtered, lambda n: (np.linspace(0, 1, n), 0.01)),
    (diffused, lambda n: (np.linspace(0, 1, n + 4) ** 2, np.array([3, 5, 1]) / 16)),
    (smoothed, lambda n: (np.random.default_rng(n).random((n, 4)),)),
    (summed, lambda n: (np.random.default_rng(n).random((n, 4)),)),
]


@pytest.mark.parametrize(("function", "arguments"), FEW)
def test_no_vectors(function: Any, arguments: Any) -> None:
    text = in_loop(function, *arguments(50))
    assert text
    assert not [line for line in text if "lanes" in line]


@pytest.mark.parametrize(("function", "arguments"), FEW)
@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_values(function: Any, arguments: Any, size: int) -> None:
    compiled, expected = jk.jit(function, strict=True)(*arguments(size)), function(*arguments(size))
    both = (compiled, expected) if isinstance(expected, tuple) else ((compiled,), (expected,))
    for one, right in zip(*both, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-12)


def many(rows: Any) -> Any:
    total = np.zeros(17)
    for row in rows:
        total = total * 0.5 + row[0]
    return total


def costly(rows: Any) -> Any:
    total = np.zeros(4)
    for row in rows:
        total = np.arctan2(np.exp(total), np.sin(total) + row[0])
    return total


@pytest.mark.parametrize("function", [many, costly])
def test_vectors_of_many_or_costly_elements(function: Any) -> None:
    assert [line for line in in_loop(function, np.ones((5, 4))) if "lanes" in line]
