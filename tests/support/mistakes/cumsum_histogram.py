"""CUMSUM and HISTOGRAM, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "cumsum": {
        "one chain": ("x.astype(WIDE)", "x"),
        "the first is left out": ("np.cumsum(wide, axis=-1)", "np.cumsum(wide, axis=-1) - wide"),
        "across rows": ("axis=-1)", "axis=-1).reshape(-1).cumsum().reshape(x.shape)"),
        "columns are added": ("np.cumsum(wide, axis=-1)", "np.cumsum(wide, axis=0)"),
        "starts again every 64": (
            "np.cumsum(wide, axis=-1)",
            "np.concatenate([np.cumsum(wide[:, i : i + 64], axis=-1) for i in range(0, max(attr.n, 1), 64)], axis=-1)",
        ),
    },
    "histogram": {
        "the upper end is not counted": ("x <= edges[-1]", "x < edges[-1]"),
        "the lower end is not counted": ("x >= edges[0]", "x > edges[0]"),
        "what is outside counts": ("x[(x >= edges[0]) & (x <= edges[-1])]", "np.clip(x[x == x], edges[0], edges[-1])"),
        "bins end with their edges": ('side="right"', 'side="left"'),
        "the last is left out": ("np.minimum(place, attr.bins - 1)", "place[place < attr.bins - 1]"),
        "ends of the default": ("attr.low, attr.high", "0.0, 1.0"),
    },
}


def cumsum(attr: Any, x: AnyArray, y: AnyArray) -> None:
    wide = x.astype(WIDE)
    y[...] = np.cumsum(wide, axis=-1)


def histogram(attr: Any, x: AnyArray, counts: AnyArray) -> None:
    edges = np.linspace(attr.low, attr.high, attr.bins + 1).astype(attr.dtype)
    inside = x[(x >= edges[0]) & (x <= edges[-1])]
    place = np.searchsorted(edges, inside, side="right") - 1
    place = np.maximum(place, 0)
    counts[...] = np.bincount(np.minimum(place, attr.bins - 1), minlength=attr.bins)[: attr.bins]
