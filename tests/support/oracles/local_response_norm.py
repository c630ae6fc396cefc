"""The oracle of LOCAL_RESPONSE_NORM: the formula, channel by channel."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def local_response_norm(attr: Any, x: AnyArray) -> list[AnyArray]:
    sums = np.zeros_like(x)
    for j in range(attr.channels):
        near = x[:, max(j - (attr.size - 1) // 2, 0) : j + attr.size // 2 + 1]
        sums[:, j] = np.square(near).sum(axis=1)
    return [x / (WIDE(attr.bias) + WIDE(attr.alpha) / attr.size * sums) ** WIDE(attr.beta)]
