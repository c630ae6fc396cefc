"""NumPy references of CONV2D_INT8 and CONV2D_INT8_PACKED: matrix products of windows (im2col) and filters."""

from typing import Any

import numpy as np

from jitkernels.attrs.convolution_int8 import Conv2DInt8Attr, Conv2DInt8PackedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(Conv2DInt8PackedAttr)
@implements(Conv2DInt8Attr)
def conv2d_int8(attr: Conv2DInt8Attr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *given, y = rest
    x_zero, bias, scale, y_zero = (
        given.pop(0) if flag else None for flag in (attr.shifted, attr.biased, attr.scaled, attr.y_shifted)
    )
    z = attr.convolved(x, w, 0 if x_zero is None else int(x_zero[0]))
    z = (z if bias is None else z + bias).astype(np.int32)
    if attr.y_dtype == "int32":
        y[...] = np.maximum(z, 0) if attr.activation == "relu" else z
        return
    with np.errstate(all="ignore"):
        values = z.astype(np.float32)
        values = values if scale is None else values * scale.astype(np.float32)  # rounded by definition
        if attr.y_dtype == "float32":
            y[...] = np.where(values < 0, np.float32(0), values) if attr.activation == "relu" else values
        else:
            y[...] = _quantized(attr, values, 0 if y_zero is None else int(y_zero[0]))


def _quantized(attr: Conv2DInt8Attr, values: AnyArray, zero: int) -> Any:
    limits = np.iinfo(attr.y_dtype)
    least = int(limits.min)
    if attr.activation == "relu":
        least = min(max(least, zero), int(limits.max))
    steps = np.rint(values)
    steps = np.where(np.isnan(steps), np.float32(-np.inf), steps) + np.float32(zero)
    return np.minimum(np.maximum(steps, least), int(limits.max)).astype(attr.y_dtype)
