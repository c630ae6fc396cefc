"""NumPy reference of MATMUL_INT8_WEIGHTS."""

import numpy as np

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MatMulInt8WeightsAttr)
def matmul_int8_weights(
    attr: MatMulInt8WeightsAttr, a: AnyArray, q: AnyArray, scale: AnyArray, *rest: AnyArray
) -> None:
    *zero, c = rest
    with np.errstate(all="ignore"):
        weights = q.astype(c.dtype)
        if zero:
            weights -= zero[0].astype(c.dtype)[..., np.newaxis]
        weights *= scale[..., np.newaxis]
        np.matmul(a, weights.reshape(attr.n, attr.k).T, out=c)
