"""NumPy references of the reductions along one axis."""

import numpy as np

from jitkernels.attrs.reduction import HArgMaxAttr, HLogSumExpAttr, HMaxAttr, HMeanAttr, HMinAttr, HSumAttr, HVarAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


def _axis_last(x: AnyArray) -> AnyArray:
    """Move the axis to the end: NumPy adds pairwise only there."""
    return np.swapaxes(x, 1, 2).copy()


@implements(HMaxAttr, compiles=True)
def hmax(attr: HMaxAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.max(x, axis=1, out=y)


@implements(HMinAttr, compiles=True)
def hmin(attr: HMinAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.min(x, axis=1, out=y)


@implements(HArgMaxAttr, compiles=True)
def hargmax(attr: HArgMaxAttr, x: AnyArray, y: AnyArray) -> None:
    np.argmax(x, axis=1, out=y)


@implements(HSumAttr, compiles=True)
def hsum(attr: HSumAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sum(_axis_last(x), axis=-1, out=y)


@implements(HMeanAttr, compiles=True)
def hmean(attr: HMeanAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.divide(_axis_last(x).sum(axis=-1), attr.n, out=y)


@implements(HVarAttr, compiles=True)
def hvar(attr: HVarAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        over = _axis_last(x)
        mean = over.sum(axis=-1, keepdims=True) / attr.n
        squares = np.square(over - mean).sum(axis=-1)
        np.divide(squares, np.maximum(attr.n - attr.ddof, 0), out=y)


@implements(HLogSumExpAttr, compiles=True)
def hlogsumexp(attr: HLogSumExpAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        largest = x.max(axis=1, initial=-np.inf)
        near = np.where(np.isfinite(largest), largest, x.dtype.type(0))
        np.add(np.log(np.exp(_axis_last(x) - near[:, :, np.newaxis]).sum(axis=-1)), near, out=y)
