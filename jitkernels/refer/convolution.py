"""NumPy references of CONV2D and CONV2D_PACKED: matrix products of windows (im2col) and filters."""

import math

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(Conv2DPackedAttr)
@implements(Conv2DAttr)
def conv2d(attr: Conv2DAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *bias, y = rest
    with np.errstate(all="ignore"):
        z = attr.convolved(x, w)
        y[...] = activated(attr.activation, z + bias[0] if bias else z)


def activated(activation: str, z: AnyArray) -> AnyArray:
    """Apply the activation to the sums."""
    if activation == "relu":
        return np.maximum(z, 0)
    if activation == "gelu":
        gelu: AnyArray = z * special_functions.erfc(-z * math.sqrt(0.5)) / 2
        return gelu
    if activation == "tanh":
        return np.tanh(z)
    if activation == "identity":
        return z
    sigmoid: AnyArray = special_functions.sigmoid(z)
    return sigmoid if activation == "sigmoid" else z * sigmoid
