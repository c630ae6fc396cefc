"""SOFTMAX, and mistakes in it."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "softmax": {
        "maximum without the last element": ("x.max(", "x[:, : max(1, attr.n - 1)].max("),
        "maximum without the first element": ("x.max(", "x[:, min(1, attr.n - 1) :].max("),
        "maximum of absolute values": ("x.max(", "np.abs(x).max("),
        "maximum of all rows": ("x.max(axis=-1", "x.max(axis=(0, 1)"),
        "no maximum": ("x.max(axis=-1, keepdims=True)", "0"),
        "sum in one chain": (
            "terms.sum(axis=-1, keepdims=True, dtype=WIDE)",
            "np.cumsum(terms, axis=-1, dtype=x.dtype)[:, -1:]",
        ),
        "sum without the last element": ("terms.sum(", "terms[:, : max(1, attr.n - 1)].sum("),
        "last row is forgotten": (
            "y[...] = terms / total",
            "y[: max(1, attr.rows - 1)] = (terms / total)[: max(1, attr.rows - 1)]",
        ),
        "half precision on the way": (
            "np.exp(x - largest)",
            "np.exp((x - largest).astype('f2')).astype(x.dtype)",
        ),
        "drops NaN": ("np.exp(x - largest)", "np.exp(np.fmax(x - largest, -200))"),
        "takes an infinity for the largest number": (
            "np.exp(x - largest)",
            "np.exp(np.nan_to_num(x) - np.nan_to_num(largest))",
        ),
    },
}


def softmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if x.size == 0:
        return
    largest = x.max(axis=-1, keepdims=True)
    terms = np.exp(x - largest)
    total = terms.sum(axis=-1, keepdims=True, dtype=WIDE)
    y[...] = terms / total
