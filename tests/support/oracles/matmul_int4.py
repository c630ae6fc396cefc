"""The oracle of MATMUL_INT4."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul_int4(attr: Any, a: AnyArray, packed: AnyArray, scale: AnyArray, zero: Any = None) -> list[AnyArray]:
    """Multiply each group separately: the low nibbles of its bytes come first, then the high ones."""
    c = np.zeros((attr.m, attr.n), WIDE)
    for g in range(attr.groups):
        middle = 8 if zero is None else zero[:, g, np.newaxis].astype(WIDE)
        left = a[:, 2 * g * attr.half : 2 * (g + 1) * attr.half]
        factor = scale[:, g, np.newaxis].astype(WIDE)
        low, high = (packed[:, g] % 16).astype(WIDE) - middle, (packed[:, g] // 16).astype(WIDE) - middle
        c += left[:, 0::2] @ (low * factor).T + left[:, 1::2] @ (high * factor).T
    return [c]
