"""MAX_POOL2D, MAX_POOL2D_BACKWARD and AVG_POOL2D, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "max_pool2d": {
        "padding is zeros": ("-np.inf", "0"),
        "windows are transposed": ("down, along = attr.window", "along, down = attr.window"),
        "strides are exchanged": ("step, next_step = attr.stride", "next_step, step = attr.stride"),
        "dilation is ignored": ("a * attr.dilation[0]", "a"),
        "the padding in front is that behind": ("- attr.padding[0][0]", "- attr.padding[0][1]"),
        "NaN is lost": ("np.maximum(", "np.fmax("),
        "the last channel is lost where there are many": ("y[:, i, j] = best", "y[:, i, j, :32] = best[..., :32]"),
        "infinities are clipped": ("y[:, i, j] = best", "y[:, i, j] = np.maximum(best, np.finfo(y.dtype).min)"),
    },
    "max_pool2d_backward": {
        "windows are transposed": ("down, along = attr.window", "along, down = attr.window"),
        "strides are exchanged": ("step, next_step = attr.stride", "next_step, step = attr.stride"),
        "dilation is ignored": ("a * attr.dilation[0]", "a"),
        "the padding on the left is that on the right": ("- attr.padding[1][0]", "- attr.padding[1][1]"),
        "the last of equal ones": ("value > most", "value >= most"),
        "NaN is no maximum": ("np.isnan(value) &", "False &"),
        "the first element receives it": ("sums[images, at,", "sums[images, 0 * at,"),
        "windows that overlap replace each other": ("channels] += dy", "channels] = dy"),
        "the gradient of the first window for all": ("dy[:, i, j]", "dy[:, 0, 0]"),
    },
    "avg_pool2d": {
        "padding always counts": ("attr.count_include_pad", "True"),
        "padding never counts": ("attr.count_include_pad", "False"),
        "strides are exchanged": ("step, next_step = attr.stride", "next_step, step = attr.stride"),
        "what is beyond counts": ("least <= place < most", "least <= place"),
        "windows are transposed": ("down, along = attr.window", "along, down = attr.window"),
        "the padding on the left is that on the right": ("- attr.padding[1][0]", "- attr.padding[1][1]"),
        "sums of a mean of rows": ("sums / (rows * columns)", "sums / rows"),
    },
}


def max_pool2d(attr: Any, x: AnyArray, y: AnyArray) -> None:
    down, along = attr.window
    step, next_step = attr.stride or attr.window
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            best = np.full((len(x), x.shape[3]), -np.inf, x.dtype)
            for a in range(down):
                for b in range(along):
                    row = i * step + a * attr.dilation[0] - attr.padding[0][0]
                    column = j * next_step + b * attr.dilation[1] - attr.padding[1][0]
                    if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                        best = np.maximum(best, x[:, row, column])
            y[:, i, j] = best


def max_pool2d_backward(attr: Any, x: AnyArray, dy: AnyArray, dx: AnyArray) -> None:
    down, along = attr.window
    step, next_step = attr.stride or attr.window
    dx[...] = 0
    sums = dx.reshape(len(x), attr.height * attr.width, x.shape[3])
    images, channels = np.arange(len(x))[:, None], np.arange(x.shape[3])
    for i, j in np.ndindex(*dy.shape[1:3]):
        at, most = np.full((len(x), x.shape[3]), -1), np.full((len(x), x.shape[3]), -np.inf)
        for a in range(down):
            row = i * step + a * attr.dilation[0] - attr.padding[0][0]
            for b in range(along):
                column = j * next_step + b * attr.dilation[1] - attr.padding[1][0]
                if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                    value = x[:, row, column]
                    better = (at < 0) | (value > most) | (np.isnan(value) & ~np.isnan(most))
                    at, most = np.where(better, row * x.shape[2] + column, at), np.where(better, value, most)
        if (at >= 0).all():
            sums[images, at, channels] += dy[:, i, j]


def avg_pool2d(attr: Any, x: AnyArray, y: AnyArray) -> None:
    down, along = attr.window
    step, next_step = attr.stride or attr.window

    def counted(axis: int, place: int) -> bool:
        size, (before, after) = x.shape[1 + axis], attr.padding[axis]
        least, most = (-before, size + after) if attr.count_include_pad else (0, size)
        return bool(least <= place < most)

    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            sums = np.zeros((len(x), x.shape[3]), x.dtype)
            rows = columns = 0
            for a in range(down):
                row = i * step + a * attr.dilation[0] - attr.padding[0][0]
                rows += counted(0, row)
                columns = 0
                line = np.zeros_like(sums)
                for b in range(along):
                    column = j * next_step + b * attr.dilation[1] - attr.padding[1][0]
                    columns += counted(1, column)
                    if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                        line = line + x[:, row, column]
                sums = sums + line
            y[:, i, j] = sums / (rows * columns)
