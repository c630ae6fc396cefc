"""The oracle of RESIZE2D: the formula in fractions for places, pixel by pixel."""

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle

HALF = Fraction(1, 2)


def place(attr: Any, i: int, pixels: int, count: int) -> Fraction:
    if attr.coordinates == "half_pixel":
        return (i + HALF) * pixels / count - HALF
    if attr.coordinates == "asymmetric":
        return Fraction(i * pixels, count)
    return Fraction(i * (pixels - 1), count - 1) if count > 1 else Fraction(0)


def keys(distance: Any) -> Any:
    """The cubic kernel of Keys with a = -3/4."""
    x, a = abs(distance), WIDE(-0.75)
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x <= 1 else a * (x**3 - 5 * x**2 + 8 * x - 4)


def taps(attr: Any, pixels: int, count: int) -> list[tuple[int, int, Any]]:
    """Return the results along an axis, with each pixel that one is made of, and its weight."""
    found: list[tuple[int, int, Any]] = []
    for i in range(count):
        p = place(attr, i, pixels, count)
        if attr.mode == "nearest":
            nearest = {
                "floor": floor(p), "ceil": ceil(p),
                "round_prefer_floor": ceil(p - HALF), "round_prefer_ceil": floor(p + HALF),
            }[attr.rounding]  # fmt: skip
            found.append((i, min(max(nearest, 0), pixels - 1), WIDE(1)))
            continue
        first = floor(p)
        t = WIDE((p - first).numerator) / WIDE((p - first).denominator)
        for tap in range(2) if attr.mode == "linear" else range(-1, 3):
            weight = 1 - abs(t - tap) if attr.mode == "linear" else keys(t - tap)
            found.append((i, min(max(first + tap, 0), pixels - 1), weight))
    return found


@oracle
def resize2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    columns = np.full((attr.batch, attr.height, attr.size[1], attr.channels), WIDE(-0.0))
    for j, k, weight in taps(attr, attr.width, attr.size[1]):
        columns[:, :, j] += weight * x[:, :, k]
    y = np.full((attr.batch, *attr.size, attr.channels), WIDE(-0.0))
    for i, k, weight in taps(attr, attr.height, attr.size[0]):
        y[:, i] += weight * columns[:, k]
    return [y]
