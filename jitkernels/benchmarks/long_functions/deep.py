"""Deeply nested loops: tracing a loop retraces the inner ones until the types of carried values are stable."""

from typing import Any

import numpy as np


def four_deep(x: Any, y: Any, n: Any) -> Any:
    """Variables that become floats, ints carried through all loops, an array of each depth."""
    total: Any = 0
    count = 0
    best = -1
    for i in range(n):
        row = np.zeros(n)
        for j in range(n):
            limit = 0
            for k in range(n):
                shift = count % 3
                for m in range(n):
                    value = x[(i + m) % n] * y[(j + k) % n]
                    if value > limit:
                        limit = value
                        best = m
                    elif value < 0.1:
                        continue
                    total += value
                    row[(m + shift) % n] += value
                count += best
                if count > 1000:
                    count -= 1000
            y[j] += 0.001 * limit
        x[i] = 0.5 * (x[i] + row[i % n])
    return total, count, best


def six_deep(x: Any, y: Any, n: Any) -> Any:
    """The same numbers in all of six loops, each of which changes some."""
    a: Any = 0
    b: Any = 0
    c: Any = 0
    d: Any = 0
    for i in range(n):
        a = b + 1
        for j in range(n):
            b = c * 0.5
            for k in range(n):
                c = d + a
                for m in range(n):
                    d = a * 0.25
                    for p in range(n):
                        if x[(i + p) % n] > y[(j + m) % n]:
                            a = c * 0.125
                        for q in range(n):
                            x[(k + q) % n] = 0.5 * (x[q] + y[p])
                            d += x[q] * 0.001
    return a, b, c, d
