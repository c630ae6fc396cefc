"""LAYER_NORM, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "layer_norm": {
        "eps hard-coded": ("attr.eps", "1e-5"),
        "eps outside the root": ("np.sqrt(variance + attr.eps)", "(np.sqrt(variance) + attr.eps)"),
        "mean divided by n + 1 for long rows": (
            "keepdims=True) / attr.n\n    variance",
            "keepdims=True) / (attr.n + (attr.n > 1000))\n    variance",
        ),
        "variance divided by n - 1": ("attr.n\n    z =", "max(1, attr.n - 1)\n    z ="),
        "variance in one pass": (
            "np.square(centred).sum(axis=-1, keepdims=True) / attr.n",
            "(np.square(x).mean(axis=-1, keepdims=True) - np.square(x.mean(axis=-1, keepdims=True)))",
        ),
        "mean in one chain": (
            "near.sum(axis=-1, keepdims=True) / attr.n",
            "(np.cumsum(x, axis=-1)[:, -1:] / x.dtype.type(attr.n) - wide[:, :1])",
        ),
        "mean without the last element": ("near.sum(", "near[:, : max(1, attr.n - 1)].sum("),
        "scale is ignored": ("z * affine[0]", "z"),
        "bias is ignored": (" + affine[1]", ""),
        "scale of the neighbour": ("affine[0]", "np.roll(affine[0], 1)"),
        "reads what it has written": ("    wide =", "    y[...] = np.abs(x)\n    wide ="),
        "last element is not scaled": ("z * affine[0]", "z * np.append(affine[0][:-1], 1)"),
        "the variance has eps in it": ("= variance[:, 0]", "= variance[:, 0] + attr.eps"),
        "the deviation for the variance": ("= variance[:, 0]", "= np.sqrt(variance[:, 0])"),
        "the mean of the first row for all": ("wide.mean(axis=-1)", "wide[0].mean()"),
        "mean and variance exchanged": ("if stats:", "stats.reverse()\n    if stats:"),
    }
}


def layer_norm(attr: Any, x: AnyArray, *rest: AnyArray) -> None:
    if x.size == 0:
        return
    affine, (y, *stats) = rest[: 2 * attr.affine], rest[2 * attr.affine :]
    wide = x.astype(WIDE)
    near = wide - wide[:, :1]
    centred = near - near.sum(axis=-1, keepdims=True) / attr.n
    variance = np.square(centred).sum(axis=-1, keepdims=True) / attr.n
    z = centred / np.sqrt(variance + attr.eps)
    y[...] = z * affine[0] + affine[1] if affine else z
    if stats:
        stats[0][...] = wide.mean(axis=-1)
        stats[1][...] = variance[:, 0]
