"""Programs with array expressions inside loops: stencils over time, iterations to convergence."""

# ruff: noqa: B007  # ordinary user style
from collections.abc import Callable
from typing import Any

import numpy as np


def heat(u: Any, steps: Any, c: Any) -> Any:
    for t in range(steps):
        u[1:-1] = u[1:-1] + c * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u


def jacobi(a: Any, b: Any, steps: Any) -> None:
    for t in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])


def until_still(u: Any, tolerance: Any) -> Any:
    error = 1.0
    rounds = 0
    while error > tolerance:
        new = 0.5 * (u[:-2] + u[2:])
        error = np.max(np.abs(new - u[1:-1]))
        u[1:-1] = new
        rounds += 1
    return rounds


def life(g: Any, steps: Any) -> None:
    for t in range(steps):
        c = g[:-2, :-2] + g[:-2, 1:-1] + g[:-2, 2:] + g[1:-1, :-2] + g[1:-1, 2:] + g[2:, :-2] + g[2:, 1:-1] + g[2:, 2:]
        g[1:-1, 1:-1] = (c == 3) | ((c == 2) & (g[1:-1, 1:-1] == 1))


def relaxed(u: Any, steps: Any) -> Any:
    for t in range(steps):
        u = u * 0.5 + np.sin(u)
    return u


def swapped(u: Any, steps: Any) -> Any:
    a = u.copy()
    b = u.copy()
    for t in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a, b = b, a
    return a, b


def rotated(u: Any, steps: Any) -> Any:
    a = u.copy()
    b = u * 2
    c = u * 3
    for t in range(steps):
        a[1:-1] += b[2:] - c[:-2] * 0.5
        a, b, c = b, c, a
    return a, b, c


def swapped_elements(u: Any, steps: Any) -> Any:
    a = u.copy()
    b = u.copy()
    for t in range(steps):
        for i in range(1, len(a) - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        a, b = b, a
    return a, b


def remembered(u: Any, steps: Any) -> Any:
    before = np.zeros_like(u)
    for t in range(steps):
        following = u * 0.9 - before * 0.2
        before = u
        u = following
    return u, before


def fields(ex: Any, ey: Any, hz: Any, steps: Any) -> None:
    for t in range(steps):
        ey[0, :] = t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def mixed(u: Any, steps: Any) -> Any:
    total = 0.0
    for t in range(steps):
        s = u.sum()
        if s > 10:
            u[:] = u * 0.5
            total += s
        else:
            u += 0.25
        u[t % len(u)] = total
    return total


def masked(u: Any, steps: Any) -> None:
    for t in range(steps):
        u *= 1.5
        u[u > 4] -= 4


def restarted(u: Any, steps: Any) -> Any:
    for t in range(steps):
        v = np.zeros(len(u))
        for i in range(1, len(u)):
            v[i] = v[i - 1] * 0.5 + u[i]
        u = v
    return u


def found_in_all(a: Any) -> Any:
    """Leave loops from the `else` of inner loops."""
    rounds = 0
    for i in range(len(a)):
        for j in range(len(a)):
            rounds += 1
            if a[j] > i:
                break
        else:
            k = 0
            while k < 9:
                k += 1
                if a[k] > 100:
                    break
            else:
                rounds += 1000
                break
            continue
    return rounds


def valid(u: Any, v: Any) -> Any:
    """After a test that may raise, bind other arrays to the same names."""
    if u.sum() > 1e6:
        raise ValueError("large")
    u = u * 2 + u[0]
    if v[0] < 100:
        w = v[1:] * 2
    elif v[1] < 0:
        raise ValueError("small")
    else:
        raise ValueError("none")
    v = v[::2]
    return u, v, w


def powers(a: Any, steps: Any) -> Any:
    x = np.ones(a.shape[0])
    for t in range(steps):
        y = a @ x
        x = y / np.sqrt((y * y).sum())
    return x


def regression(x: Any, y: Any, w: Any, steps: Any, rate: Any) -> Any:
    for t in range(steps):
        p = 1 / (1 + np.exp(-(x @ w)))
        w = w - rate * (x.T @ (p - y)) / len(y)
    return w


def trained(x: Any, y: Any, v: Any, w: Any, steps: Any) -> Any:
    for t in range(steps):
        hidden = np.tanh(x @ v)
        error = hidden @ w - y
        slope = (error @ w.T) * (1 - hidden * hidden)
        w -= 0.01 * (hidden.T @ error)
        v -= 0.01 * (x.T @ slope)
    return (error * error).sum()


def filtered(a: Any, h: Any, z: Any) -> Any:
    x = np.zeros(a.shape[0])
    p = np.eye(a.shape[0])
    total = 0.0
    for t in range(len(z)):
        x = a @ x
        p = a @ p @ a.T + 0.01
        gain = p @ h / (h @ p @ h + 0.1)
        x = x + gain * (z[t] - h @ x)
        p = p - np.outer(gain, h @ p)
        total += x[0]
    return x, total


def numbers(*shape: int) -> Any:
    """Return numbers from 0 to 1."""
    return np.random.default_rng(1).random(shape)


def plane() -> Any:
    return numbers(11, 13)


ARRAYS: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    heat: (lambda: numbers(30), lambda: 12, lambda: 0.1),
    jacobi: (plane, plane, lambda: 9),
    until_still: (lambda: numbers(20), lambda: 1e-3),
    life: (lambda: (plane() > 0.5).astype(int), lambda: 9),
    relaxed: (lambda: numbers(30), lambda: 12),
    swapped: (plane, lambda: 13),
    rotated: (lambda: numbers(20), lambda: 13),
    swapped_elements: (lambda: numbers(20), lambda: 12),
    remembered: (lambda: numbers(20), lambda: 11),
    fields: (plane, plane, plane, lambda: 9),
    mixed: (lambda: numbers(40), lambda: 20),
    masked: (lambda: numbers(20), lambda: 12),
    powers: (lambda: numbers(12, 12), lambda: 11),
    regression: (lambda: numbers(14, 10), lambda: numbers(14), lambda: numbers(10), lambda: 12, lambda: 0.1),
    trained: (
        lambda: numbers(14, 10),
        lambda: numbers(14, 9),
        lambda: numbers(10, 11),
        lambda: numbers(11, 9),
        lambda: 12,
    ),
    filtered: (lambda: numbers(9, 9) / 9, lambda: numbers(9), lambda: numbers(20)),
    found_in_all: (lambda: numbers(20) * 3,),
    valid: (lambda: numbers(20), lambda: numbers(20)),
    restarted: (lambda: numbers(20), lambda: 9),
}
"""Functions with their argument factories."""
