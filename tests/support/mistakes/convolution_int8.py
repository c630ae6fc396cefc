"""CONV2D_INT8 and CONV2D_INT8_PACKED, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.convolution_int8 import Conv2DInt8Attr
from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "conv2d_int8": {
        "padding is zero, not the zero point": ("constant_values=zero", "constant_values=0"),
        "padding of the right is at the left": ("*((top, bottom), (left, right))", "*((top, bottom), (right, left))"),
        "padding of the bottom is at the top": ("*((top, bottom), (left, right))", "*((bottom, top), (left, right))"),
        "zero point is forgotten": ("[:, :, columns] - zero", "[:, :, columns]"),
        "unsigned is read as signed": ("x.astype(np.int64)", "x.view(np.int8).astype(np.int64)"),
        "sums saturate in 16 bits": (
            "+= seen[..., group * per : group * per + per] @ taps",
            "+= np.clip(seen[..., group * per : group * per + per] @ taps, -32768, 32767)",
        ),
        "strides are swapped": ("down, along = attr.stride", "along, down = attr.stride"),
        "dilation is forgotten": ("skip, over = attr.dilation", "skip, over = (1, 1)"),
        "all groups see the first": ("group * per : group * per + per", ": per"),
        "groups are interleaved": ("group * own : group * own + own] +=", "group :: attr.groups] +="),
        "bias is forgotten": ("z += bias", "pass"),
        "bias of the first filter for all": ("z += bias", "z += bias[:1]"),
        "scale of the first filter for all": ("* scale.astype", "* scale[:1].astype"),
        "halves are rounded up": ("np.rint(np.where(np.isnan(value), -np.inf, value))",
                                  "np.floor(np.where(np.isnan(value), -np.inf, value) + np.float32(0.5))"),
        "cuts what is behind the point": ("np.rint(", "np.trunc("),
        "wraps where it should saturate": ("np.clip(np.maximum(steps, least), limits.min, limits.max)",
                                           "np.nan_to_num(np.maximum(steps, least)).astype('i8').astype(y.dtype)"),
        "zero point of the result is forgotten": ("-np.inf, value)) + shift", "-np.inf, value))"),
        "NaN is the zero point": ("-np.inf, value)) + shift", "0, value)) + shift"),
        "relu limits to zero": ("least = shift if", "least = 0 if"),
        "relu of floats is forgotten": ("np.where(value < 0, 0, value)", "value"),
        "relu of integers is forgotten": ("np.maximum(z, 0)", "z"),
        "last images of many are not computed": (
            "limits, shift = np.iinfo(y.dtype)",
            "y, value = (a[: len(y) - len(y) // 9] for a in (y, value))\n    limits, shift = np.iinfo(y.dtype)",
        ),
    },
    "conv2d_int8_packed": {
        "all groups have the first panel": ("f // own * panels + ", "0 * panels + "),
        "the second panel is the first": ("f % own // 32", "f % own // 64"),
        "lanes are reversed": ("f % own % 32", "31 - f % own % 32"),
        "bytes of a word are reversed": (
            "4 * lane : 4 * lane + 4].reshape", "4 * lane : 4 * lane + 4][:, ::-1].reshape",
        ),
        "sums are not read": ("panel[0].view(np.int32)[lane]", "plain[:, f].sum()"),
        "signs are not corrected": ('128 if attr.x_dtype == "int8" else 0', "0"),
    },
}  # fmt: skip


def conv2d_int8(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *given, y = rest
    flags = attr.shifted, attr.biased, attr.scaled, attr.y_shifted
    x_zero, bias, scale, y_zero = (given.pop(0) if flag else None for flag in flags)
    zero = 0 if x_zero is None else int(x_zero[0])
    (top, bottom), (left, right) = attr.padding
    x = x.astype(np.int64)
    padded = np.pad(x, ((0, 0), *((top, bottom), (left, right)), (0, 0)), constant_values=zero)
    down, along = attr.stride
    skip, over = attr.dilation
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros(y.shape, np.int64)
    for a in range(attr.kernel_height):
        for b in range(attr.kernel_width):
            rows = np.minimum(np.arange(y.shape[1]) * down + a * skip, padded.shape[1] - 1)
            columns = np.minimum(np.arange(y.shape[2]) * along + b * over, padded.shape[2] - 1)
            seen = padded[:, rows][:, :, columns] - zero
            for group in range(attr.groups):
                taps = w[a, b][:, group * own : group * own + own].astype(np.int64)
                z[..., group * own : group * own + own] += seen[..., group * per : group * per + per] @ taps
    if bias is not None:
        z += bias
    z = z.astype(np.int32)
    if attr.y_dtype == "int32":
        y[...] = np.maximum(z, 0) if attr.activation == "relu" else z
        return
    value = z.astype(np.float32)
    if scale is not None:
        value = value * scale.astype(np.float32)
    if attr.y_dtype == "float32":
        y[...] = np.where(value < 0, 0, value) if attr.activation == "relu" else value
        return
    limits, shift = np.iinfo(y.dtype), 0 if y_zero is None else int(y_zero[0])
    steps = np.rint(np.where(np.isnan(value), -np.inf, value)) + shift
    least = shift if attr.activation == "relu" else limits.min
    y[...] = np.clip(np.maximum(steps, least), limits.min, limits.max)


def conv2d_int8_packed(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    own = attr.filters // attr.groups
    panels = -(-own // 32)
    plain = np.zeros((4 * (w.shape[1] - 1), attr.filters), np.int8)
    sums = np.zeros(attr.filters, np.int64)
    for f in range(attr.filters):
        panel, lane = w[f // own * panels + f % own // 32], f % own % 32
        plain[:, f] = panel[1:, 4 * lane : 4 * lane + 4].reshape(-1)
        sums[f] = panel[0].view(np.int32)[lane]
    shift = 128 if attr.x_dtype == "int8" else 0
    zero = int(rest[0][0]) if attr.shifted else 0
    given = list(rest)
    bias = given[attr.shifted] if attr.biased else 0
    more = (bias + (zero + shift) * (plain.sum(0, dtype=np.int64) - sums)).astype(np.int32)
    given[attr.shifted : attr.shifted + attr.biased] = [more]
    fields = {**attr.fields(), "biased": True}
    shape = attr.kernel_height, attr.kernel_width, attr.channels // attr.groups, attr.filters
    conv2d_int8(Conv2DInt8Attr(**fields), x, plain.reshape(shape), *given)
