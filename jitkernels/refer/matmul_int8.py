"""NumPy reference of MATMUL_INT8."""

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MatMulInt8Attr)
def matmul_int8(attr: MatMulInt8Attr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *scales, c = rest
    # Exact in double, and a hundred times as fast as NumPy's integer products.
    exact = a.astype(np.float64) @ (b.T if attr.trans_b else b).astype(np.float64)
    sums = exact.astype(np.int64).astype(np.int32)
    if not scales:
        c[...] = sums
        return
    a_scale, b_scale = scales
    with np.errstate(all="ignore"):
        factors = a_scale.astype(attr.dtype)[:, np.newaxis] * b_scale.astype(attr.dtype)  # rounded by definition
        c[...] = sums.astype(c.dtype) * factors
