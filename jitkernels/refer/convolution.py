"""NumPy reference of CONV2D: matrix products of windows (im2col) and filters."""

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.refer.matmul_epilogue import activated


@implements(Conv2DAttr)
def conv2d(attr: Conv2DAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *bias, y = rest
    with np.errstate(all="ignore"):
        z = attr.convolved(x, w)
        y[...] = activated(attr.activation, z + bias[0] if bias else z)
