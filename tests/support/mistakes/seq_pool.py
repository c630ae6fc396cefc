"""SEQ_POOL, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "seq_pool": {
        "mean divided by h + 1 for long columns": ('"mean": attr.h', '"mean": attr.h + (attr.h > 1000)'),
        "divided by h instead of its root": ("np.sqrt(WIDE(attr.h))", "attr.h"),
        "sum in one chain": ("x.sum(axis=0, dtype=WIDE)", "np.cumsum(x, axis=0, dtype=x.dtype)[-1] if attr.h else 0"),
        "maximum begins at zero": ("x.max(axis=0)", "np.maximum(x.max(axis=0), 0)"),
        "maximum begins at the least positive number": (
            "x.max(axis=0)",
            "np.maximum(x.max(axis=0), np.finfo(x.dtype).tiny)",
        ),
        "maximum drops NaN": ("x.max(axis=0)", "np.fmax.reduce(x, axis=0)"),
        "maximum without the last row": ("x.max(axis=0)", "x[: max(1, attr.h - 1)].max(axis=0)"),
        "sum without the first row": ("x.sum(", "x[1:].sum("),
        "last column is forgotten": ("y[...] = total / divisor", "y[:-1] = (total / divisor)[:-1]"),
        "adds pairs and loses the odd row": ("x.sum(", "x[: attr.h - attr.h % 2].sum("),
    }
}


def seq_pool(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if attr.pool == "max":
        y[...] = x.max(axis=0)
        return
    total = x.sum(axis=0, dtype=WIDE)
    divisor = {"sum": 1, "mean": attr.h, "sqrt": np.sqrt(WIDE(attr.h))}[attr.pool]
    y[...] = total / divisor
