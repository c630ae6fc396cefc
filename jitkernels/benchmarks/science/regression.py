"""Regression: logistic by Newton's method, local, isotonic, and robust means."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def logistic_arrays(x: Any, y: Any, rounds: Any) -> Any:
    w = np.zeros(x.shape[1])
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-(x @ w)))
        gradient = x.T @ (y - p)
        hessian = (x * (p * (1 - p))[:, None]).T @ x
        w = w + np.linalg.solve(hessian, gradient)
    return w


def logistic_loops(x: Any, y: Any, rounds: Any) -> Any:
    n, d = x.shape
    w = np.zeros(d)
    for _ in range(rounds):
        g = np.zeros(d)
        h = np.zeros((d, d))
        for i in range(n):
            z = 0.0
            for k in range(d):
                z += x[i, k] * w[k]
            p = 1.0 / (1.0 + math.exp(-z))
            for k in range(d):
                g[k] += x[i, k] * (y[i] - p)
                for m in range(d):
                    h[k, m] += p * (1 - p) * x[i, k] * x[i, m]
        for k in range(d):
            for r in range(k + 1, d):
                f = h[r, k] / h[k, k]
                for c in range(k, d):
                    h[r, c] -= f * h[k, c]
                g[r] -= f * g[k]
        for k in range(d - 1, -1, -1):
            for c in range(k + 1, d):
                g[k] -= h[k, c] * g[c]
            g[k] /= h[k, k]
        for k in range(d):
            w[k] += g[k]
    return w


def logistic_mixed(x: Any, y: Any, rounds: Any) -> Any:
    w = np.zeros(x.shape[1])
    for _ in range(rounds):
        g = np.zeros_like(w)
        h = np.zeros((len(w), len(w)))
        for xi, yi in zip(x, y, strict=True):
            p = 1 / (1 + np.exp(-np.dot(xi, w)))
            g += (yi - p) * xi
            h += p * (1 - p) * np.outer(xi, xi)
        delta = np.linalg.solve(h, g)
        w += delta
    return w


science_program(
    lambda n, _: (np.column_stack([np.ones(n), uniform(n, 4)]), np.round(uniform(n)), 8),
    logistic_arrays, logistic_loops, logistic_mixed,
    size=1000, sizes=(50, 60), rtol=1e-7,
)  # fmt: skip


def loess_arrays(x: Any, y: Any, k: Any) -> Any:
    dist = np.abs(x[:, None] - x[None, :])
    h = np.sort(dist, axis=1)[:, k - 1 : k]
    w = np.clip(1 - (dist / h) ** 3, 0, None) ** 3
    sw = w.sum(1)
    sx = w @ x
    sy = w @ y
    sxx = w @ (x * x)
    sxy = w @ (x * y)
    slope = (sw * sxy - sx * sy) / (sw * sxx - sx**2)
    return (sy - slope * sx) / sw + slope * x


def loess_loops(x: Any, y: Any, k: Any) -> Any:
    n = len(x)
    out = np.empty(n)
    for i in range(n):
        lo = max(0, i - k + 1)
        hi = lo + k
        while hi < n and x[hi] - x[i] < x[i] - x[lo]:
            lo += 1
            hi += 1
        h = max(x[i] - x[lo], x[hi - 1] - x[i])
        sw = sx = sy = sxx = sxy = 0.0
        for j in range(lo, hi):
            u = abs(x[j] - x[i]) / h
            if u < 1.0:
                w = (1.0 - u**3) ** 3
                sw += w
                sx += w * x[j]
                sy += w * y[j]
                sxx += w * x[j] * x[j]
                sxy += w * x[j] * y[j]
        slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx)
        out[i] = (sy - slope * sx) / sw + slope * x[i]
    return out


def loess_mixed(x: Any, y: Any, k: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        d = np.abs(x - x[i])
        nearest = np.argsort(d)[:k]
        h = d[nearest].max()
        w = (1 - np.minimum(d[nearest] / h, 1) ** 3) ** 3
        a = np.stack([np.ones(k), x[nearest]], axis=1)
        aw = a * w[:, None]
        beta = np.linalg.solve(aw.T @ a, aw.T @ y[nearest])
        out[i] = beta[0] + beta[1] * x[i]
    return out


science_program(
    lambda n, _: (np.sort(uniform(n)), uniform(n, seed=1), n // 6),
    loess_arrays, loess_loops, loess_mixed,
    size=400, sizes=(36, 60), rtol=1e-6,
)  # fmt: skip


def isotonic_loops(y: Any) -> Any:
    n = len(y)
    level = np.zeros(n)
    weight = np.zeros(n)
    blocks = 0
    for i in range(n):
        level[blocks] = y[i]
        weight[blocks] = 1.0
        blocks += 1
        while blocks > 1 and level[blocks - 2] > level[blocks - 1]:
            w = weight[blocks - 2] + weight[blocks - 1]
            level[blocks - 2] = (weight[blocks - 2] * level[blocks - 2] + weight[blocks - 1] * level[blocks - 1]) / w
            weight[blocks - 2] = w
            blocks -= 1
    out = np.empty(n)
    k = 0
    for b in range(blocks):
        for _ in range(int(weight[b])):
            out[k] = level[b]
            k += 1
    return out


science_program(
    lambda n, _: (np.arange(n) / n + uniform(n),),
    isotonic_loops,
    size=3000, sizes=(5, 12),
)  # fmt: skip
