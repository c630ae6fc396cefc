"""Time series: filters, hidden states, alignments, volatility, and statistics of windows."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def rolling_arrays(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w)
    mean = windows.mean(axis=1)
    std = windows.std(axis=1)
    return mean, std


def rolling_mixed(x: Any, w: Any) -> Any:
    out = np.zeros((2, len(x) - w + 1))
    for i in range(out.shape[1]):
        part = x[i : i + w]
        out[0, i] = part.mean()
        out[1, i] = part.std()
    return out[0], out[1]


science_program(
    lambda n, _: (uniform(n), n // 4 if n < 99 else 50),
    rolling_arrays, rolling_mixed,
    size=20000, sizes=(12, 40),
)  # fmt: skip


def lag_correlation_arrays(x: Any, lags: Any) -> Any:
    d = x - x.mean()
    full = np.correlate(d, d, mode="full")[len(d) - 1 :]
    return full[:lags] / full[0]


science_program(
    lambda n, _: (uniform(n), min(n - 1, 200)),
    lag_correlation_arrays,
    size=4000, sizes=(12, 40),
)  # fmt: skip


def kalman_arrays(z: Any, dt: Any, q: Any, r: Any) -> Any:
    f = np.array([[1.0, dt], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    noise = q * np.array([[dt**4 / 4, dt**3 / 2], [dt**3 / 2, dt**2]])
    x = np.zeros((2, 1))
    p = np.eye(2)
    states = np.zeros((len(z), 2))
    loglik = 0.0
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + noise
        s = h @ p @ h.T + r
        gain = p @ h.T @ np.linalg.inv(s)
        residual = z[t] - h @ x
        x = x + gain @ residual
        p = (np.eye(2) - gain @ h) @ p
        states[t] = x[:, 0]
        loglik -= 0.5 * (np.log(2 * np.pi * s[0, 0]) + residual[0, 0] ** 2 / s[0, 0])
    return states, loglik


def kalman_loops(z: Any, dt: Any, q: Any, r: Any) -> Any:
    x0 = x1 = 0.0
    p00, p01, p11 = 1.0, 0.0, 1.0
    states = np.empty((len(z), 2))
    loglik = 0.0
    for t in range(len(z)):
        x0 = x0 + dt * x1
        p00 = p00 + 2 * dt * p01 + dt * dt * p11 + q * dt**4 / 4
        p01 = p01 + dt * p11 + q * dt**3 / 2
        p11 = p11 + q * dt**2
        s = p00 + r
        k0, k1 = p00 / s, p01 / s
        e = z[t] - x0
        x0 += k0 * e
        x1 += k1 * e
        p00, p01, p11 = (1 - k0) * p00, (1 - k0) * p01, p11 - k1 * p01
        states[t, 0] = x0
        states[t, 1] = x1
        loglik -= 0.5 * (math.log(2 * math.pi * s) + e * e / s)
    return states, loglik


science_program(
    lambda n, _: (np.cumsum(uniform(n)), 1.0, 0.01, 1.0),
    kalman_arrays, kalman_loops,
    size=2000, sizes=(5, 12),
)  # fmt: skip


def hmm_arrays(a: Any, b: Any, start: Any, seen: Any) -> Any:
    alpha = np.zeros((len(seen), len(start)))
    scale = np.zeros(len(seen))
    alpha[0] = start * b[:, seen[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, len(seen)):
        alpha[t] = (alpha[t - 1] @ a) * b[:, seen[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    return alpha, np.log(scale).sum()


def hmm_loops(a: Any, b: Any, start: Any, seen: Any) -> Any:
    m, n = len(start), len(seen)
    alpha = np.zeros((n, m))
    loglik = 0.0
    for t in range(n):
        total = 0.0
        for j in range(m):
            s = 0.0
            if t == 0:
                s = start[j]
            else:
                for i in range(m):
                    s += alpha[t - 1, i] * a[i, j]
            alpha[t, j] = s * b[j, seen[t]]
            total += alpha[t, j]
        for j in range(m):
            alpha[t, j] /= total
        loglik += math.log(total)
    return alpha, loglik


science_program(
    lambda n, _: (uniform(8, 8), uniform(8, 20), np.full(8, 0.125), np.random.default_rng(n).integers(0, 20, n)),
    hmm_arrays, hmm_loops,
    size=1000, sizes=(5, 12),
)  # fmt: skip


def viterbi_arrays(a: Any, b: Any, start: Any, seen: Any) -> Any:
    n = len(seen)
    score = start + b[:, seen[0]]
    back = np.zeros((n, len(start)), dtype=np.int64)
    for t in range(1, n):
        options = score[:, None] + a
        back[t] = np.argmax(options, axis=0)
        score = np.max(options, axis=0) + b[:, seen[t]]
    path = np.zeros(n, dtype=np.int64)
    path[-1] = np.argmax(score)
    for t in range(n - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, score.max()


def viterbi_loops(a: Any, b: Any, start: Any, seen: Any) -> Any:
    n, m = len(seen), len(start)
    score = np.zeros((n, m))
    back = np.zeros((n, m), dtype=np.int32)
    for j in range(m):
        score[0, j] = start[j] + b[j, seen[0]]
    for t in range(1, n):
        for j in range(m):
            best = -math.inf
            arg = -1
            for i in range(m):
                s = score[t - 1, i] + a[i, j]
                if s > best:
                    best = s
                    arg = i
            score[t, j] = best + b[j, seen[t]]
            back[t, j] = arg
    last = 0
    for j in range(m):
        if score[n - 1, j] > score[n - 1, last]:
            last = j
    path = [last]
    for t in range(n - 1, 0, -1):
        last = back[t, last]
        path.append(last)
    path.reverse()
    return np.array(path), score[n - 1].max()


science_program(
    lambda n, _: (uniform(8, 8), uniform(8, 20), np.full(8, 0.125), np.random.default_rng(n).integers(0, 20, n)),
    viterbi_arrays, viterbi_loops,
    size=1000, sizes=(5, 12),
)  # fmt: skip


def warping_loops(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            total[i + 1, j + 1] = abs(a[i] - b[j]) + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return total[n, m]


def warping_mixed(a: Any, b: Any) -> Any:
    m = len(b)
    previous = np.full(m + 1, np.inf)
    previous[0] = 0
    for x in a:
        current = np.full(m + 1, np.inf)
        cost = np.abs(b - x)
        for j in range(m):
            current[j + 1] = cost[j] + min((previous[j], previous[j + 1], current[j]))
        previous = current
    return previous[-1]


science_program(
    lambda n, _: (np.cumsum(uniform(n)), np.cumsum(uniform(n + 3))),
    warping_loops, warping_mixed,
    size=300, sizes=(5, 12),
)  # fmt: skip


def garch_mixed(r: Any, omega: Any, alpha: Any, beta: Any) -> Any:
    var = np.empty_like(r)
    var[0] = np.var(r)
    for t in range(1, len(r)):
        var[t] = omega + alpha * r[t - 1] ** 2 + beta * var[t - 1]
    return -0.5 * np.sum(np.log(2 * np.pi * var) + r**2 / var)


def garch_loops(r: Any, omega: Any, alpha: Any, beta: Any) -> Any:
    n = r.shape[0]
    var = 0.0
    for i in range(n):
        var += r[i]
    mean = var / n
    var = 0.0
    for i in range(n):
        var += (r[i] - mean) ** 2
    var /= n
    loglik = 0.0
    for i in range(n):
        loglik -= 0.5 * (math.log(2 * math.pi) + math.log(var) + r[i] * r[i] / var)
        var = omega + alpha * r[i] * r[i] + beta * var
    return loglik


science_program(
    lambda n, _: (0.01 * (uniform(n) - 0.5), 1e-6, 0.08, 0.9),
    garch_mixed, garch_loops,
    size=5000, sizes=(12, 40),
)  # fmt: skip
