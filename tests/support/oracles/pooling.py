"""The oracles of MAX_POOL2D and AVG_POOL2D: tap by tap, all windows at once."""

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
def avg_pool2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.channels), WIDE)
    for values in seen(attr, x, 0):
        y = y + values
    counts = np.multiply.outer(counted(attr, 0, attr.out_height), counted(attr, 1, attr.out_width))
    return [y / counts[..., np.newaxis].astype(WIDE)]
