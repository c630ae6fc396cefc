"""The oracle of CONV2D_BACKWARD_WEIGHTS: tap by tap, the pixels of images that it sees times gradients."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def conv2d_backward_weights(attr: Any, x: AnyArray, dy: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    dw = np.zeros((*attr.kernel, per, attr.filters), narrow)
    images = x.astype(narrow).reshape(attr.batch, attr.height, attr.width, attr.channels)
    gradients = dy.astype(narrow).reshape(attr.batch, attr.out_height, attr.out_width, attr.filters)
    for a in range(attr.kernel[0]):
        for b in range(attr.kernel[1]):
            rows = np.arange(attr.out_height) * attr.stride[0] + a * attr.dilation[0] - attr.padding[0][0]
            columns = np.arange(attr.out_width) * attr.stride[1] + b * attr.dilation[1] - attr.padding[1][0]
            high, wide = (rows >= 0) & (rows < attr.height), (columns >= 0) & (columns < attr.width)
            pixels = attr.batch * high.sum() * wide.sum()
            seen = images[:, rows[high]][:, :, columns[wide]].reshape(pixels, attr.channels)
            inside = gradients[:, high][:, :, wide].reshape(pixels, attr.filters)
            for group in range(attr.groups):
                filters, channels = slice(group * own, group * own + own), slice(group * per, group * per + per)
                dw[a, b, :, filters] = seen[:, channels].T @ inside[:, filters]
    return [dw.astype(WIDE)]
