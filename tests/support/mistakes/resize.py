"""RESIZE2D, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "resize2d": {
        "columns are resized as rows": ("matrix(attr, attr.width, y.shape[2])", "matrix(attr, attr.width, y.shape[1])[:1]"),
        "corners are aligned with half pixels": ("(i + 0.5) * pixels / count - 0.5", "i * (pixels - 1) / max(count - 1, 1)"),
        "half pixels are forgotten": ("(i + 0.5) * pixels / count - 0.5", "i * pixels / count"),
        "corners are not aligned": ("i * (pixels - 1) / max(count - 1, 1)", "i * pixels / count"),
        "halves are rounded up": ("np.ceil(p - 0.5)", "np.floor(p + 0.5)"),
        "halves are rounded down": ("np.floor(p + 0.5)", "np.ceil(p - 0.5)"),
        "floor is ceil": ("np.floor(p),", "np.ceil(p),"),
        "weights are exchanged": ("1 - abs(t - tap)", "abs(t - tap)"),
        "another cubic kernel": ("a = -0.75", "a = -0.5"),
        "pixels beyond the image are zeros": ("table[i, min(max(first + tap, 0), pixels - 1)] +=",
                                              "table[i, min(max(first + tap, 0), pixels - 1)] += (first + tap >= 0) *"),
        "a pixel at the border counts once": ("pixels - 1)] += w", "pixels - 1)] = w"),
        "channels are exchanged": ("y[...] =", "y[..., ::-1] ="),
        "the last row is that before": ("for i in range(count)", "for i in range(max(count - 1, 1))"),
    }
}  # fmt: skip


def keys(distance: float) -> float:
    x, a = abs(distance), -0.75
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x <= 1 else a * (x**3 - 5 * x**2 + 8 * x - 4)


def matrix(attr: Any, pixels: int, count: int) -> AnyArray:
    table = np.zeros((count, pixels), attr.dtype)
    for i in range(count):
        p = {
            "half_pixel": (i + 0.5) * pixels / count - 0.5,
            "align_corners": i * (pixels - 1) / max(count - 1, 1),
            "asymmetric": i * pixels / count,
        }[attr.coordinates]
        if attr.mode == "nearest":
            nearest = {
                "round_prefer_floor": np.ceil(p - 0.5), "round_prefer_ceil": np.floor(p + 0.5),
                "floor": np.floor(p), "ceil": np.ceil(p),
            }[attr.rounding]  # fmt: skip
            table[i, int(min(max(nearest, 0), pixels - 1))] = 1
            continue
        first = int(np.floor(p))
        t = p - first
        for tap in range(2) if attr.mode == "linear" else range(-1, 3):
            w = 1 - abs(t - tap) if attr.mode == "linear" else keys(t - tap)
            table[i, min(max(first + tap, 0), pixels - 1)] += w
    return table


def resize2d(attr: Any, x: AnyArray, y: AnyArray) -> None:
    rows, columns = matrix(attr, attr.height, y.shape[1]), matrix(attr, attr.width, y.shape[2])
    if attr.mode == "nearest":
        y[...] = x[:, rows.argmax(axis=1)][:, :, columns.argmax(axis=1)]
    else:
        half = np.zeros((*y.shape[:2], *x.shape[2:]), x.dtype)
        for i, k in np.argwhere(rows):
            half[:, i] += rows[i, k] * x[:, k]
        z = np.zeros_like(y)
        for j, k in np.argwhere(columns):
            z[:, :, j] += columns[j, k] * half[:, :, k]
        y[...] = z
