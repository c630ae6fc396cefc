"""NumPy reference of LOCAL_RESPONSE_NORM."""

import numpy as np

from jitkernels.attrs.local_response_norm import LocalResponseNormAttr, sums_of_neighbours
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(LocalResponseNormAttr)
def local_response_norm(attr: LocalResponseNormAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        base = attr.bias + attr.alpha / attr.size * sums_of_neighbours(x * x, attr.size)
        np.divide(x, base**attr.beta, out=y)
