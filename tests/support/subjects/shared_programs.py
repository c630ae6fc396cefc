"""Functions with parallel loops, and similar ones whose loops must stay serial.

Where an iteration computes arrays, a condition keeps the loop: without it, it would become a dimension of loop nests.
"""
# ordinary user style

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.benchmarks.scalar_programs import triple_loop
from jitkernels.benchmarks.whole_programs import mandelbrot


def bodies(x: Any, v: Any, steps: Any) -> Any:
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            fx = fy = 0.0
            for j in range(n):
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                pull = 1.0 / (dx * dx + dy * dy + 0.01)
                fx, fy = fx + pull * dx, fy + pull * dy
            v[i, 0] += 0.01 * fx
            v[i, 1] += 0.01 * fy
        for i in range(n):
            for k in range(2):
                x[i, k] += 0.01 * v[i, k]
    return x


def backwards(a: Any, out: Any) -> Any:
    n = a.shape[0]
    for i in range(1, n):
        best = a[i, 0]
        for j in range(a.shape[1]):
            if a[i, j] > best:
                best = a[i, j]
        out[n - 1 - i, 0] = best
        for j in range(1, out.shape[1]):
            out[n - 1 - i, j] = out[n - 1 - i, j - 1] + best
    return out


def sorted_rows(a: Any) -> Any:
    for row in range(a.shape[0]):
        for i in range(1, a.shape[1]):
            x = a[row, i]
            j = i - 1
            while j >= 0 and a[row, j] > x:
                a[row, j + 1] = a[row, j]
                j -= 1
            a[row, j + 1] = x
    return a


def picked(a: Any, places: Any, out: Any) -> Any:
    for i in range(len(places)):
        s = 0.0
        for j in range(len(places)):
            s += a[places[i]] * a[j]
        out[i] = s
    return out


def before(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += a[i - 1, j] * 0.5
    return a


def across(a: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i] + 1
    return a


def counted(x: Any, counts: Any) -> Any:
    for i in range(len(x)):
        for j in range(len(counts)):
            if x[i] == j:
                counts[j] += 1
    return counts


def summed(a: Any) -> Any:
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = s * 0.5 + a[i, j]
            a[i, j] = 0
    return s


def until(a: Any, limit: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 2
        if a[i, 0] > limit:
            break
    return a


def overlapping(a: Any) -> Any:
    for i in range(a.shape[0] - 1):
        for j in range(a.shape[1]):
            a[i, j] = j
            a[i + 1, j] = -j
    return a


def scattered(a: Any, places: Any) -> Any:
    for i in range(len(places)):
        for j in range(a.shape[1]):
            a[places[i], j] = i
    return a


def doubled(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(a.shape[1]):
                b[i, j] = a[i - 1, j] + a[i + 1, j]
        for i in range(1, a.shape[0] - 1):
            for j in range(a.shape[1]):
                a[i, j] = b[i, j] * 0.5
    return a


def dots(x: Any, w: Any, out: Any) -> Any:
    for i in range(len(x)):
        if w[0] < 2:
            out[i] = np.sum(x[i] * w)
    return out


def blurred(x: Any, out: Any) -> Any:
    for i in range(1, x.shape[0] - 1):
        if x[i, 0] < 2:
            row = (x[i - 1] + x[i] + x[i + 1]) / 3
            out[i] = np.sqrt(1 + np.abs(row - row.mean()))
    return out


def softened(x: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(x.shape[0]):
            if x[i, 0] < 9:
                x[i] = np.exp(x[i] - x[i].max()) + x[i] * 0.5
    return x


def multiplied(x: Any, out: Any) -> Any:
    for i in range(len(x)):
        if x[i, 0, 0] < 2:
            out[i] = np.tanh(x[i]) @ x[i].T
    return out


def of_the_row_before(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] = np.tanh(x[i]) + x[i - 1] * 0.5
    return x


def of_all_rows(x: Any, out: Any) -> Any:
    for i in range(x.shape[0]):
        out[i] = np.tanh(out.sum()) + x[i]
    return out


def two_rows_at_once(x: Any, out: Any) -> Any:
    for i in range(x.shape[0] - 1):
        out[i : i + 2] = np.tanh(x[i : i + 2])
    return out


def counts_above(x: Any) -> Any:
    n = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0.5:
                if x[i, j] < 0.7:
                    n += 1
                else:
                    n += 2
    return n


def extremes(a: Any) -> Any:
    low, high, best, s = 10, -10, a[0, 0], 7
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            low, high = min(low, int(a[i, j])), max(high, int(a[i, j]) * 2)
            if a[i, j] > best:
                best = a[i, j]
            s -= int(a[i, j])
    return low, high, best, s


def bits_of(a: Any) -> Any:
    x, y = 0, -1
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x ^= int(a[i, j])
            y &= int(a[i, j]) | 3
    return x, y


def sums_and_rows(a: Any, out: Any) -> Any:
    s = np.int64(5)
    for i in range(a.shape[0]):
        out[i] = np.sum(a[i] * a[i])
        s += a[i, 0]
    return s, out


def where_it_is(a: Any) -> Any:
    best, at = a[0, 0], 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > best:
                best, at = a[i, j], i
    return best, at


def running_total(a: Any, out: Any) -> Any:
    n = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            n += int(a[i, j])
        out[i] = n
    return out


def largest_run(a: Any) -> Any:
    s = most = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = max(s + int(a[i, j]), 0)
            most = max(most, s)
    return most


def kept(x: Any, out: Any) -> Any:
    n = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0.5:
                out[n] = x[i, j]
                n += 1
    return n


def sum_of_floats(x: Any) -> Any:
    s, most = 0.0, 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * 0.1
            most = max(most, x[i, j])
    return s, most


def random(*shape: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(1).random(shape)


def integers(n: Any, most: int, least: int = 0) -> Callable[[], Any]:
    return lambda: np.random.default_rng(1).integers(least, most, n)


SHARED: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    mandelbrot: (lambda: np.zeros((60, 50), np.int64), lambda: 60),
    bodies: (random(90, 2), random(90, 2), lambda: 3),
    triple_loop: (random(70, 60), random(60, 50)),
    backwards: (random(300, 300), random(300, 40)),
    sorted_rows: (random(200, 30),),
    picked: (random(400), integers(400, 400), random(400)),
    doubled: (random(150, 200), random(150, 200), lambda: 3),
    dots: (random(300, 2000), random(2000), random(300)),
    blurred: (random(200, 600), random(200, 600)),
    softened: (random(200, 500), lambda: 3),
    multiplied: (random(40, 30, 50), random(40, 30, 30)),
    counts_above: (random(300, 300),),
    extremes: (integers((300, 300), 50, -50),),
    bits_of: (integers((300, 300), 50, -50),),
    sums_and_rows: (integers((300, 300), 50, -50), integers(300, 3)),
}
ALONE: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    before: (random(300, 300),),
    across: (random(300, 300),),
    counted: (integers(3000, 40), lambda: np.zeros(40, np.int64)),
    summed: (random(300, 300),),
    until: (random(300, 300), lambda: 1.99),
    overlapping: (random(300, 300),),
    scattered: (random(300, 300), integers(300, 300)),
    of_the_row_before: (random(300, 400),),
    of_all_rows: (random(100, 300), random(100, 300)),
    two_rows_at_once: (random(100, 300), random(100, 300)),
    where_it_is: (integers((300, 300), 50, -50),),
    running_total: (integers((300, 300), 50, -50), integers(300, 3)),
    largest_run: (integers((300, 300), 50, -50),),
    kept: (random(300, 300), random(90_000)),
    sum_of_floats: (random(300, 300),),
}
