"""NumPy reference of CONV2D_BACKWARD_WEIGHTS: matrix products of windows (im2col) and gradients."""

import numpy as np

from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(Conv2DBackwardWeightsAttr)
def conv2d_backward_weights(attr: Conv2DBackwardWeightsAttr, x: AnyArray, dy: AnyArray, dw: AnyArray) -> None:
    with np.errstate(all="ignore"):
        dw[...] = attr.correlated(x, dy)
