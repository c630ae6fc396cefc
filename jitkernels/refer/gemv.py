"""NumPy reference of GEMV."""

import numpy as np

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(GEMVAttr)
def gemv(attr: GEMVAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    matrix = a.T if attr.trans else a
    with np.errstate(all="ignore"):
        if attr.beta == 0:
            np.matmul(matrix, x, out=y)
        else:
            y[...] = matrix @ x + y.dtype.type(attr.beta) * y
