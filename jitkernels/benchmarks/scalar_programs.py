"""Programs of scalars and single elements, in users' ordinary Python style, without adaptations to any compiler."""
# ruff: noqa: SIM108  # as people write it

from collections.abc import Callable
from typing import Any

import numpy as np


def binary_search(a: Any, wanted: Any) -> Any:
    indices = np.zeros(len(wanted), np.int64)
    for k in range(len(wanted)):
        low, high = 0, len(a)
        while low < high:
            middle = (low + high) // 2
            if a[middle] < wanted[k]:
                low = middle + 1
            else:
                high = middle
        indices[k] = low
    return indices


def linear_find(a: Any, wanted: Any) -> Any:
    total = 0
    for k in range(len(wanted)):
        for i in range(len(a)):
            if a[i] == wanted[k]:
                total += i
                break
        else:
            total -= 1
    return total


def bubble_sort(a: Any) -> Any:
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def insertion_sort(a: Any) -> Any:
    for i in range(1, len(a)):
        x = a[i]
        j = i - 1
        while j >= 0 and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x
    return a


def sieve(n: Any) -> Any:
    is_prime = np.ones(n, np.bool_)
    is_prime[0] = is_prime[1] = False
    i = 2
    while i * i < n:
        if is_prime[i]:
            for j in range(i * i, n, i):
                is_prime[j] = False
        i += 1
    return is_prime


def prime_test(n: Any) -> Any:
    count = 0
    for k in range(2, n):
        is_prime = True
        d = 2
        while d * d <= k:
            if k % d == 0:
                is_prime = False
                break
            d += 1
        if is_prime:
            count += 1
    return count


def levenshtein(one: Any, other: Any) -> Any:
    n, m = len(one), len(other)
    before = np.arange(m + 1)
    now = np.zeros(m + 1, np.int64)
    for i in range(n):
        now[0] = i + 1
        for j in range(m):
            cost = 0 if one[i] == other[j] else 1
            now[j + 1] = min(before[j + 1] + 1, now[j] + 1, before[j] + cost)
        before, now = now, before
    return before[m]


def histogram(x: Any, low: Any, high: Any, bins: Any) -> Any:
    counts = np.zeros(bins, np.int64)
    for i in range(len(x)):
        if low <= x[i] < high:
            counts[int((x[i] - low) / (high - low) * bins)] += 1
    return counts


def collatz(n: Any) -> Any:
    longest = 0
    for i in range(1, n):
        k, steps = i, 0
        while k != 1:
            if k % 2 == 0:
                k = k // 2
            else:
                k = 3 * k + 1
            steps += 1
        longest = max(longest, steps)
    return longest


def knapsack(weights: Any, values: Any, capacity: Any) -> Any:
    best = np.zeros(capacity + 1, np.int64)
    for i in range(len(weights)):
        w, v = weights[i], values[i]
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best[capacity]


def words(text: Any) -> Any:
    count, longest, length = 0, 0, 0
    for i in range(len(text)):
        c = text[i]
        if 97 <= c <= 122 or 65 <= c <= 90:
            length += 1
        else:
            if length > 0:
                count += 1
                longest = max(longest, length)
            length = 0
    return count * 1000 + longest


def triple_loop(a: Any, b: Any) -> Any:
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def running_median(x: Any, width: Any) -> Any:
    window = np.zeros(width)
    medians = np.zeros(len(x) - width + 1)
    for i in range(len(medians)):
        for k in range(width):
            value = x[i + k]
            j = k - 1
            while j >= 0 and window[j] > value:
                window[j + 1] = window[j]
                j -= 1
            window[j + 1] = value
        medians[i] = window[width // 2]
    return medians


def random_numbers(out: Any, seed: Any) -> Any:
    state = np.uint64(seed)
    for i in range(len(out)):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        out[i] = float(state >> np.uint64(11)) / 9007199254740992.0
    return out


def _random(n: int) -> Any:
    return np.random.default_rng(n).random(n)


def _integers(n: int, most: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, most, n)


PROGRAMS: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    binary_search: lambda: (np.sort(_random(1000)), _random(300)),
    linear_find: lambda: (_integers(400, 1000), _integers(100, 1000, 1)),
    bubble_sort: lambda: (_random(120),),
    insertion_sort: lambda: (_random(150),),
    sieve: lambda: (8000,),
    prime_test: lambda: (1500,),
    levenshtein: lambda: (_integers(120, 26), _integers(130, 26, 1)),
    histogram: lambda: (_random(5000) * 12 - 1, 0.0, 10.0, 50),
    collatz: lambda: (400,),
    knapsack: lambda: (_integers(30, 60) + 1, _integers(30, 100, 1), 500),
    words: lambda: (_integers(5000, 128).astype(np.uint8),),
    triple_loop: lambda: (_random(900).reshape(30, 30), _random(900).reshape(30, 30)),
    running_median: lambda: (_random(600), 9),
    random_numbers: lambda: (np.zeros(5000), 42),
}
"""The programs and their argument factories, which return new arrays each time."""
