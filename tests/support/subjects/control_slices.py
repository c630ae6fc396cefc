"""Programs with slices and rows at loop-variant offsets: factorisations and recurrences in ordinary style."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.benchmarks.whole_programs import cholesky, lu, triangular_solve


def lu_by_rows(a: Any) -> Any:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def cholesky_by_columns(a: Any) -> Any:
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - np.sum(low[j, :j] ** 2))
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return low


def backward(up: Any, b: Any) -> Any:
    x = b.copy()
    for i in range(up.shape[0] - 1, -1, -1):
        x[i] = (x[i] - up[i, i + 1 :] @ x[i + 1 :]) / up[i, i]
    return x


def several_right_sides(low: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(low.shape[0]):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


def rows(x: Any) -> Any:
    for i in range(1, len(x)):
        x[i] = np.sin(x[i - 1]) + 0.5 * x[i]
    return x


def walk(x: Any, w: Any) -> Any:
    h = np.zeros(w.shape[0])
    out = np.zeros((len(x), w.shape[0]))
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
        out[t] = h
    return out


def shifted(x: Any) -> Any:
    for i in range(1, len(x)):
        x[i:] = x[i - 1 : -1] + 1.0
    return x


def products_of_blocks(a: Any, b: Any) -> Any:
    c = np.zeros_like(a)
    for k in range(len(a) + 1):
        c[:k] += a[:k, :k] @ b[:k] + b[k:].sum()
    return c


def by_hand(x: Any) -> Any:
    total, i = 0.0, 0
    while i < len(x):
        total += np.sum(x[:i]) * i
        i += 1
    return total


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape) + (np.eye(*shape) * 9 if len(shape) == 2 else 0.5)


SLICES: dict[Callable[..., Any], Any] = {
    lu: lambda n: (numbers(n, n),),
    lu_by_rows: lambda n: (numbers(n, n),),
    cholesky: lambda n: (numbers(n, n) @ numbers(n, n).T,),
    cholesky_by_columns: lambda n: (numbers(n, n) @ numbers(n, n).T,),
    triangular_solve: lambda n: (numbers(n, n), numbers(n)),
    backward: lambda n: (numbers(n, n), numbers(n)),
    several_right_sides: lambda n: (numbers(n, n), numbers(n, 3)),
    rows: lambda n: (numbers(n, 5),),
    walk: lambda n: (numbers(11, n), numbers(n, n) / n / 9),
    shifted: lambda n: (numbers(n),),
    products_of_blocks: lambda n: (numbers(n, n), numbers(n, n)),
    by_hand: lambda n: (numbers(n),),
}
