"""NumPy reference of CONV2D_WINOGRAD: transforms and matrix products."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.winograd import Conv2DWinogradAttr, transforms
from jitkernels.compiler.ir import special_functions


@implements(Conv2DWinogradAttr)
def conv2d_winograd(attr: Conv2DWinogradAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *addends, y = rest
    with np.errstate(all="ignore"):
        z = attr.convolved(x, w, transforms(attr.tile))
        for addend in addends:
            z = z + addend
        y[...] = special_functions.activate(attr.activation, z)
