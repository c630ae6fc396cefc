"""The truth about MATMUL_INT8."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul_int8(
    attr: Any, a: AnyArray, b: AnyArray, a_scale: Any = None, b_scale: Any = None
) -> list[AnyArray]:
    """Sums of products of bytes are exact in double."""
    sums = a.astype(np.float64) @ (b.T if attr.trans_b else b).astype(np.float64)
    if not attr.scaled:
        return [sums.astype(np.int64).astype(np.int32)]
    # The product of scales is rounded by definition: once, and to infinity where it is too large.
    factors = a_scale.astype(attr.dtype)[:, np.newaxis] * b_scale.astype(attr.dtype)
    return [sums.astype(WIDE) * factors.astype(WIDE)]
