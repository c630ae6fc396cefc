"""The oracles of pooling: tap by tap, all windows at once, and of its gradient, window by window."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


def taps(attr: Any, axis: int, count: int) -> AnyArray:
    """Return the index of each tap of each window along an axis, negative or too large in the padding."""
    step = (attr.stride or attr.window)[axis]
    begins = step * np.arange(count) - attr.padding[axis][0]
    index: AnyArray = attr.dilation[axis] * np.arange(attr.window[axis])[:, np.newaxis] + begins
    return index


def seen(attr: Any, x: AnyArray, outside: float) -> Iterator[AnyArray]:
    """Yield what each tap sees of all windows: [batch, out_height, out_width, channels]."""
    for rows in taps(attr, 0, attr.out_height):
        for columns in taps(attr, 1, attr.out_width):
            inside = np.multiply.outer((rows >= 0) & (rows < attr.height), (columns >= 0) & (columns < attr.width))
            if not inside.any():
                continue
            known = x[:, np.clip(rows, 0, attr.height - 1)][:, :, np.clip(columns, 0, attr.width - 1)]
            yield np.where(inside[..., np.newaxis], known, WIDE(outside))


def counted(attr: Any, axis: int, count: int) -> AnyArray:
    """Return how many taps of each window count."""
    size, (before, after) = (attr.height, attr.width)[axis], attr.padding[axis]
    least, most = (-before, size + after) if attr.count_include_pad else (0, size)
    index = taps(attr, axis, count)
    sums: AnyArray = ((index >= least) & (index < most)).sum(axis=0)
    return sums


@oracle
def max_pool2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.full((attr.batch, attr.out_height, attr.out_width, attr.channels), -np.inf, WIDE)
    for values in seen(attr, x, -np.inf):
        y = np.maximum(y, values)
    return [y]


@oracle
def max_pool2d_backward(attr: Any, x: AnyArray, dy: AnyArray) -> list[AnyArray]:
    """Find the place of the first maximum of each window, tap by tap, and add up the gradients there."""
    place, most = np.full(dy.shape, -1), np.full(dy.shape, -np.inf, WIDE)
    for rows in taps(attr, 0, attr.out_height):
        for columns in taps(attr, 1, attr.out_width):
            inside = np.multiply.outer((rows >= 0) & (rows < attr.height), (columns >= 0) & (columns < attr.width))
            if inside.any():
                here = np.clip(rows, 0, attr.height - 1)[:, np.newaxis], np.clip(columns, 0, attr.width - 1)
                value, index = x[:, here[0], here[1]], (here[0] * attr.width + here[1])[..., np.newaxis]
                better = (place < 0) | (value > most) | (np.isnan(value) & ~np.isnan(most))
                better &= inside[..., np.newaxis]
                place, most = np.where(better, index, place), np.where(better, value, most)
    dx = np.zeros((attr.batch, attr.height * attr.width, attr.channels), WIDE)
    image, channel = (np.indices(dy.shape)[axis][place >= 0] for axis in (0, 3))
    np.add.at(dx, (image, place[place >= 0], channel), dy[place >= 0])
    return [dx.reshape(x.shape)]


@oracle
def avg_pool2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.channels), WIDE)
    for values in seen(attr, x, 0):
        y = y + values
    counts = np.multiply.outer(counted(attr, 0, attr.out_height), counted(attr, 1, attr.out_width))
    return [y / counts[..., np.newaxis].astype(WIDE)]
