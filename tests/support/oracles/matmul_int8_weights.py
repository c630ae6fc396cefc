"""The oracle of MATMUL_INT8_WEIGHTS."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul_int8_weights(attr: Any, a: AnyArray, q: AnyArray, scale: AnyArray, zero: Any = None) -> list[AnyArray]:
    """Multiply each group separately."""
    c = np.zeros((attr.m, attr.n), WIDE)
    for g in range(attr.groups):
        weights = q[:, g].astype(WIDE) - (0 if zero is None else zero[:, g, np.newaxis].astype(WIDE))
        left = a[:, g * attr.size : (g + 1) * attr.size]
        c += left @ (weights * scale[:, g, np.newaxis].astype(WIDE)).T
    return [c]
