"""The oracles of CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED: a convolution of an image with zeros between pixels."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, WIDE, oracle, sigmoid
from oracles.convolution import erfc


def meeting(extents: tuple[int, int], axis: int, tap: int, attr: Any) -> tuple[AnyArray, AnyArray]:
    """Return the pixels of the result that a tap adds to, and those of the image that it adds."""
    pixels = np.arange(extents[1])
    at, rest = np.divmod(pixels + attr.padding[axis][0] - attr.dilation[axis] * tap, attr.stride[axis])
    meets = (rest == 0) & (at >= 0) & (at < extents[0])
    return pixels[meets], at[meets]


@oracle
def conv2d_transpose(attr: Any, x: AnyArray, w: AnyArray, **bias: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.filters), narrow)
    extents = (attr.height, attr.out_height), (attr.width, attr.out_width)
    places = [  # of the pixels of the result and of the image that meet each tap
        [meeting(counts, axis, tap, attr) for tap in range(kernel)]
        for axis, (counts, kernel) in enumerate(zip(extents, w.shape[:2], strict=True))
    ]
    for a, (rows, above) in enumerate(places[0]):
        for b, (columns, before) in enumerate(places[1]):
            seen = x[:, above][:, :, before].astype(narrow)
            for group in range(attr.groups):
                filters, channels = slice(group * own, group * own + own), slice(group * per, group * per + per)
                z[:, rows[:, np.newaxis], columns, filters] += seen[..., channels] @ w[a, b, :, filters].astype(narrow)
    result = z.astype(WIDE)
    for term in bias.values():
        result = result + term
    if attr.activation == "gelu":
        return [result * erfc(-result / np.sqrt(WIDE(2))).astype(WIDE) / 2]
    return [result * sigmoid(result) if attr.activation == "silu" else ACTIVATIONS[attr.activation](result)]


@oracle
def conv2d_transpose_packed(attr: Any, x: AnyArray, w: AnyArray, **bias: AnyArray) -> list[AnyArray]:
    """Take the filters out of their panels of 32, tap by tap: those of one phase of the strides lie together."""
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    panels = -(-own // 32)

    def falling(kernel: int, stride: int, dilation: int) -> list[list[int]]:
        phases: dict[int, list[int]] = {}
        for tap in range(kernel):
            phases.setdefault(dilation * tap % stride, []).insert(0, tap)
        return [*phases.values()]

    rows = falling(attr.kernel_height, attr.stride[0], attr.dilation[0])
    columns = falling(attr.kernel_width, attr.stride[1], attr.dilation[1])
    plain = np.zeros((attr.kernel_height, attr.kernel_width, per, attr.filters), w.dtype)
    taps = [(a, b) for some in rows for others in columns for a in some for b in others]
    for place, (a, b) in enumerate(taps):
        for f in range(attr.filters):
            panel, lane = f // own * panels + f % own // 32, f % own % 32
            plain[a, b, :, f] = w[panel, place * per : place * per + per, lane]
    return conv2d_transpose(attr, x, plain, **bias)
