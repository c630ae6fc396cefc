"""NumPy reference of ROPE."""

import numpy as np

from jitkernels.attrs.rope import RopeAttr, rotated
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(RopeAttr)
def rope(attr: RopeAttr, x: AnyArray, cos: AnyArray, sin: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        y[...] = rotated(x, cos, sin, interleaved=attr.interleaved)
