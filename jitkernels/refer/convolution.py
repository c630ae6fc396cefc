"""NumPy references of CONV2D and CONV2D_PACKED: matrix products of windows (im2col) and filters."""

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(Conv2DPackedAttr)
@implements(Conv2DAttr)
def conv2d(attr: Conv2DAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *addends, y = rest
    with np.errstate(all="ignore"):
        z = attr.convolved(x, w)
        for addend in addends:
            z = z + addend
        y[...] = special_functions.activate(attr.activation, z)
