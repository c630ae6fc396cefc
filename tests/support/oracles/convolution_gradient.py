"""The oracle of CONV2D_BACKWARD_WEIGHTS: tap by tap, shifted images times gradients."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def conv2d_backward_weights(attr: Any, x: AnyArray, dy: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    (top, bottom), (left, right) = attr.padding
    padded = np.zeros((attr.batch, attr.height + top + bottom, attr.width + left + right, attr.channels), narrow)
    padded[:, top : top + attr.height, left : left + attr.width] = x
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    dw = np.zeros((*attr.kernel, per, attr.filters), narrow)
    gradients = dy.astype(narrow).reshape(attr.pixels, attr.filters)
    for a in range(attr.kernel[0]):
        for b in range(attr.kernel[1]):
            rows = np.arange(attr.out_height) * attr.stride[0] + a * attr.dilation[0]
            columns = np.arange(attr.out_width) * attr.stride[1] + b * attr.dilation[1]
            seen = padded[:, rows][:, :, columns].reshape(attr.pixels, attr.channels)
            for group in range(attr.groups):
                filters, channels = slice(group * own, group * own + own), slice(group * per, group * per + per)
                dw[a, b, :, filters] = seen[:, channels].T @ gradients[:, filters]
    return [dw.astype(WIDE)]
