"""Functions that reduce windows which end at the edge of their array, and loops that reduce one number after another.

All take two arrays of one shape and a matrix of 3 x 3, and become loop nests.
"""
# ordinary user style

from collections.abc import Callable
from typing import Any

import numpy as np


def clipped_sums(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[max(i - 2, 0) : i + 3, max(0, j - 1) : min(j + 2, a.shape[1])].sum()
    return b


def clipped_means(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i] = a[max(i - 2, 0) : i + 2].mean(axis=0)
    return b


def clipped_flags(a: Any, b: Any, w: Any) -> Any:
    positive, out = a > -1, np.zeros(a.shape, np.int64)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            near = positive[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            out[i, j] = near.all() + 2 * np.any(~near)
    return out


def clipped_extremes(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            near = a[i, max(j - 2, 0) : j + 1]
            b[i, j] = near.max() - a[i : i + 2, j].min()
    return b


def convolved_by_numbers(a: Any, b: Any, w: Any) -> Any:
    k = w.shape[0]
    for i in range(a.shape[0] - k + 1):
        for j in range(a.shape[1] - k + 1):
            total = 0.0
            for p in range(k):
                for q in range(k):
                    total += a[i + p, j + q] * w[p, q]
            b[i, j] = total
    return b


def multiplied_by_numbers(a: Any, b: Any, w: Any) -> Any:
    out = np.zeros((a.shape[0], a.shape[0]))
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            total = 1.5
            for k in range(a.shape[1]):
                total += a[i, k] * b[j, k]
            out[i, j] = total
    return out


def flagged_by_numbers(a: Any, b: Any, w: Any) -> Any:
    out = np.zeros(a.shape, np.bool_)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            keep, found = True, False
            for p in range(max(i - 1, 0), min(i + 2, a.shape[0])):
                for q in range(max(j - 1, 0), min(j + 2, a.shape[1])):
                    if not a[p, q] > -1:
                        keep = False
                    if a[p, q] > 1:
                        found = True
            out[i, j] = keep and found
    return out


def subtracted_by_numbers(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 2):
            total = a[i, j]
            for q in range(w.shape[0]):
                total = total - b[i, j + q] * 0.5 + w[0, q]
            a[i, j] = total
    return a


def functions_of_numbers(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = np.cos(a[i, j] * i) + 2 * np.exp(-a[i, j] * a[i, j]) + np.arctan(w[0, 0] * j)
    return b


def clipped_squares(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = np.sum(np.square(a[i, max(j - 2, 0) : j + 1]) * 0.5)
    return b


RAISED: tuple[Callable[..., Any], ...] = (
    clipped_sums, clipped_means, clipped_flags, clipped_extremes, convolved_by_numbers, multiplied_by_numbers,
    flagged_by_numbers, subtracted_by_numbers, functions_of_numbers, clipped_squares,
)  # fmt: skip
