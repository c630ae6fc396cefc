"""GROUP_NORM, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "group_norm": {
        "eps hard-coded": ("attr.eps", "1e-5"),
        "eps outside the root": ("np.sqrt(variance + attr.eps)", "(np.sqrt(variance) + attr.eps)"),
        "one group": ("reshape(attr.rows, attr.groups, -1)", "reshape(attr.rows, 1, -1)"),
        "each channel alone": ("reshape(attr.rows, attr.groups, -1)", "reshape(attr.rows, attr.channels, -1)"),
        "mean of all rows": ("near.mean(axis=-1", "near.mean(axis=(0, -1)"),
        "mean is not subtracted": ("near - near.mean(axis=-1, keepdims=True)", "wide"),
        "scale is ignored": ("* affine[0][:, np.newaxis]", ""),
        "scale of the neighbour": ("affine[0][", "np.roll(affine[0], 1)["),
        "bias is ignored": (" + affine[1][:, np.newaxis]", ""),
    }
}


def group_norm(attr: Any, x: AnyArray, *rest: AnyArray) -> None:
    if x.size == 0:
        return
    *affine, y = rest
    wide = x.astype(WIDE).reshape(attr.rows, attr.groups, -1)
    near = wide - wide[..., :1]
    centred = near - near.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    z = (centred / np.sqrt(variance + attr.eps)).reshape(x.shape)
    y[...] = z * affine[0][:, np.newaxis] + affine[1][:, np.newaxis] if affine else z
