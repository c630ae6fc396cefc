"""NumPy references of RMS_NORM and BATCH_NORM."""

import numpy as np

from jitkernels.attrs.normalization import BatchNormAttr, RmsNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(RmsNormAttr, compiles=True)
def rms_norm(attr: RmsNormAttr, x: AnyArray, *rest: AnyArray) -> None:
    if attr.rows * attr.remain == 0:
        return
    *scale, y = rest
    with np.errstate(all="ignore"):
        squares = np.swapaxes(x * x, 1, 2).copy().sum(axis=-1)[:, np.newaxis]
        normalised = x / np.sqrt(squares / attr.n + attr.eps)
        y[...] = normalised * scale[0][:, np.newaxis] if scale else normalised


@implements(BatchNormAttr)
def batch_norm(attr: BatchNormAttr, x: AnyArray, mean: AnyArray, var: AnyArray, *rest: AnyArray) -> None:
    *affine, y = rest
    with np.errstate(all="ignore"):
        factor = 1 / np.sqrt(var + attr.eps)[:, np.newaxis]
        if affine:
            y[...] = (x - mean[:, np.newaxis]) * (factor * affine[0][:, np.newaxis]) + affine[1][:, np.newaxis]
        else:
            y[...] = (x - mean[:, np.newaxis]) * factor
