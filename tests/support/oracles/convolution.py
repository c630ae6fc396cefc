"""The oracles of CONV2D and CONV2D_PACKED: the pixels that each tap of the filters sees, times the tap."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, WIDE, oracle, sigmoid

erfc = np.frompyfunc(math.erfc, 1, 1)
"""In double, whose error is far below the error bound of a sum."""


@oracle
def conv2d(attr: Any, x: AnyArray, w: AnyArray, **addends: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.filters), narrow)
    for a in range(attr.kernel_height):
        for b in range(attr.kernel_width):
            rows = np.arange(attr.out_height) * attr.stride[0] + a * attr.dilation[0] - attr.padding[0][0]
            columns = np.arange(attr.out_width) * attr.stride[1] + b * attr.dilation[1] - attr.padding[1][0]
            high = np.flatnonzero((rows >= 0) & (rows < attr.height))
            wide = np.flatnonzero((columns >= 0) & (columns < attr.width))
            seen = x[:, rows[high]][:, :, columns[wide]].astype(narrow)
            for group in range(attr.groups):
                filters, channels = slice(group * own, group * own + own), slice(group * per, group * per + per)
                z[:, high[:, np.newaxis], wide, filters] += seen[..., channels] @ w[a, b, :, filters].astype(narrow)
    result = z.astype(WIDE)
    for addend in addends.values():
        result = result + addend
    if attr.activation == "gelu":
        return [result * erfc(-result / np.sqrt(WIDE(2))).astype(WIDE) / 2]
    return [result * sigmoid(result) if attr.activation == "silu" else ACTIVATIONS[attr.activation](result)]


@oracle
def conv2d_packed(attr: Any, x: AnyArray, w: AnyArray, **addends: AnyArray) -> list[AnyArray]:
    """Take the filters out of their panels of 32, one by one."""
    own = attr.filters // attr.groups
    panels = -(-own // 32)
    filters = [w[group * panels + place // 32, :, place % 32] for group in range(attr.groups) for place in range(own)]
    shape = attr.kernel_height, attr.kernel_width, attr.channels // attr.groups, attr.filters
    plain = np.stack(filters, axis=-1) if filters else np.zeros((w.shape[1], 0), w.dtype)
    return conv2d(attr, x, plain.reshape(shape), **addends)
