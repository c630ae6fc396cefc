"""Functions that compute by windows and rows in Python loops, and similar ones whose iterations depend on one another.

All take two arrays of one shape, of at least 6 x 6 where they ask for that much, and a matrix of 3 x 3.
"""
# ordinary user style

from collections.abc import Callable
from typing import Any

import numpy as np
from clipped_window_programs import RAISED


def correlated(a: Any, b: Any, w: Any) -> Any:
    k = w.shape[0]
    for i in range(a.shape[0] - k + 1):
        for j in range(a.shape[1] - k + 1):
            b[i, j] = np.sum(a[i : i + k, j : j + k] * w)
    return b


def convolved_rows(a: Any, b: Any, w: Any) -> Any:
    k = w.shape[0]
    for i in range(1, a.shape[0] - 1):
        b[i, :k] = np.sum(a[i - 1 : i + 2, :k] * w, axis=0)
    return b


def strided(a: Any, b: Any, w: Any) -> Any:
    stride = 2
    rows, columns = (a.shape[0] - 3) // stride + 1, (a.shape[1] - 3) // stride + 1
    out = np.empty((rows, columns))
    for i in range(rows):
        top = i * stride
        for j in range(columns):
            left = j * stride
            out[i, j] = np.sum(a[top : top + 3, left : left + 3] * w)
    return out


def strided_ranges(a: Any, b: Any, w: Any) -> Any:
    out = np.zeros(((a.shape[0] - 3) // 2 + 1, 2, a.shape[1] - 2))
    for i in range(0, a.shape[0] - 2, 2):
        for j in range(0, a.shape[1] - 2, 2):
            out[i // 2, :, j // 2] = np.tensordot(a[i : i + 3, j : j + 3], w, axes=([0, 1], [0, 1]))
    return out


def pooled(a: Any, b: Any, w: Any) -> Any:
    out = np.empty((a.shape[0] // 2, a.shape[1] // 2))
    for i in range(a.shape[0] // 2):
        for j in range(a.shape[1] // 2):
            out[i, j] = a[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max() - a[2 * i : 2 * i + 2, 2 * j].mean()
    return out


def filtered(a: Any, b: Any, w: Any) -> Any:
    """A convolution of several filters, channels first."""
    x, filters = np.stack((a, b))[None], np.stack((w, w.T, w * 2, -w, w + 1, w * w))[:, None] * np.ones((1, 2, 1, 1))
    rows, columns = a.shape[0] - 2, a.shape[1] - 2
    out = np.empty((1, 6, rows, columns))
    for i in range(rows):
        for j in range(columns):
            out[:, :, i, j] = np.sum(x[:, np.newaxis, :, i : i + 3, j : j + 3] * filters[np.newaxis], axis=(2, 3, 4))
    return out


def filtered_last(a: Any, b: Any, w: Any) -> Any:
    """The same, channels last."""
    x = np.stack((a, b), axis=-1)[None]
    filters = np.stack((w, w.T, w * 2, -w), axis=-1)[:, :, None] * np.ones((1, 1, 2, 1))
    rows, columns = a.shape[0] - 2, a.shape[1] - 2
    out = np.empty((1, rows, columns, 4))
    for i in range(rows):
        for j in range(columns):
            out[:, i, j, :] = np.sum(x[:, i : i + 3, j : j + 3, :, np.newaxis] * filters[np.newaxis], axis=(1, 2, 3))
    return out


def own_row(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        a[i] = a[i] - a[i].mean()
        b[i] = a[i] * 2 + b[i].sum()
        a[i] += b[i]
    return a, b


def backwards(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] - 1, -1, -1):
        b[i] = np.cumsum(a[i]) + i
    return b


def every_second(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] - 1, 0, -2):
        b[i] = a[i - 1] * np.sum(a[i]) - i
    return b


def mirrored(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[a.shape[0] - 1 - i] = a[i] / (1 + a[i].max())
    return b


def row_pairs(a: Any, b: Any, w: Any) -> Any:
    for i in range(0, a.shape[0] - 1, 2):
        b[i] = a[i + 1].sum()
        b[i + 1] = b[i] * a[i] + a[i].max()
    return b


def blocks(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] // 2):
        b[2 * i : 2 * i + 2] = a[2 * i : 2 * i + 2] * np.sum(a[i])
    return b


def columns_of_transpose(a: Any, b: Any, w: Any) -> Any:
    transposed = b.T
    for i in range(a.shape[0]):
        transposed[:, i] = np.where(a[i] > a[i].mean(), a[i], -a[i])
    return b


def through_view(a: Any, b: Any, w: Any) -> Any:
    even = b[::2]
    for i in range(even.shape[0]):
        even[i] = a[i] - a[i].min()
        b[2 * i] *= 2
    return b


def in_steps_of_time(a: Any, b: Any, w: Any) -> Any:
    for _ in range(a.shape[1]):
        for i in range(1, a.shape[0] - 1):
            b[i] = np.sum(a[i - 1 : i + 2], axis=0) / 3
        a[:] = b
    return a, b


def whole_numbers(a: Any, b: Any, w: Any) -> Any:
    x, v = (a * 10).astype(np.int32), (w * 3).astype(np.int32)
    out = np.zeros((a.shape[0] - 2, a.shape[1] - 2), np.int64)
    for i in range(a.shape[0] - 2):
        for j in range(a.shape[1] - 2):
            out[i, j] = np.sum(x[i : i + 3, j : j + 3] * v)
    return out


def largest_at(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] - 1):
        b[i] = np.argmax(a[i : i + 2])
    return b


def rows_in_list(a: Any, b: Any, w: Any) -> Any:
    return np.array([np.sum(a[i] * i) for i in range(a.shape[0])])


def with_matrix(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i, :3] = w @ a[i, :3] + a[i, 1:4] @ w
    return b


def with_own_array(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        found = np.zeros(4)
        found[0], found[2] = a[i].sum(), w[i % 3, 0] * i
        found[1:3] += a[i, :2]
        b[i] = found.sum() * found[1] + w[0, 1]
    return b


def with_own_place(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        found = np.zeros(a.shape[0])
        found[i] = a[i].sum()
        b[i] = np.sum(found * a[:, 0])
    return b


def biased(a: Any, b: Any, w: Any) -> Any:
    bias = a[:, 0]
    for i in range(a.shape[0] - 1, 0, -1):
        for j in range(a.shape[1]):
            b[i, j] = np.sum(a[i] * a[i - 1]) * bias[i - 1] + w[0, 0] * b[i, j]
    return b


def partly(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i, :i] = a[i, :i] + np.sum(a[i])
    return b


def previous_row(a: Any, b: Any, w: Any) -> Any:
    for i in range(1, a.shape[0] - 1):
        a[i, 1:4] = np.sum(a[i - 1 : i + 2, 1:4] * w, axis=0)
    return a


def next_row(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] - 1):
        a[i] = a[i + 1] * a[i + 1].sum()
    return a


def overlapping(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0] - 2):
        b[i : i + 3] = a[i : i + 3] * np.sum(a[i])
    return b


def one_place(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[0] = a[i] * a[i].sum()
    return b


def two_to_one(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i // 2] = a[i] * a[i].sum()
    return b


def accumulated(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[0] += a[i] * a[i].sum()
    return b


def histogram(a: Any, b: Any, w: Any) -> Any:
    counts = np.zeros(8)
    for i in range(a.shape[0]):
        counts[int(abs(a[i, 0]) * 3) % 8] += np.sum(a[i])
    return counts


def view_of_next(a: Any, b: Any, w: Any) -> Any:
    later = b[1:]
    for i in range(a.shape[0] - 1):
        later[i] = b[i] + a[i].sum()
    return b


def sum_of_all(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i] = a[i].sum() + b.sum()
    return b


def last_value(a: Any, b: Any, w: Any) -> Any:
    last = 0.0
    for i in range(a.shape[0]):
        last = a[i].sum()
        b[i] = last
    return b, last


def left_early(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        if a[i].sum() > 2:
            break
        b[i] = a[i].sum()
    return b


def clipped(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i] = np.sum(a[i : i + 3], axis=0)
    return b


def triangular(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i):
            b[i, j % 3] = np.sum(a[j])
    return b


def beyond_edge(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i + 2] = np.sum(a[i])
    return b


def read_beyond_edge(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i] = np.sum(a[i + 2])
    return b


def window_beyond_edge(a: Any, b: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        b[i, 1:4] = np.sum(a[i : i + 3, 1:4] * w, axis=0)
    return b


Program = Callable[..., Any]
INDEPENDENT: tuple[Program, ...] = (
    correlated, convolved_rows, strided, strided_ranges, pooled, filtered, filtered_last, own_row, backwards,
    every_second, mirrored, row_pairs, blocks, columns_of_transpose, through_view, in_steps_of_time, whole_numbers,
    largest_at, rows_in_list, with_matrix, biased, *RAISED,
)  # fmt: skip
DEPENDENT: tuple[Program, ...] = (
    previous_row, next_row, overlapping, one_place, two_to_one, accumulated, histogram, view_of_next, sum_of_all,
    last_value, left_early, clipped, triangular, partly, with_own_array,
    with_own_place, beyond_edge, read_beyond_edge, window_beyond_edge,
)  # fmt: skip
