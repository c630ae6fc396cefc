"""The oracle of CDIST."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, total

MOST = 1 << 20
"""Terms in memory at a time."""


@oracle
def cdist(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    distances = np.zeros((attr.m, attr.n), WIDE)
    some = max(MOST // max(attr.m * attr.d, 1), 1)
    for j in range(0, attr.n, some):
        part = y[j : j + some]
        if attr.metric in ("dot", "cosine"):
            distances[:, j : j + some] = total(x[:, np.newaxis] * part, -1)
        else:
            distances[:, j : j + some] = total(np.square(x[:, np.newaxis] - part), -1)
    if attr.metric == "cosine":
        lengths = [np.sqrt(total(np.square(matrix), -1)) for matrix in (x, y)]
        return [np.maximum(1 - distances / lengths[0][:, np.newaxis] / lengths[1], 0)]
    return [np.sqrt(distances) if attr.metric == "euclidean" else distances]
