"""NumPy reference of STRIDE_ASUM."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.stride_asum import StrideASumAttr


@implements(StrideASumAttr)
def stride_asum(attr: StrideASumAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sum(np.abs(x[:, :: attr.stride]), axis=1, out=y)
