"""NumPy reference of SGD."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sgd import SgdAttr


@implements(SgdAttr)
def sgd(attr: SgdAttr, param: AnyArray, grad: AnyArray, rows: AnyArray, out: AnyArray) -> None:
    with np.errstate(all="ignore"):
        out[...] = param
        np.subtract.at(out, rows, grad.dtype.type(attr.lr) * grad)
