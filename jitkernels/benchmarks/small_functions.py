"""Small everyday functions: calls of NumPy, loops and branches, for arrays of a few elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

STRAIGHT: dict[str, Function] = {
    "sort_down": lambda x: np.sort(x)[::-1],
    "argsort": lambda x: np.argsort(x),
    "ranks": lambda x: np.argsort(np.argsort(x)),
    "median": lambda x: np.median(x),
    "mad": lambda x: np.median(np.abs(x - np.median(x))),
    "percentile": lambda x: np.percentile(x, 30),
    "quartiles": lambda x: np.percentile(x, [25, 50, 75]),
    "cdf": lambda x: np.cumsum(x) / x.sum(),
    "zscore": lambda x: (x - x.mean()) / (x.std() + 1e-9),
    "selfdot": lambda x: np.dot(x, x),
    "norm": lambda x: np.linalg.norm(x),
    "unit": lambda x: x / np.linalg.norm(x),
    "clip": lambda x: np.clip(x, 0.2, 0.8),
    "where": lambda x: np.where(x > 0.5, x, -x),
    "digitize": lambda x: np.digitize(x, np.linspace(0, 1, 5)),
    "smooth": lambda x: np.convolve(x, np.ones(3) / 3, mode="same"),
    "outer": lambda x: np.outer(x[:20], x[:20]),
    "hist": lambda x: np.histogram(x, bins=10)[0],
    "uniq": lambda x: np.unique(x),
    "positive": lambda x: x[x > 0.5],
    "nonzero": lambda x: np.nonzero(x > 0.5)[0],
    "cat": lambda x: np.concatenate((x, x[::-1])),
    "stack": lambda x: np.stack([x, x * 2], axis=1),
    "roll": lambda x: np.roll(x, 1) + x,
    "diff": lambda x: np.diff(x, prepend=0.0),
    "argmax": lambda x: int(np.argmax(x)),
    "minmax": lambda x: (x.min(), x.max()),
    "scaled01": lambda x: (x - x.min()) / (x.max() - x.min() + 1e-9),
    "poly": lambda x: np.polyval(np.array([1.0, 2.0, 3.0]), x),
    "isin": lambda x: np.isin(x, np.array([0.1, 0.2])),
    "tile": lambda x: np.tile(x, 3),
    "repeat": lambda x: np.repeat(x, 2),
    "pad": lambda x: np.pad(x, 1),
    "running": lambda x: np.maximum.accumulate(x),
    "anyall": lambda x: (bool(np.any(x > 2)), bool(np.all(x < 2))),
    "rounded": lambda x: np.round(x, 2),
    "asfloat": lambda x: float(x.sum()),
    "aslist": lambda x: (x * 2).tolist(),
    "asdict": lambda x: {"mean": x.mean(), "sum": x.sum()},
    "identity": lambda x: x,
    "view": lambda x: x[::2],
    "copy": lambda x: x.copy(),
    "length": lambda x: len(x),
    "isnan": lambda x: np.isnan(x).any(),
    "nanmean": lambda x: np.nanmean(x),
    "count": lambda x: np.count_nonzero(x > 0.5),
    "cplx": lambda x: np.abs(np.fft.rfft(x)),
    "cov": lambda x: np.cov(x, x * 2 + 1),
    "trapz": lambda x: np.trapezoid(x),
    "interp": lambda x: np.interp(x, np.array([0.0, 0.5, 1.0]), np.array([1.0, 3.0, 2.0])),
    "lookup": lambda x: np.searchsorted(np.array([0.1, 0.3, 0.7]), x),
    "top3": lambda x: np.sort(x)[-3:].sum(),
    "flip": lambda x: np.flip(x) - x,
    "zeros": lambda x: np.zeros(len(x)),
    "partition": lambda x: np.partition(x, len(x) // 2)[len(x) // 2],
    "vander": lambda x: np.vander(x[:10], 3),
    "lexi": lambda x: np.lexsort((x, np.round(x, 1))),
}
"""Functions of one array."""


def bisect(x: Any) -> Any:
    y = np.sort(x)
    lo, hi = 0, len(y)
    while lo < hi:
        mid = (lo + hi) // 2
        if y[mid] < 0.5:
            lo = mid + 1
        else:
            hi = mid
    return lo


def newton(x: Any) -> Any:
    a = x[0] + 1.0
    r = a
    for _ in range(10):
        r = 0.5 * (r + a / r)
    return r


def total(x: Any) -> Any:
    t = 0.0
    for value in x:
        t += value
    return t


def longest(x: Any) -> Any:
    best = run = 0
    for value in x:
        if value > 0.3:
            run += 1
            best = max(best, run)
        else:
            run = 0
    return best


def mode_branch(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return -x


def first_above(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 0.9:
            return i
    return -1


def moving_median(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.median(x[max(0, i - 2) : i + 3])
    return out


def peaks(x: Any) -> Any:
    maxima = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            maxima.append(i)  # noqa: PERF401  # as people write it
    return maxima


def ewma(x: Any) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = 0.9 * out[i - 1] + 0.1 * x[i]
    return out


def clip_loop(x: Any) -> Any:
    y = x.copy()
    for i in range(len(y)):
        if y[i] > 0.8:
            y[i] = 0.8
    return y


def sortstat(x: Any) -> Any:
    y = np.sort(x)
    t = 0.0
    for i in range(len(y)):
        t += y[i] * (i + 1)
    return t / len(y)


def counts(x: Any) -> Any:
    bins = np.zeros(10, np.int64)
    for value in x:
        k = int(abs(value) * 10)
        if k > 9:
            k = 9
        bins[k] += 1
    return bins


def power(x: Any) -> Any:
    v = np.ones(4)
    for _ in range(5):
        v = v * x[0] + 1
        v /= np.linalg.norm(v)
    return v


def few(x: Any) -> Any:
    a = x
    for _ in range(3):
        a = np.sqrt(np.abs(a)) + 1
    return a


def outlier(x: Any) -> Any:
    for _ in range(5):
        m, s_ = x.mean(), x.std() + 1e-9
        x = np.where(np.abs(x - m) > 2 * s_, m, x)
    return x


def argsorted_gain(x: Any) -> Any:
    order = np.argsort(-x)
    t, n = 0.0, 0
    for i in order:
        if t > 1.0:
            break
        t += x[i]
        n += 1
    return n


def converge(x: Any) -> Any:
    old = x.sum()
    n = 0
    while n < 50:
        new = 0.5 * (old + 1)
        if abs(new - old) < 1e-6:
            break
        old = new
        n += 1
    return old, n


def shuffle_sum(x: Any) -> Any:
    y = x.copy()
    for i in range(len(y) - 1, 0, -1):
        j = (i * 7919) % (i + 1)
        y[i], y[j] = y[j], y[i]
    return y


def listcomp(x: Any) -> Any:
    return np.array([value * value for value in x])


def gcds(x: Any) -> Any:
    a, b = len(x) * 12, 18
    while b:
        a, b = b, a % b
    return a


def resample(x: Any) -> Any:
    n = len(x)
    out = np.empty(n // 2)
    for i in range(n // 2):
        out[i] = x[2 * i : 2 * i + 2].mean()
    return out


def interp_loop(x: Any) -> Any:
    t = 0.0
    for i in range(5):
        t += np.interp(i * 0.2, np.array([0.0, 0.5, 1.0]), np.array([1.0, 3.0, 2.0]))
    return t + x[0]


def cum_unique(x: Any) -> Any:
    seen = 0
    for i in range(len(x)):
        if not np.any(x[:i] == x[i]):
            seen += 1
    return seen


LOOPS: tuple[Function, ...] = (
    bisect,
    newton,
    total,
    longest,
    mode_branch,
    first_above,
    moving_median,
    peaks,
    ewma,
    clip_loop,
    sortstat,
    counts,
    power,
    few,
    outlier,
    argsorted_gain,
    converge,
    shuffle_sum,
    listcomp,
    gcds,
    resample,
    interp_loop,
    cum_unique,
)
"""Functions of one array."""
