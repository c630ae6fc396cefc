"""The oracle of CUMSUM and HISTOGRAM: one element after another."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def cumsum(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.zeros_like(x)
    total = np.full(attr.rows, -0.0, WIDE)
    for j in range(attr.n):
        total = total + x[:, j]
        y[:, j] = total
    return [y]


@oracle
def histogram(attr: Any, x: AnyArray) -> list[AnyArray]:
    edges = np.linspace(attr.low, attr.high, attr.bins + 1).astype(attr.dtype).astype(x.dtype)
    below = np.searchsorted(np.sort(x[~np.isnan(x)]), edges)  # the number of elements below each edge
    below[-1] += (x == edges[-1]).sum()
    return [np.diff(below)]
