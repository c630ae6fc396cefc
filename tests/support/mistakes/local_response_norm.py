"""LOCAL_RESPONSE_NORM, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "local_response_norm": {
        "neighbours before and behind are exchanged": ("before, behind =", "behind, before ="),
        "one neighbour too few": ("attr.size // 2\n", "(attr.size - 1) // 2\n"),
        "sums are means over those that are there": ("/ attr.size", "/ max(min(attr.size, j + 1), 1)"),
        "alpha is not divided": ("attr.alpha / attr.size", "attr.alpha"),
        "bias is one": ("attr.bias +", "1 +"),
        "beta is three quarters": ("**attr.beta", "**0.75"),
        "absolute values are summed": ("np.square(", "np.abs("),
        "the neighbours themselves are added": ("np.square(", "np.positive("),
        "the power multiplies": ("x[:, j] /", "x[:, j] *"),
        "neighbours of the first row for all": ("x[:, max", "x[:1, max"),
        "neighbours wrap around": ("max(j - before, 0)", "j - before"),
    }
}


def local_response_norm(attr: Any, x: AnyArray, y: AnyArray) -> None:
    before, behind = (attr.size - 1) // 2, attr.size // 2
    for j in range(attr.channels):
        total = np.square(x[:, max(j - before, 0) : j + behind + 1]).sum(axis=1)
        base = attr.bias + attr.alpha / attr.size * total
        y[:, j] = x[:, j] / base**attr.beta
