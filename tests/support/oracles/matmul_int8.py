"""The oracle of MATMUL_INT8."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul_int8(attr: Any, a: AnyArray, b: AnyArray, a_scale: Any = None, b_scale: Any = None) -> list[AnyArray]:
    """Sum in double, where sums of products of bytes are exact."""
    sums = a.astype(np.float64) @ (b.T if attr.trans_b else b).astype(np.float64)
    if not attr.scaled:
        return [sums.astype(np.int64).astype(np.int32)]
    # By definition the product of scales is rounded once, to infinity on overflow.
    factors = a_scale.astype(attr.dtype)[:, np.newaxis] * b_scale.astype(attr.dtype)
    return [sums.astype(WIDE) * factors.astype(WIDE)]
