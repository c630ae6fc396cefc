"""The truth about ROPE."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import oracle


@oracle
def rope(attr: Any, x: AnyArray, cos: AnyArray, sin: AnyArray) -> list[AnyArray]:
    y = np.zeros_like(x)
    for i in range(attr.half):
        one, other = (2 * i, 2 * i + 1) if attr.interleaved else (i, i + attr.half)
        y[..., one] = x[..., one] * cos[:, i] - x[..., other] * sin[:, i]
        y[..., other] = x[..., other] * cos[:, i] + x[..., one] * sin[:, i]
    return [y]
