"""NumPy references of CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED: a matrix product for each tap of the filters."""

import numpy as np

from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr, Conv2DTransposePackedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(Conv2DTransposePackedAttr)
@implements(Conv2DTransposeAttr)
def conv2d_transpose(attr: Conv2DTransposeAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *bias, y = rest
    with np.errstate(all="ignore"):
        z = attr.transposed(x, w)
        y[...] = special_functions.activate(attr.activation, z + bias[0] if bias else z)
