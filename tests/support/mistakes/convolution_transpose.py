"""CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED, and mutants of them."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid
from mistakes.convolution import phi

MISTAKES = {
    "conv2d_transpose": {
        "padding above is that below": ("attr.padding[0][0]", "attr.padding[0][1]"),
        "padding on the left is that on the right": ("attr.padding[1][0]", "attr.padding[1][1]"),
        "strides are exchanged": ("down, along = attr.stride", "along, down = attr.stride"),
        "dilations are exchanged": ("skip, over = attr.dilation", "over, skip = attr.dilation"),
        "filters are reversed": ("w[a, b]", "w[-1 - a, -1 - b]"),
        "output padding is forgotten": (
            "x.shape[1], attr.out_height",
            "x.shape[1], attr.out_height - attr.output_padding[0]",
        ),
        "all groups see the first": ("group * per : group * per + per", ": per"),
        "groups are interleaved": ("group * own : group * own + own] +=", "group :: attr.groups] +="),
        "a pixel replaces those before": ("+= sums", "= sums"),
        "bias is forgotten": ("z += bias[0]", "pass"),
        "bias of the first filter for all": ("z += bias[0]", "z += bias[0][:1]"),
        "relu loses NaN": ("np.maximum(z, 0)", "np.where(z > 0, z, 0)"),
        "silu is sigmoid": ("z * sigmoid(z)", "sigmoid(z)"),
        "gelu of the wrong sign": ("phi(-z * ", "phi(z * "),
        "last images of many are not computed": (
            "y[...] = activated[attr.activation]()",
            "y[: len(y) - len(y) // 2] = activated[attr.activation]()[: len(y) - len(y) // 2]",
        ),
    },
    "conv2d_transpose_packed": {
        "all groups have the first panel": ("group * panels + ", "0 * panels + "),
        "the second panel is the first": ("place // 32, :", "place // 64, :"),
        "lanes are reversed": ("place % 32]", "31 - place % 32]"),
        "taps are in their own order": ("attr.taps", "sorted(attr.taps)"),
    },
}  # fmt: skip


def conv2d_transpose(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *bias, y = rest
    top, left = attr.padding[0][0], attr.padding[1][0]
    down, along = attr.stride
    skip, over = attr.dilation
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros(y.shape, y.dtype)

    far = 24
    x = np.pad(x, ((0, 0), (far, far), (far, far), (0, 0)))  # zeros meet infinite filters as pixels do

    def places(pixels: int, count: int, step: int, begin: int) -> tuple[AnyArray, AnyArray]:
        at = (np.arange(pixels) - far) * step + begin
        pixel = np.flatnonzero((at >= 0) & (at < count))
        return pixel, at[pixel][:, np.newaxis]

    for a in range(attr.kernel_height):
        k, i = places(x.shape[1], attr.out_height, down, a * skip - top)
        for b in range(attr.kernel_width):
            m, j = places(x.shape[2], y.shape[2], along, b * over - left)
            seen = x[:, k][:, :, m]
            for group in range(attr.groups):
                filters = w[a, b][:, group * own : group * own + own]
                sums = seen[..., group * per : group * per + per] @ filters
                z[:, i, j[:, 0], group * own : group * own + own] += sums
    if attr.biased:
        z += bias[0]
    activated: dict[str, Any] = {
        "identity": lambda: z,
        "relu": lambda: np.maximum(z, 0),
        "gelu": lambda: z * np.asarray(phi(-z * math.sqrt(0.5))).astype(z.dtype) / 2,
        "silu": lambda: z * sigmoid(z),
        "tanh": lambda: np.tanh(z),
        "sigmoid": lambda: sigmoid(z),
    }
    y[...] = activated[attr.activation]()


def conv2d_transpose_packed(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    panels = -(-own // 32)
    plain = np.zeros((w.shape[1], attr.filters), w.dtype)
    for group in range(attr.groups):
        for place in range(own):
            plain[:, group * own + place] = w[group * panels + place // 32, :, place % 32]
    filters = np.zeros((attr.kernel_height, attr.kernel_width, per, attr.filters), w.dtype)
    for tap, (a, b) in enumerate(attr.taps):
        filters[a, b] = plain[tap * per : tap * per + per]
    conv2d_transpose(attr, x, filters, *rest)
