"""NumPy reference of MATMUL_INT4."""

import numpy as np

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MatMulInt4Attr)
def matmul_int4(attr: MatMulInt4Attr, a: AnyArray, packed: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, c = rest
    both = np.stack([packed & 15, packed >> 4], axis=-1).reshape(attr.n, attr.groups, 2 * attr.half)
    with np.errstate(all="ignore"):
        weights = both.astype(c.dtype) - (zero[0].astype(c.dtype)[..., np.newaxis] if zero else c.dtype.type(8))
        weights *= scale[..., np.newaxis]
        np.matmul(a, weights.reshape(attr.n, attr.k).T, out=c)
