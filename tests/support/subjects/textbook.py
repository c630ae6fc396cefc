"""Textbook algorithms: results, exceptions and effects on arguments must be those of the interpreted function.

`whole` registers those that compile; `left` registers the others with the reason of the fallback.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A function, arguments for a number of elements, and why it falls back to NumPy: "" if it compiles."""

    function: Callable[..., Any]
    make: Callable[[int], tuple[Any, ...]]
    reason: str = ""


PROGRAMS: list[Program] = []


def whole(make: Callable[[int], tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Register a function that compiles."""
    return left(make, "")


def left(make: Callable[[int], tuple[Any, ...]], reason: str) -> Callable[[Any], Any]:
    """Register a function that falls back to NumPy."""

    def keep(function: Any) -> Any:
        PROGRAMS.append(Program(function, make, reason))
        return function

    return keep


def vector(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(n + seed).random(n)


def matrix(n: int, m: int) -> Any:
    return np.random.default_rng(n).random((n, m))


def numbers(n: int, most: int) -> Any:
    return np.random.default_rng(n).integers(0, most, n)


@whole(lambda n: (matrix(n, n) @ matrix(n, n).T + 5 * np.eye(n), vector(n), 1e-10))
def conjugate_gradient(a: Any, b: Any, tolerance: Any) -> Any:
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b) * 2):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < tolerance:
            break
        p = r + (new / rs) * p
        rs = new
    return x


@whole(lambda n: (numbers(n, 2), 5))
def growing_cells(cells: Any, steps: Any) -> Any:
    for _ in range(steps):
        new = cells.copy()
        for i in range(1, len(cells)):
            new[i] = cells[i - 1] + cells[i]
        cells = new
    return cells


@whole(lambda n: (matrix(n, n), 0.5))
def neighbours(distances: Any, most: Any) -> Any:
    counts = np.zeros(len(distances), int)
    for i in range(len(distances)):
        near = np.where(distances[i] <= most)[0]
        counts[i] = len(near)
    return counts


@whole(lambda n: (vector(n),))
def closest_pair(x: Any) -> Any:
    pair = None
    best = np.inf
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = abs(x[i] - x[j])
            if d < best:
                best = d
                pair = (i, j)
    return pair, best


@whole(lambda n: (np.sort(vector(n)), vector(15)[n % 15]))
def binary_search(x: Any, key: Any) -> Any:
    low, high = 0, len(x) - 1
    while low <= high:
        middle = (low + high) // 2
        if x[middle] == key:
            return middle
        if x[middle] < key:
            low = middle + 1
        else:
            high = middle - 1
    return None


@whole(lambda n: (numbers(n, 30), 7))
def found_at(x: Any, key: Any) -> Any:
    index = None
    for i in range(len(x)):
        if x[i] == key:
            index = i
            break
    if index is None:
        return -1
    return index + x[index]


@whole(lambda n: (vector(n),))
def extremes(x: Any) -> Any:
    low = high = None
    for value in x:
        if low is None or value < low:
            low = value
        if high is None or value > high:
            high = value
    return {"low": low, "high": high}


@whole(lambda n: (vector(n), n))
def switches(x: Any, n: Any) -> Any:
    state, count = "low", 0
    for value in x:
        if state == "low" and value > 0.7:
            state = "high"
            count += 1
        elif state != "low" and value < 0.3:
            state = "low"
            count += 1
        if count > n / 6:
            return state, count, "stopped"
    return state, count, None


@whole(lambda n: (vector(n) * 0.01 + 1.0, n))
def fixed_point(x: Any, n: Any) -> Any:
    now = x[0]
    for i in range(n):
        new = np.cos(now)
        if abs(new - now) < 1e-3:
            return {"x": new, "rounds": i, "converged": True}
        now = new
    return {"x": now, "rounds": n, "converged": False}


@whole(lambda n: (vector(n), 1e-3))
def settled(y: Any, tolerance: Any) -> Any:
    while np.abs(y).max() > tolerance:
        y = y * 0.5
    return y


@whole(lambda n: (vector(n) if n < 30 else np.zeros(n), 1.0))
def halved(y: Any, tolerance: Any) -> Any:
    rounds = 0
    while True:
        new = y * 0.5
        rounds += 1
        if np.abs(new - y).max() < tolerance or rounds > 50:
            return new, rounds
        y = new


@left(lambda n: (matrix(n, 4),), "may be a view or a copy")
def best_row(x: Any) -> Any:
    best, most = x[0], -1.0
    for row in x:
        size = (row * row).sum()
        if size > most:
            best, most = row, size
    return best


@whole(lambda n: (vector(n),))
def inner_functions(x: Any) -> Any:
    def square(value: Any) -> Any:
        return value * value

    def norm(values: Any) -> Any:
        total = 0.0
        for value in values:
            total += square(value)
        return math.sqrt(total)

    return x / norm(x)


@left(lambda n: (vector(n),), "the module warnings")
def warned(x: Any) -> Any:
    if x.max() > 2:
        warnings.warn("large", stacklevel=2)
    return x * 2


@left(lambda n: (np.arange(n) % 5,), "numpy.extract")
def caught(x: Any) -> Any:
    try:
        y = np.extract(x, x)
    except Exception:  # noqa: BLE001
        y = x
    return y * 2


@whole(lambda n: (np.random.default_rng(n).random((n, n)) < 0.15, 0))
def breadth_first(adjacent: Any, start: Any) -> Any:
    distance = -np.ones(len(adjacent), dtype=int)
    distance[start] = 0
    waiting = [start]
    while waiting:
        at = waiting.pop(0)
        for to in range(len(adjacent)):
            if adjacent[at, to] and distance[to] < 0:
                distance[to] = distance[at] + 1
                waiting.append(to)
    return distance


@whole(lambda n: (numbers(n * n, 3),))  # more than the initial capacity
def run_lengths(x: Any) -> Any:
    values, lengths, pairs = [], [], []
    i = 0
    while i < len(x):
        j = i
        while j < len(x) and x[j] == x[i]:
            j += 1
        values.append(x[i])
        lengths.append(j - i)
        pairs.append((j, float(x[i])))
        i = j
    lengths.append(0)
    return np.array(values), lengths, pairs[::-1], len(pairs)


@whole(lambda n: (vector(n * 10),))
def next_greater(x: Any) -> Any:
    found = np.full(len(x), -1.0)
    stack: list[Any] = []
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            found[stack.pop()] = x[i]
        stack.append(i)
    return found, stack


@whole(lambda n: (vector(n),))
def emptied(x: Any) -> Any:
    stack = []
    for value in x:
        if value > 0.3:
            stack.append(value)
        else:
            stack.pop()  # an empty list for some numbers
    return stack[-1], stack[0]


@whole(lambda n: (vector(n), 1e-3))
def history(x: Any, tolerance: Any) -> Any:
    losses, kinds = [], []
    now = x[0]
    for rounds in range(100):
        now = now * 0.5 + x[1] * 0.25
        losses.append(now)
        kinds.append("even" if rounds % 2 == 0 else None)
        if rounds > 0 and abs(losses[-2] - losses[-1]) < tolerance:
            break
    return losses, kinds, rounds


@whole(lambda n: (vector(5), matrix(5, 5), matrix(5, 4), numbers(n, 4)))
def viterbi(first: Any, moves: Any, seen: Any, observed: Any) -> Any:
    count, states = len(observed), len(first)
    best = np.zeros((count, states))
    back = np.zeros((count, states), dtype=int)
    best[0] = first * seen[:, observed[0]]
    for t in range(1, count):
        for j in range(states):
            ways = best[t - 1] * moves[:, j]
            back[t, j] = np.argmax(ways)
            best[t, j] = ways[back[t, j]] * seen[j, observed[t]]
    path = [int(np.argmax(best[-1]))]
    for t in range(count - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return path[::-1]


@whole(lambda n: (vector(n), 0.2 if n == 15 else 2.0))
def found_or_not(x: Any, most: Any) -> Any:
    places: list[Any] = []
    for i in range(len(x)):
        if x[i] > most:
            places.append(i)  # noqa: PERF401
    if not places:
        return None
    if len(places) > 3:
        return {"places": np.array(places), "last": places[-1]}
    return None
