"""RESIZE2D, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "resize2d": {
        "columns are as many as rows": ("taps(attr.width, y.shape[2])", "taps(attr.width, max(y.shape[2] - 1, 1))"),
        "corners are aligned with half pixels": (
            "(i + 0.5) * pixels / count - 0.5",
            "(i + 0.5) * (pixels - 1) / count",
        ),
        "half pixels are forgotten": ("(i + 0.5) * pixels / count - 0.5", "1.0 * i * pixels / count"),
        "corners are not aligned": ("i * (pixels - 1) / max(count - 1, 1)", "1.0 * i * pixels / count"),
        "halves are rounded up": ("np.ceil(p - 0.5)", "np.floor(p + 0.5)"),
        "halves are rounded down": ("np.floor(p + 0.5)", "np.ceil(p - 0.5)"),
        "floor is ceil": ('"floor": np.floor(p)', '"floor": np.ceil(p)'),
        "weights are exchanged": ("1 - abs(t - tap)", "abs(t - tap)"),
        "the cubic kernel is stretched": ("keys(t - tap)", "keys((t - tap) / 2)"),
        "pixels beyond the image are the first": ("min(max(first + tap, 0), pixels - 1)", "(first + tap) % pixels"),
        "a tap replaces those before": ("half[:, i] +=", "half[:, i] ="),
        "channels are exchanged": ("y[...] = z", "y[..., ::-1] = z"),
        "the last row is lost": ("taps(x.shape[1], y.shape[1])", "taps(x.shape[1], y.shape[1])[:-1]"),
    }
}


def keys(distance: float) -> float:
    x, a = abs(distance), -0.75
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x <= 1 else a * (x**3 - 5 * x**2 + 8 * x - 4)


def resize2d(attr: Any, x: AnyArray, y: AnyArray) -> None:
    def taps(pixels: int, count: int) -> list[tuple[int, int, float]]:
        table = []
        for i in range(count):
            p = {
                "half_pixel": (i + 0.5) * pixels / count - 0.5,
                "align_corners": i * (pixels - 1) / max(count - 1, 1),
                "asymmetric": i * pixels / count,
            }[attr.coordinates]
            nearest = {
                "round_prefer_floor": np.ceil(p - 0.5), "round_prefer_ceil": np.floor(p + 0.5),
                "floor": np.floor(p), "ceil": np.ceil(p),
            }[attr.rounding]  # fmt: skip
            if attr.mode == "nearest":
                table.append((i, int(min(max(nearest, 0), pixels - 1)), 1.0))
            first = int(np.floor(p))
            t = p - first
            for tap in {"nearest": (), "linear": range(2), "cubic": range(-1, 3)}[attr.mode]:
                weight = 1 - abs(t - tap) if attr.mode == "linear" else keys(t - tap)
                table.append((i, min(max(first + tap, 0), pixels - 1), weight))
        return table

    half = np.full((*y.shape[:2], *x.shape[2:]), x.dtype.type(-0.0))
    for i, k, weight in taps(x.shape[1], y.shape[1]):
        half[:, i] += x.dtype.type(weight) * x[:, k]
    z = np.full_like(y, -0.0)
    for j, k, weight in taps(attr.width, y.shape[2]):
        z[:, :, j] += x.dtype.type(weight) * half[:, :, k]
    y[...] = z
