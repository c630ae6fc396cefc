"""Small functions, each for one form of loop or branch."""
# ruff: noqa: B007, E741, SIM108, B905  # ordinary user style

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def early(a: Any) -> Any:
    for i in range(len(a)):
        if a[i] > 0.9:
            return a[i]
    return 0.0


def early_types(a: Any) -> Any:
    for i in range(len(a)):
        if a[i] > 0.9:
            return i
    return -1


def elses(a: Any) -> Any:
    for i in range(len(a)):
        if a[i] > 2:
            break
    else:
        return 5.0
    return 6.0


def nested_continue(a: Any) -> Any:
    s = 0.0
    for i in range(len(a)):
        if i % 2:
            continue
        for j in range(len(a)):
            if j > i:
                break
            if a[j] < 0.5:
                continue
            s += a[i] * a[j]
    return s


def fib(n: Any) -> Any:
    a, b = (0, 1)
    for i in range(n):
        a, b = (b, a + b)
    return a


def fact(n: Any) -> Any:
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r


def primes(n: Any) -> Any:
    c = 0
    for i in range(2, n):
        ok = True
        for j in range(2, i):
            if j * j > i:
                break
            if i % j == 0:
                ok = False
                break
        if ok:
            c += 1
    return c


def countdown(a: Any) -> Any:
    s = 0.0
    for i in range(len(a) - 1, -1, -1):
        s = s * 0.5 + a[i]
    return s


def negative_index(a: Any) -> Any:
    s = 0.0
    for i in range(1, len(a) + 1):
        s = s * 0.5 + a[-i]
    return s


def elif_chain(a: Any) -> Any:
    c = 0
    for i in range(len(a)):
        if a[i] < 0.2:
            c += 1
        elif a[i] < 0.4:
            c += 10
        elif a[i] < 0.6 and i > 3:
            c += 100
        else:
            c += 1000
    return c


def zero_rounds(a: Any, n: Any) -> Any:
    s = 7
    for i in range(n):
        s = i
    return s


def last(a: Any) -> Any:
    for i in range(len(a)):
        s = a[i]
    return (s, i)


def float32(a: Any) -> Any:
    s = 0.0
    for i in range(len(a)):
        s += a[i]
    return s


def int32(a: Any) -> Any:
    s = 0
    for i in range(len(a)):
        s += a[i]
    return s


def mixed(a: Any) -> Any:
    s: Any = 0
    for i in range(len(a)):
        s += i / 2
    return s


def division2(a: Any, k: Any) -> Any:
    s = 0
    for i in range(len(a)):
        s += (i - 7) // (i - k) + (i - 9) % 4 - i * i // 3
    return s


def ternary(a: Any) -> Any:
    s = 0.0
    for i in range(len(a)):
        s += a[i] if a[i] > 0.5 else -a[i]
    return s


def chains(a: Any) -> Any:
    s = 0
    for i in range(len(a)):
        x = a[i]
        if 0.2 < x < 0.7 or not i < 15:
            s += i
    return s


def while_else(a: Any) -> Any:
    i = 0
    while i < len(a):
        if a[i] > 2:
            break
        i += 1
    else:
        i = 100
    return i


def top_if(a: Any) -> Any:
    s = a.sum()
    if s > 3:
        r = s * 2
    else:
        r = s - 1
    return r


def values(a: Any) -> Any:
    s = 0.0
    for x in a:
        s += x * x
    return s


def enumerated(a: Any) -> Any:
    s = 0.0
    for i, x in enumerate(a):
        s += x * i
    return s


def zipped(a: Any, b: Any) -> Any:
    s = 0.0
    for x, y in zip(a, b):
        s += x * y
    return s


def bools(a: Any) -> Any:
    found = False
    n = 0
    for i in range(len(a)):
        found = found or a[i] > 0.95
        if found:
            n += 1
    return (found, n)


def strided(a: Any) -> Any:
    s = 0.0
    b = a.T
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = s * 0.9 + b[i, j]
    return s


def strided2(a: Any) -> Any:
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = s * 0.9 + a[i, j]
    return s


def views(a: Any) -> Any:
    b = a[2:10]
    for i in range(len(b)):
        b[i] = b[i] * 2 + i
    return a


def intpow(n: Any) -> Any:
    s = 0
    for i in range(n):
        s += i**2 + (i << 1) + (i & 3) + (i ^ 5) + (i >> 1) + abs(i - 3) + min(i, 4) + max(i, 2)
    return s


def floats(a: Any) -> Any:
    s = 0.0
    for i in range(len(a)):
        s += float(i) ** 0.5 + math.exp(-i) + int(a[i] * 10) + abs(a[i] - 0.5) + round(2.5)
    return s


def gathered(p: Any, a: Any) -> Any:
    s = 0.0
    for i in range(len(p)):
        s += a[p[i]] * 2
    return s


def two_results(a: Any) -> Any:
    lo = a[0]
    hi = a[0]
    for i in range(1, len(a)):
        if a[i] < lo:
            lo = a[i]
        if a[i] > hi:
            hi = a[i]
    return (lo, hi)


def gcds(n: Any) -> Any:
    s = 0
    for i in range(1, n):
        for j in range(1, n):
            x, y = (i, j)
            while y:
                x, y = (y, x % y)
            s += x
    return s


def boolarr(m: Any) -> Any:
    c = 0
    for i in range(len(m)):
        if m[i]:
            c += 1
        if not m[i] and i > 5:
            c += 10
    return c


def aug(a: Any) -> Any:
    for i in range(1, len(a)):
        a[i] += a[i - 1]
        a[i] *= 0.5


def hist(a: Any, k: Any) -> Any:
    h = np.zeros(20, np.int64)
    for i in range(len(k)):
        h[k[i]] += 1
    return h


def deep(n: Any) -> Any:
    c = 0
    for i in range(n + 5):
        for j in range(i, n + 5):
            for k in range(j, n + 5):
                for l in range(k, n + 5):
                    if i + j == k + l:
                        c += 1
    return c


def numbers(n: int) -> Any:
    """Return numbers from 0 to 1."""
    return np.random.default_rng(1).random(n)


def integers(n: int) -> Any:
    """Return integers from 0 to 19."""
    return np.random.default_rng(1).integers(0, 20, n)


STATEMENTS: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    early: (lambda: numbers(20),),
    early_types: (lambda: numbers(20),),
    elses: (lambda: numbers(20),),
    nested_continue: (lambda: numbers(20),),
    fib: (lambda: 30,),
    fact: (lambda: 10,),
    primes: (lambda: 1000,),
    countdown: (lambda: numbers(20),),
    negative_index: (lambda: numbers(20),),
    elif_chain: (lambda: numbers(20),),
    zero_rounds: (lambda: numbers(20), lambda: 0),
    last: (lambda: numbers(20),),
    float32: (lambda: numbers(20).astype("f4"),),
    int32: (lambda: integers(20).astype("i4"),),
    mixed: (lambda: numbers(20),),
    division2: (lambda: numbers(20), lambda: 30),
    ternary: (lambda: numbers(20),),
    chains: (lambda: numbers(20),),
    while_else: (lambda: numbers(20),),
    top_if: (lambda: numbers(20),),
    values: (lambda: numbers(20),),
    enumerated: (lambda: numbers(20),),
    zipped: (lambda: numbers(20), lambda: numbers(20)[::-1].copy()),
    bools: (lambda: numbers(20),),
    strided: (lambda: numbers(20).reshape(4, 5),),
    strided2: (lambda: numbers(20).reshape(4, 5)[:, ::2],),
    views: (lambda: numbers(20),),
    intpow: (lambda: 7,),
    floats: (lambda: numbers(20),),
    gathered: (lambda: np.arange(20), lambda: numbers(20)),
    two_results: (lambda: numbers(20),),
    gcds: (lambda: 12,),
    boolarr: (lambda: numbers(20) > 0.5,),
    aug: (lambda: numbers(20),),
    hist: (lambda: numbers(20), lambda: integers(20)),
    deep: (lambda: 5,),
}
"""Functions with their argument factories."""
