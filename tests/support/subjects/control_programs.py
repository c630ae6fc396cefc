"""Well-known programs of loops over single elements, in ordinary Python style."""
# ruff: noqa: N803, B007, E741  # ordinary user style

from collections.abc import Callable
from typing import Any

import numpy as np


def triangular_solve(L: Any, b: Any) -> Any:
    n = L.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = 0.0
        for j in range(i):
            s += L[i, j] * x[j]
        x[i] = (b[i] - s) / L[i, i]
    return x


def mandelbrot(width: Any, height: Any, most: Any) -> Any:
    out = np.zeros((height, width), np.int64)
    for i in range(height):
        y = 2.0 * i / height - 1.0
        for j in range(width):
            x = 3.0 * j / width - 2.0
            a = 0.0
            b = 0.0
            k = 0
            while k < most:
                if a * a + b * b > 4.0:
                    break
                a, b = (a * a - b * b + x, 2.0 * a * b + y)
                k += 1
            out[i, j] = k
    return out


def floyd_warshall(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


def gauss_seidel(a: Any, steps: Any) -> Any:
    n, m = a.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) * 0.25


def smith_waterman(a: Any, b: Any, match: Any, mismatch: Any, gap: Any) -> Any:
    n = len(a)
    m = len(b)
    h = np.zeros((n + 1, m + 1), np.int64)
    best = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            v = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - gap, h[i, j - 1] - gap)
            h[i, j] = v
            if v > best:
                best = v
    return best


def cholesky(a: Any) -> Any:
    n = a.shape[0]
    l = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, j] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


def lu(a: Any) -> Any:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def bubble(a: Any) -> Any:
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                t = a[j]
                a[j] = a[j + 1]
                a[j + 1] = t
                swapped = True
        if not swapped:
            break


def insertion(a: Any) -> Any:
    for i in range(1, len(a)):
        x = a[i]
        j = i - 1
        while j >= 0 and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x


def collatz(n: Any) -> Any:
    most = 0
    for i in range(1, n):
        k = i
        steps = 0
        while k != 1:
            if k % 2 == 0:
                k //= 2
            else:
                k = 3 * k + 1
            steps += 1
        if steps > most:
            most = steps
    return most


def sieve(n: Any) -> Any:
    p = np.ones(n + 1, np.bool_)
    p[0] = False
    p[1] = False
    i = 2
    while i * i <= n:
        if p[i]:
            j = i * i
            while j <= n:
                p[j] = False
                j += i
        i += 1
    count = 0
    for i in range(n + 1):
        if p[i]:
            count += 1
    return count


def matmul(a: Any, b: Any) -> Any:
    n, m = a.shape
    k = b.shape[1]
    c = np.zeros((n, k))
    for i in range(n):
        for j in range(k):
            s = 0.0
            for t in range(m):
                s += a[i, t] * b[t, j]
            c[i, j] = s
    return c


def search(a: Any, x: Any) -> Any:
    lo = 0
    hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def find(a: Any, x: Any) -> Any:
    for i in range(len(a)):
        if a[i] == x:
            return i
    return -1


def heat(u: Any, steps: Any, c: Any) -> Any:
    n = u.shape[0]
    v = u.copy()
    for t in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
        for i in range(1, n - 1):
            u[i] = v[i]
    return u


def life(g: Any, steps: Any) -> Any:
    n, m = g.shape
    h = np.zeros_like(g)
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                c = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            c += g[(i + di) % n, (j + dj) % m]
                h[i, j] = 1 if c == 3 or (c == 2 and g[i, j] == 1) else 0
        for i in range(n):
            for j in range(m):
                g[i, j] = h[i, j]


def numbers(*shape: int, seed: int = 1) -> Any:
    """Return numbers from 0 to 1."""
    return np.random.default_rng(seed).random(shape)


def definite(n: int) -> Any:
    """Return a positive definite matrix."""
    matrix = numbers(n, n)
    return matrix @ matrix.T + n * np.eye(n)


def letters(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 4, n)


PROGRAMS: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    triangular_solve: (lambda: np.tril(numbers(30, 30)) + np.eye(30), lambda: numbers(30)),
    mandelbrot: (lambda: 12, lambda: 10, lambda: 50),
    floyd_warshall: (lambda: numbers(15, 15),),
    gauss_seidel: (lambda: numbers(11, 13), lambda: 9),
    smith_waterman: (lambda: letters(20, 1), lambda: letters(24, 2), lambda: 2, lambda: -1, lambda: 1),
    cholesky: (lambda: definite(17),),
    lu: (lambda: definite(17),),
    bubble: (lambda: numbers(20),),
    insertion: (lambda: numbers(20),),
    collatz: (lambda: 60,),
    sieve: (lambda: 200,),
    matmul: (lambda: numbers(10, 11), lambda: numbers(11, 12)),
    search: (lambda: np.sort(numbers(50)), lambda: 0.3),
    find: (lambda: np.arange(50.0), lambda: 40.0),
    heat: (lambda: numbers(30), lambda: 12, lambda: 0.1),
    life: (lambda: letters(110, 3).reshape(10, 11) % 2, lambda: 9),
}
"""Functions with their argument factories."""
