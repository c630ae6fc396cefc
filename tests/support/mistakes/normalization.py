"""RMS_NORM and BATCH_NORM, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

_SHARED = {
    "eps hard-coded": ("attr.eps", "1e-5"),
    "scale is ignored": ("* affine[0]", "* np.ones_like(affine[0])"),
    "scale of the neighbour": ("affine[0]", "np.roll(affine[0], 1)"),
    "last row is forgotten": ("y[...] = result", "y[: max(1, attr.rows - 1)] = result[: max(1, attr.rows - 1)]"),
    "reads what it has written": ("    wide =", "    y[...] = np.abs(x)\n    wide ="),
}
MISTAKES = {
    "rms_norm": {
        **_SHARED,
        "eps outside the root": ("np.sqrt(squares + attr.eps)", "(np.sqrt(squares) + attr.eps)"),
        "sum instead of mean": ("/ attr.n", "/ 1"),
        "mean is subtracted": ("np.square(wide)", "np.square(wide - wide.mean(axis=1, keepdims=True))"),
        "without the last element": ("wide).sum(", "wide)[:, : max(1, attr.n - 1)].sum("),
    },
    "batch_norm": {
        **_SHARED,
        "eps outside the root": ("np.sqrt(var + attr.eps)", "(np.sqrt(var) + attr.eps)"),
        "deviation for variance": ("np.sqrt(var + attr.eps)", "(var + attr.eps)"),
        "mean is ignored": ("wide - mean[:, np.newaxis]", "wide"),
        "mean of the neighbour": ("wide - mean[", "wide - np.roll(mean, 1)["),
        "bias is ignored": ("+ affine[1][:, np.newaxis]", ""),
    },
}


def rms_norm(attr: Any, x: AnyArray, *rest: AnyArray) -> None:
    if x.size == 0:
        return
    *affine, y = rest
    wide = x.astype(WIDE)
    squares = np.square(wide).sum(axis=1, keepdims=True) / attr.n
    result = wide / np.sqrt(squares + attr.eps)
    if affine:
        result = result * affine[0][:, np.newaxis]
    y[...] = result


def batch_norm(attr: Any, x: AnyArray, mean: AnyArray, var: AnyArray, *rest: AnyArray) -> None:
    *affine, y = rest
    wide = x.astype(WIDE)
    result = (wide - mean[:, np.newaxis]) / np.sqrt(var + attr.eps)[:, np.newaxis]
    if affine:
        result = result * affine[0][:, np.newaxis] + affine[1][:, np.newaxis]
    y[...] = result
