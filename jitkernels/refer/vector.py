"""NumPy references of the elementwise kernels."""

import numpy as np

from jitkernels.attrs.vector import VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(VMulAttr)
def vmul(attr: VMulAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    np.multiply(x, y, out=z)


@implements(VExpAttr)
def vexp(attr: VExpAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.exp(x, out=y)


@implements(VSigmoidAttr)
def vsigmoid(attr: VSigmoidAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.divide(1, 1 + np.exp(-x), out=y)
