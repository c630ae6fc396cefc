"""NumPy references of the elementwise kernels."""

import numpy as np

from jitkernels.attrs.vector import VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(VMulAttr, compiles=True)
def vmul(attr: VMulAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(x, y, out=z)


@implements(VExpAttr, compiles=True)
def vexp(attr: VExpAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.exp(x, out=y)


@implements(VSigmoidAttr, compiles=True)
def vsigmoid(attr: VSigmoidAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        small = np.exp(
            -np.abs(x)
        )  # the exponential that cannot overflow, so that subnormal results are right
        np.divide(np.where(x < 0, small, x.dtype.type(1)), 1 + small, out=y)
