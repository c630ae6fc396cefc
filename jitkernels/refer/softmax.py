"""NumPy reference of SOFTMAX."""

import numpy as np

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(SoftmaxAttr, compiles=True)
def softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> None:
    if attr.rows == 0:
        return
    with np.errstate(all="ignore"):
        exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
        np.divide(exponentials, exponentials.sum(axis=-1, keepdims=True), out=y)
