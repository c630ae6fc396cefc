"""NumPy reference of STRIDE_ASUM."""

import numpy as np

from jitkernels.attrs.stride_asum import StrideASumAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(StrideASumAttr)
def stride_asum(attr: StrideASumAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sum(np.abs(x[:, :: attr.stride]), axis=1, out=y)
