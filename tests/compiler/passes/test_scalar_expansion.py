"""Scalar expansion: what inner loops compute again in each iteration of outer ones is computed once, into an array."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.transforms.invariants import scalar_expansion
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop

Program = Callable[..., Any]


def windows(x: Any, w: Any) -> Any:
    """A function of the inner induction variable and of a number."""
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] * (0.54 - 0.46 * np.cos(w[1] * k))
    return out


def of_elements(x: Any, w: Any) -> Any:
    """A function of the elements of an array."""
    out = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[i, k] > 0:
                out[i, k] = 1.0
            out[i, k] += math.exp(-abs(w[k])) * x[i, k]
    return out


def two_functions(x: Any, w: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            a, b = math.sin(w[0] * k), math.tanh(w[k])
            s += x[i, k] * a - s * b * 1e-3
    return s


def from_a_later_begin(x: Any, w: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(2, x.shape[1] - 1):
            out[i] += x[i, k] / (1 + math.exp(-w[k - 2] * k))
    return out


def from_far_away(x: Any, w: Any) -> Any:
    """The array begins with the first iteration."""
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(1 << 40, (1 << 40) + x.shape[1]):
            out[i] += x[i, k - (1 << 40)] * math.sin(k * 1e-12)
    return out


def butterflies(x: Any, w: Any) -> Any:
    """The inner trip count changes in a loop around both; the outer one's is no polynomial of sizes."""
    n = 16
    out = np.zeros(n, np.complex128)
    for i in range(n):
        out[i] = w[i % len(w)]
    size = 2
    while size <= n:
        half = size // 2
        for start in range(0, n, size):
            for k in range(half):
                turn = np.exp(-2j * np.pi * k / size)
                even, odd = out[start + k], turn * out[start + k + half]
                out[start + k] = even + odd
                out[start + k + half] = even - odd
        size *= 2
    return out


def three_loops(x: Any, w: Any) -> Any:
    """The array is computed in front of all of them."""
    out = np.zeros((2, len(x)))
    for a in range(2):
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[a, i] += (x[i, k] + a) * math.log1p(w[k] * w[k])
    return out


def of_the_outermost(x: Any, w: Any) -> Any:
    """The array changes with the outermost loop."""
    out = np.zeros((3, len(x)))
    for a in range(3):
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[a, i] += x[i, k] * math.cos(a * w[k])
    return out


def of_an_extent(x: Any, w: Any) -> Any:
    """The array changes with the outermost loop as the length of a slice does."""
    out = np.zeros((len(w), len(x)))
    for a in range(len(w)):
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[a, i] += x[i, k] * math.cos(w[k] * len(w[:a]))
                out[a, k % len(x)] *= 0.5
    return out


def backwards(x: Any, w: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(x.shape[0] - 1, -1, -1):
        for k in range(x.shape[1]):
            out[i] += x[i, k] * np.cbrt(w[k])
    return out


def ranks(x: Any, w: Any) -> Any:
    """Elements of a column, a cache line apart."""
    y = np.zeros((12, 11))
    for i in range(12):
        for k in range(11):
            y[i, k] = w[(i * 5 + k * 3) % len(w)] + 0.01 * k
    below = np.zeros((12, 11))
    z = y * 1.5
    for k in range(11):
        for i in range(12):
            count = 0
            for j in range(12):
                if z[j, k] < z[i, k]:
                    count += 1
            below[i, k] = count
    return below


def logarithms(x: Any, w: Any) -> Any:
    """NumPy warns of a division by zero, if it runs at all."""
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] + np.log(np.float64(k))
    return out


def logarithms_of_some(x: Any, w: Any) -> Any:
    """The outer trip count is known by the call alone."""
    out, m = np.zeros(len(x)), int(abs(x).max(initial=0.0) > 100)
    for i in range(m):
        for k in range(x.shape[1]):
            out[i] += x[i, k] + np.log(np.float64(k))
    return out


def of_bools_and_ints(x: Any, w: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] if math.sin(k * 1.3) > 0 else int(10 * np.exp(abs(w[k])))
    return out


def in_a_while_loop(x: Any, w: Any) -> Any:
    """The bounds of both loops change, and the inner one's begin."""
    out, size = np.zeros(len(x) + x.shape[1]), x.shape[1]
    while size > 1:
        for i in range(len(x) * size // 4):
            for k in range(size // 2, size):
                out[k] += np.cos(w[k] * size) * (i + 1)
        size -= 2
    return out


def while_it_grows(x: Any, w: Any) -> Any:
    """The outer loop is a while loop."""
    s, t = 0.0, 0
    while s < 3 and t < len(x):
        for k in range(x.shape[1]):
            s += abs(x[t, k]) * math.exp(-abs(w[k]))
        t += 1
    return s, t


def until_a_break(x: Any, w: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        if s > 1:
            break
        for k in range(x.shape[1]):
            s += x[i, k] * np.arctan(w[k])
    return s


def before_a_break(x: Any, w: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            s += x[i, k] * np.arctan(w[k])
        if s > 1:
            break
    return s


def to_the_smaller_end(x: Any, w: Any) -> Any:
    """The inner loop's end is a minimum, and the outer one surely runs."""
    out, size, n = np.zeros(200), 1, x.shape[1]
    while size < n:
        end = min(size + 3, n)
        for i in range(len(w)):
            for k in range(size, end):
                out[k] += w[i] * math.cos(w[k] * size)
                out[i + k % 3] *= 0.5
        size = size * 3 + 1
    return out


def in_a_branch_of_a_loop(x: Any, w: Any) -> Any:
    out = np.zeros(len(x))
    for a in range(3):
        if x.sum() > 0.1 * a:
            for i in range(x.shape[0]):
                for k in range(x.shape[1]):
                    out[i] += x[i, k] * math.exp(-w[k] * w[k] * a)
    return out


EXPANDED = [
    from_far_away, of_bools_and_ints, in_a_while_loop, in_a_branch_of_a_loop, while_it_grows, before_a_break, windows,
    of_elements, two_functions, from_a_later_begin, butterflies, three_loops, of_the_outermost, backwards, ranks,
    logarithms, logarithms_of_some, to_the_smaller_end, of_an_extent,
]  # fmt: skip


def of_both_loops(x: Any, w: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] * math.cos(w[1] * k * i)
    return out


def of_written_elements(x: Any, w: Any) -> Any:
    """What the inner loop reads, the outer one writes."""
    v, out = w.copy(), np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] * math.cos(v[k])
        v[0] = out[i]
    return out


def of_carried_numbers(x: Any, w: Any) -> Any:
    phase, s = 0.1, 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            s += x[i, k] * math.cos(phase * k)
        phase += s * 1e-3
    return s


def in_a_branch(x: Any, w: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[i, k] > 0.5:
                s += math.log(k + 1e-9)
    return s


def until_enough(x: Any, w: Any) -> Any:
    """The inner loop may end before it reaches the elements of which the function raises."""
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if s > 0.4:
                break
            s += abs(x[i, k]) + math.exp(w[k])
    return s


def until_enough_afterwards(x: Any, w: Any) -> Any:
    """Most iterations of the inner loop may never run."""
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            s += abs(x[i, k]) * math.exp(w[k])
            if s > 0.4:
                break
    return s


def of_the_last_round(x: Any, w: Any) -> Any:
    """The inner loop's range changes."""
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(min(i, x.shape[1])):
            s += x[i, k] * math.sin(w[k] * w[k])
    return s


def columns_that_the_loop_writes(x: Any, w: Any) -> Any:
    """The boundary of a grid: elements a cache line apart, of the array that the loops write."""
    p = np.zeros((12, 12))
    for t in range(20):
        for i in range(1, 11):
            for j in range(1, 11):
                p[i, j] = 0.25 * (p[i, j + 1] + p[i, j - 1] + p[i + 1, j] + p[i - 1, j]) + w[j % len(w)] * t
        for i in range(12):
            p[i, 11] = p[i, 10]
        for i in range(12):
            p[i, 0] = p[i, 1]
    return p


def adjacent_elements(x: Any, w: Any) -> Any:
    """A whole cache line is read where its first element is."""
    s = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            s += x[i, k] * (x[0, k] < x[1, k] if x.shape[0] > 1 else 1.0)
    return s


STAYING = [
    columns_that_the_loop_writes, until_a_break, of_both_loops, of_written_elements, of_carried_numbers, in_a_branch,
    until_enough, until_enough_afterwards, of_the_last_round, adjacent_elements,
]  # fmt: skip
SHAPES = [(5, 7), (9, 16), (2, 1), (0, 4), (3, 0), (1, 5)]


def arguments(shape: tuple[int, int]) -> tuple[Any, Any]:
    drawn = np.random.default_rng([9, *shape])
    return drawn.standard_normal(shape), drawn.standard_normal(max(shape[1], 2))


def outcome(function: Program, shape: tuple[int, int]) -> tuple[Any, list[str]]:
    """A call's result and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments(shape))
    return result, [str(one.message) for one in caught]


@pytest.fixture
def expansions(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each loop that has been lowered, whether scalars of its inner loops were expanded."""
    found, expand = [], scalar_expansion.expanded

    def noting(outer: OuterLoop) -> Node:
        new = expand(outer)
        found.append(new is not outer.loop)
        return new

    monkeypatch.setattr(scalar_expansion, "expanded", noting)
    return found


@pytest.mark.parametrize("function", [*EXPANDED, *STAYING], ids=lambda one: one.__name__)
def test_results(function: Program, expansions: list[bool]) -> None:
    """Results are Python's whatever shape comes first, and no warning is new."""
    for first in range(2):
        compiled = jk.jit(function, strict=True)
        for shape in SHAPES[first:] + SHAPES[:first]:
            expected, expected_warnings = outcome(function, shape)
            found, found_warnings = outcome(compiled, shape)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(shape))
            assert {*found_warnings} <= {*expected_warnings}, shape
    assert any(expansions) is (function in EXPANDED)
