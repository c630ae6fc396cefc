"""The oracles of MAX_POOL2D and AVG_POOL2D: each window by itself."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, total


def taps(attr: Any, axis: int, place: int) -> list[int]:
    """Return the indices of a window along an axis, padding included, in the image and beyond."""
    step = (attr.stride or attr.window)[axis]
    begin = place * step - attr.padding[axis][0]
    return [begin + attr.dilation[axis] * number for number in range(attr.window[axis])]


def window(attr: Any, x: AnyArray, i: int, j: int) -> AnyArray:
    """Return what a window sees of all images: [batch, elements, channels]."""
    rows = [row for row in taps(attr, 0, i) if 0 <= row < attr.height]
    columns = [column for column in taps(attr, 1, j) if 0 <= column < attr.width]
    return x[:, rows][:, :, columns].reshape(attr.batch, len(rows) * len(columns), attr.channels)


def counted(attr: Any, axis: int, place: int) -> int:
    size, (before, after) = (attr.height, attr.width)[axis], attr.padding[axis]
    least, most = (-before, size + after) if attr.count_include_pad else (0, size)
    return sum(least <= index < most for index in taps(attr, axis, place))


@oracle
def max_pool2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.empty((attr.batch, attr.out_height, attr.out_width, attr.channels), WIDE)
    for i in range(attr.out_height):
        for j in range(attr.out_width):
            y[:, i, j] = np.max(window(attr, x, i, j), axis=1, initial=-np.inf)
    return [y]


@oracle
def avg_pool2d(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.empty((attr.batch, attr.out_height, attr.out_width, attr.channels), WIDE)
    for i in range(attr.out_height):
        for j in range(attr.out_width):
            y[:, i, j] = total(window(attr, x, i, j), 1) / WIDE(counted(attr, 0, i) * counted(attr, 1, j))
    return [y]
