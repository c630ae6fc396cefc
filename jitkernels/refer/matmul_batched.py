"""NumPy reference of MATMUL_BATCHED."""

import numpy as np

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(MatMulBatchedAttr)
def matmul_batched(attr: MatMulBatchedAttr, a: AnyArray, b: AnyArray, c: AnyArray) -> None:
    left, right = a.swapaxes(1, 2) if attr.trans_a else a, b.swapaxes(1, 2) if attr.trans_b else b
    with np.errstate(all="ignore"):
        np.matmul(left, right, out=c)
