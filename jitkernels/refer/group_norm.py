"""NumPy reference of GROUP_NORM, in the next wider type, whose squares do not overflow."""

import numpy as np

from jitkernels.attrs.group_norm import GroupNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(GroupNormAttr)
def group_norm(attr: GroupNormAttr, x: AnyArray, *rest: AnyArray) -> None:
    if x.size == 0:
        return
    *affine, y = rest
    with np.errstate(all="ignore"):
        groups = x.reshape(attr.rows, attr.groups, attr.channels // attr.groups, attr.inner)
        wide: AnyArray = groups.astype(attr.wide)
        mean: AnyArray = wide.mean(axis=(2, 3), keepdims=True)
        off: AnyArray = wide - mean
        centred = wide - (mean + off.mean(axis=(2, 3), keepdims=True))  # of a constant group, exactly zero
        squares: AnyArray = centred * centred
        deviation = np.sqrt(squares.mean(axis=(2, 3), keepdims=True) + attr.eps)
        normalised = (centred / deviation).reshape(x.shape)
        y[...] = normalised * affine[0][:, np.newaxis] + affine[1][:, np.newaxis] if affine else normalised
