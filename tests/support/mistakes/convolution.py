"""CONV2D and CONV2D_PACKED, and mutants of them."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid

MISTAKES = {
    "conv2d": {
        "padding above is that below": ("*((top, bottom)", "*((bottom, top)"),
        "padding on the left is that on the right": ("(left, right)), (0, 0))", "(right, left)), (0, 0))"),
        "padding repeats the border": ("constant_values=0", "mode='edge'"),
        "strides are exchanged": ("down, along = attr.stride", "along, down = attr.stride"),
        "dilations are exchanged": ("skip, over = attr.dilation", "over, skip = attr.dilation"),
        "filters are reversed": ("w[a, b]", "w[-1 - a, -1 - b]"),
        "last column of filters is lost where they are wide": (
            "range(attr.kernel_width)",
            "range(min(attr.kernel_width, 2))",
        ),
        "all groups see the first": ("group * per : group * per + per", ": per"),
        "groups are interleaved": ("group * own : group * own + own] +=", "group :: attr.groups] +="),
        "bias is forgotten": ("z += addends.pop(0)", "addends.pop(0)"),
        "bias of the first filter for all": ("z += addends.pop(0)", "z += addends.pop(0)[:1]"),
        "residual is forgotten": ("z += addends[0]", "pass"),
        "residual of the first image for all": ("z += addends[0]", "z += addends[0][:1]"),
        "residual of one filter for all": ("z += addends[0]", "z += addends[0][..., :1]"),
        "relu loses NaN": ("np.maximum(z, 0)", "np.where(z > 0, z, 0)"),
        "silu is sigmoid": ("z * sigmoid(z)", "sigmoid(z)"),
        "gelu of the wrong sign": ("phi(-z * ", "phi(z * "),
        "last images of many are not computed": (
            "y[...] = activated[attr.activation]()",
            "y[: len(y) - len(y) // 9] = activated[attr.activation]()[: len(y) - len(y) // 9]",
        ),
    },
    "conv2d_packed": {
        "all groups have the first panel": ("group * panels + ", "0 * panels + "),
        "the second panel is the first": ("place // 32, :", "place // 64, :"),
        "lanes are reversed": ("place % 32]", "31 - place % 32]"),
        "taps are reversed": ("place // 32, :, ", "place // 32, ::-1, "),
    },
}  # fmt: skip
phi = np.frompyfunc(math.erfc, 1, 1)


def conv2d(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *addends, y = rest
    (top, bottom), (left, right) = attr.padding
    padded = np.pad(x, ((0, 0), *((top, bottom), (left, right)), (0, 0)), constant_values=0)
    down, along = attr.stride
    skip, over = attr.dilation
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros(y.shape, y.dtype)
    for a in range(attr.kernel_height):
        for b in range(attr.kernel_width):
            rows = np.minimum(np.arange(y.shape[1]) * down + a * skip, padded.shape[1] - 1)
            columns = np.minimum(np.arange(y.shape[2]) * along + b * over, padded.shape[2] - 1)
            seen = padded[:, rows][:, :, columns]
            for group in range(attr.groups):
                taps = w[a, b][:, group * own : group * own + own]
                z[..., group * own : group * own + own] += seen[..., group * per : group * per + per] @ taps
    if attr.biased:
        z += addends.pop(0)
    if attr.has_residual:
        z += addends[0]
    activated: dict[str, Any] = {
        "identity": lambda: z,
        "relu": lambda: np.maximum(z, 0),
        "gelu": lambda: z * np.asarray(phi(-z * math.sqrt(0.5))).astype(z.dtype) / 2,
        "silu": lambda: z * sigmoid(z),
        "tanh": lambda: np.tanh(z),
        "sigmoid": lambda: sigmoid(z),
    }
    y[...] = activated[attr.activation]()


def conv2d_packed(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    own = attr.filters // attr.groups
    panels = -(-own // 32)
    plain = np.zeros((w.shape[1], attr.filters), w.dtype)
    for group in range(attr.groups):
        for place in range(own):
            plain[:, group * own + place] = w[group * panels + place // 32, :, place % 32]
    shape = attr.kernel_height, attr.kernel_width, attr.channels // attr.groups, attr.filters
    conv2d(attr, x, plain.reshape(shape), *rest)
