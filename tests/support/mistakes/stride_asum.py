"""STRIDE_ASUM, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "stride_asum": {
        "the first element with its sign": (
            "y[...] = result",
            "y[...] = result + np.minimum(2 * x[:, :1].sum(axis=1), 0)",
        ),
        "without the first element": ("[:, :: attr.stride]", "[:, attr.stride :: attr.stride]"),
        "without the last element": ("[:, :: attr.stride]", "[:, : max(1, attr.n - 1) : attr.stride]"),
        "stride is ignored": (":: attr.stride", "::"),
        "no absolute values": ("np.abs(chosen)", "chosen"),
        "in one chain": ("np.abs(chosen).sum(axis=1)", "np.add.reduce(np.abs(x[:, :: attr.stride]).T.copy(), axis=0)"),
        "last row is forgotten": ("y[...] = result", "y[: max(1, attr.rows - 1)] = result[: max(1, attr.rows - 1)]"),
    }
}


def stride_asum(attr: Any, x: AnyArray, y: AnyArray) -> None:
    chosen = x.astype(WIDE)[:, :: attr.stride]
    result = np.abs(chosen).sum(axis=1)
    y[...] = result
