"""NumPy reference of SGD."""

import numpy as np

from jitkernels.attrs.sgd import SgdAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(SgdAttr)
def sgd(attr: SgdAttr, param: AnyArray, grad: AnyArray, rows: AnyArray, out: AnyArray) -> None:
    with np.errstate(all="ignore"):
        out[...] = param
        np.subtract.at(out, rows, grad.dtype.type(attr.lr) * grad)
