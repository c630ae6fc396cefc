"""NumPy reference of MATMUL."""

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MatMulAttr)
def matmul(attr: MatMulAttr, a: AnyArray, b: AnyArray, c: AnyArray) -> None:
    left, right = a.T if attr.trans_a else a, b.T if attr.trans_b else b
    with np.errstate(all="ignore"):
        if attr.beta == 0:
            np.matmul(left, right, out=c)
        else:
            c[...] = left @ right + c.dtype.type(attr.beta) * c
