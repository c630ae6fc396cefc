"""NumPy reference of ARGSORT."""

import numpy as np

from jitkernels.attrs.argsort import ArgsortAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(ArgsortAttr)
def argsort(attr: ArgsortAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.argsort(x, axis=-1, kind="stable")
