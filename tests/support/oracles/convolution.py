"""The oracle of CONV2D: shifted images times the filters' taps."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, WIDE, oracle, sigmoid

erfc = np.frompyfunc(math.erfc, 1, 1)
"""In double, whose error is far below the error bound of a sum."""


@oracle
def conv2d(attr: Any, x: AnyArray, w: AnyArray, bias: Any = None) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    (top, bottom), (left, right) = attr.padding
    height, width = attr.height + top + bottom, attr.width + left + right
    padded = np.zeros((attr.batch, height, width, attr.channels), narrow)
    padded[:, top : top + attr.height, left : left + attr.width] = x
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    z = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.filters), narrow)
    for a in range(attr.kernel_height):
        for b in range(attr.kernel_width):
            rows = np.arange(attr.out_height) * attr.stride[0] + a * attr.dilation[0]
            columns = np.arange(attr.out_width) * attr.stride[1] + b * attr.dilation[1]
            seen = padded[:, rows][:, :, columns]
            for group in range(attr.groups):
                filters, channels = slice(group * own, group * own + own), slice(group * per, group * per + per)
                z[..., filters] += seen[..., channels] @ w[a, b, :, filters].astype(narrow)
    result = z.astype(WIDE) if bias is None else z.astype(WIDE) + bias
    if attr.activation == "gelu":
        return [result * erfc(-result / np.sqrt(WIDE(2))).astype(WIDE) / 2]
    return [result * sigmoid(result) if attr.activation == "silu" else ACTIVATIONS[attr.activation](result)]
