"""Vector-Jacobian products of max pooling."""

from typing import Any

import numpy as np

from jitkernels.attrs.pooling import MaxPool2DAttr, MaxPool2DBackwardAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.dispatch.operators import everyday

PARAMETERS = "window", "stride", "padding", "dilation", "ceil_mode"


@vjp_of(MaxPool2DAttr)
def max_pool2d(attr: Any, dy: Any, x: Any) -> list[Any]:
    """The cotangent of the images: that of a window goes to its first maximum."""
    options = {name: getattr(attr, name) for name in PARAMETERS}
    return [everyday("max_pool2d_backward")(x, dy, **options)]


@vjp_of(MaxPool2DBackwardAttr)
def max_pool2d_backward(attr: Any, dx: Any, x: Any, dy: Any) -> list[Any]:
    """The cotangent of the gradients: what is at the first maximum of each window. The images get none."""
    batch = (attr.batch, attr.height, attr.width, attr.channels)
    taps = attr.maxima(np.reshape(x, batch))
    windows = attr.pooled_windows(np.reshape(dx, batch), 0)
    picked = sum(np.where(taps == tap, windows[..., tap], 0.0) for tap in range(attr.area))
    return [None, np.reshape(picked, dy.shape)]
