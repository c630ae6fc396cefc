"""CONV2D_BACKWARD_WEIGHTS, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "conv2d_backward_weights": {
        "padding above is that below": ("*((top, bottom)", "*((bottom, top)"),
        "padding on the left is that on the right": ("(left, right)), (0, 0))", "(right, left)), (0, 0))"),
        "padding repeats the border": ("constant_values=0", "mode='edge'"),
        "strides are exchanged": ("down, along = attr.stride", "along, down = attr.stride"),
        "dilations are exchanged": ("skip, over = attr.dilation", "over, skip = attr.dilation"),
        "filters are reversed": ("dw[a, b]", "dw[-1 - a, -1 - b]"),
        "all groups see the first channels": ("group * per : group * per + per", ": per"),
        "groups are interleaved": ("group * own : group * own + own] =", "group :: attr.groups] ="),
        "the last pixel is forgotten": ("seen.reshape(attr.pixels", "(seen * last(attr)).reshape(attr.pixels"),
        "the last filter of many is that before": (
            "dw[a, b] = sums",
            "dw[a, b] = sums[:, np.minimum(np.arange(attr.filters), 31)]",
        ),
        "sums are means": ("dw[a, b] = sums", "dw[a, b] = sums / max(len(dy), 1)"),
    },
}  # fmt: skip


def last(attr: Any) -> AnyArray:
    """Return zero for the last pixel, and one for all others."""
    counts = np.arange(attr.pixels).reshape(attr.batch, attr.out_height, attr.out_width, 1)
    ones: AnyArray = counts < attr.pixels - 1
    return ones


def conv2d_backward_weights(attr: Any, x: AnyArray, dy: AnyArray, dw: AnyArray) -> None:
    (top, bottom), (left, right) = attr.padding
    padded = np.pad(x, ((0, 0), *((top, bottom), (left, right)), (0, 0)), constant_values=0)
    down, along = attr.stride
    skip, over = attr.dilation
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    for a in range(attr.kernel[0]):
        for b in range(attr.kernel[1]):
            rows = np.minimum(np.arange(dy.shape[1]) * down + a * skip, padded.shape[1] - 1)
            columns = np.minimum(np.arange(dy.shape[2]) * along + b * over, padded.shape[2] - 1)
            seen = padded[:, rows][:, :, columns]
            seen = seen.reshape(attr.pixels, attr.channels)
            sums = np.zeros((per, attr.filters), dw.dtype)
            for group in range(attr.groups):
                columns_of = dy.reshape(attr.pixels, attr.filters)[:, group * own : group * own + own]
                sums[:, group * own : group * own + own] = seen[:, group * per : group * per + per].T @ columns_of
            dw[a, b] = sums
