"""NumPy reference of VMIDDLE."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels_test_plugin.middle import VMiddleAttr


@implements(VMiddleAttr, name="refer")
def vmiddle(attr: VMiddleAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.add(x / 2, y / 2, out=z)
