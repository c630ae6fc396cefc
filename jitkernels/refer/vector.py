"""NumPy references of the elementwise kernels."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector import VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.compiler.ir import special_functions


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
        y[...] = special_functions.sigmoid(x)
