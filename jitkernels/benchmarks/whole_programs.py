"""Programs with loops over time or along arrays, in ordinary NumPy style, without adaptations to a compiler."""

from collections.abc import Callable
from typing import Any

import numpy as np


def jacobi(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a


def gauss_seidel(a: Any, steps: Any) -> Any:
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip
    return a


def heat_3d(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        for source, target in ((a, b), (b, a)):
            inner = source[1:-1, 1:-1, 1:-1]
            target[1:-1, 1:-1, 1:-1] = (
                inner
                + 0.125 * (source[2:, 1:-1, 1:-1] - 2.0 * inner + source[:-2, 1:-1, 1:-1])
                + 0.125 * (source[1:-1, 2:, 1:-1] - 2.0 * inner + source[1:-1, :-2, 1:-1])
                + 0.125 * (source[1:-1, 1:-1, 2:] - 2.0 * inner + source[1:-1, 1:-1, :-2])
            )
    return a


def fdtd(ex: Any, ey: Any, hz: Any, source: Any) -> Any:
    for t in range(source.shape[0]):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


def floyd_warshall(path: Any) -> Any:
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])
    return path


def cholesky(a: Any) -> Any:
    n = a.shape[0]
    low = np.zeros_like(a)
    for i in range(n):
        for j in range(i):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
        low[i, i] = np.sqrt(a[i, i] - low[i, :i] @ low[i, :i])
    return low


def lu(a: Any) -> Any:
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def triangular_solve(low: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(low.shape[0]):
        x[i] = (b[i] - np.dot(low[i, :i], x[:i])) / low[i, i]
    return x


def mandelbrot(times: Any, most: Any) -> Any:
    height, width = times.shape
    for i in range(height):
        for j in range(width):
            x, y = 3.0 * j / width - 2.0, 2.0 * i / height - 1.0
            a = b = 0.0
            k = 0
            while k < most and a * a + b * b <= 4.0:
                a, b = a * a - b * b + x, 2.0 * a * b + y
                k += 1
            times[i, j] = k
    return times


def bodies(x: Any, v: Any, mass: Any, steps: Any) -> Any:
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            fx = fy = fz = 0.0
            for j in range(n):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                square = dx * dx + dy * dy + dz * dz + 0.01
                pull = mass[j] / (square * np.sqrt(square))
                fx, fy, fz = fx + pull * dx, fy + pull * dy, fz + pull * dz
            v[i, 0] += 0.01 * fx
            v[i, 1] += 0.01 * fy
            v[i, 2] += 0.01 * fz
        x += 0.01 * v
    return x


def life(g: Any, steps: Any) -> Any:
    for _ in range(steps):
        count = (
            g[:-2, :-2] + g[:-2, 1:-1] + g[:-2, 2:] + g[1:-1, :-2] + g[1:-1, 2:]
            + g[2:, :-2] + g[2:, 1:-1] + g[2:, 2:]
        )  # fmt: skip
        g[1:-1, 1:-1] = (count == 3) | ((count == 2) & (g[1:-1, 1:-1] == 1))
    return g


def smith_waterman(first: Any, second: Any, gap: Any) -> Any:
    h = np.zeros((len(first) + 1, len(second) + 1))
    best = 0.0
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            score = 2.0 if first[i - 1] == second[j - 1] else -1.0
            value = max(h[i - 1, j - 1] + score, h[i - 1, j] - gap, h[i, j - 1] - gap, 0.0)
            h[i, j] = value
            best = max(best, value)
    return best


def kalman(z: Any, f: Any, q: Any, r: Any) -> Any:
    n = f.shape[0]
    x, p = np.zeros(n), np.eye(n)
    states = np.zeros((z.shape[0], n))
    for t in range(z.shape[0]):
        x = f @ x
        p = f @ p @ f.T + q
        gain = p[:, 0] / (p[0, 0] + r)
        x = x + gain * (z[t] - x[0])
        p = p - np.outer(gain, p[0])
        states[t] = x
    return states


def lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
    n = u.shape[1]
    h, c = np.zeros(n), np.zeros(n)
    outputs = np.zeros((x.shape[0], n))
    for t in range(x.shape[0]):
        z = w @ x[t] + u @ h + b
        i, f, o = 1.0 / (1.0 + np.exp(-z[: 3 * n])).reshape(3, n)
        c = f * c + i * np.tanh(z[3 * n :])
        h = o * np.tanh(c)
        outputs[t] = h
    return outputs


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape)


def _wide(n: int) -> Any:
    return _random(n, n) + n * np.eye(n)


PROGRAMS: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    jacobi: lambda: (_random(100, 100), _random(100, 100), 50),
    gauss_seidel: lambda: (_random(60, 60), 10),
    heat_3d: lambda: (_random(24, 24, 24), _random(24, 24, 24), 20),
    fdtd: lambda: (_random(80, 90), _random(80, 90), _random(80, 90), _random(50)),
    floyd_warshall: lambda: (_random(80, 80),),
    cholesky: lambda: (_wide(80) @ _wide(80).T,),
    lu: lambda: (_wide(100),),
    triangular_solve: lambda: (np.tril(_wide(300)), _random(300)),
    mandelbrot: lambda: (np.zeros((40, 60), np.int64), 100),
    bodies: lambda: (_random(40, 3), _random(40, 3), _random(40), 10),
    life: lambda: ((_random(128, 128) > 0.7).astype(np.int8), 50),
    smith_waterman: lambda: (
        np.random.default_rng(0).integers(0, 4, 150),
        np.random.default_rng(1).integers(0, 4, 150),
        1.0,
    ),
    kalman: lambda: (_random(200), np.eye(4) + 0.1 * _random(4, 4), 0.01 * np.eye(4), 0.5),
    lstm: lambda: (_random(50, 32), _random(256, 32) / 9, _random(256, 64) / 9, _random(256)),
}
"""The programs and their argument factories, which return new arrays each time."""
