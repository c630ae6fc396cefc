"""NumPy references of MAX_POOL2D, MAX_POOL2D_BACKWARD and AVG_POOL2D."""

import numpy as np

from jitkernels.attrs.pooling import AvgPool2DAttr, MaxPool2DAttr, MaxPool2DBackwardAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MaxPool2DAttr)
def max_pool2d(attr: MaxPool2DAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.max(attr.pooled_windows(x, -np.inf), axis=-1, out=y)


@implements(MaxPool2DBackwardAttr)
def max_pool2d_backward(attr: MaxPool2DBackwardAttr, x: AnyArray, dy: AnyArray, dx: AnyArray) -> None:
    with np.errstate(all="ignore"):
        dx[...] = attr.scattered(attr.maxima(x), dy, dx)


@implements(AvgPool2DAttr)
def avg_pool2d(attr: AvgPool2DAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.divide(attr.pooled_windows(x, 0).sum(axis=-1), attr.counts().astype(x.dtype), out=y)
