"""The oracle of ROPE."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle


@oracle
def rope(attr: Any, x: AnyArray, cos: AnyArray, sin: AnyArray) -> list[AnyArray]:
    y = np.zeros_like(x)
    for i in range(attr.half):
        first, second = (2 * i, 2 * i + 1) if attr.interleaved else (i, i + attr.half)
        y[..., first] = x[..., first] * cos[:, i] - x[..., second] * sin[:, i]
        y[..., second] = x[..., second] * cos[:, i] + x[..., first] * sin[:, i]
    return [y]
