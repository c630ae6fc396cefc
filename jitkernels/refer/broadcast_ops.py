"""NumPy references of the elementwise kernels of a vector and something smaller."""

import numpy as np

from jitkernels.attrs.broadcast_ops import NCHW16CMulNCAttr, StrideScalAttr, VAddBiasAttr, VBroadcastAttr, VScalAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(VScalAttr, compiles=True)
def vscal(attr: VScalAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(a, x, out=y)


@implements(VAddBiasAttr, compiles=True)
def vadd_bias(attr: VAddBiasAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.add(a, x, out=y)


@implements(StrideScalAttr)
def stride_scal(attr: StrideScalAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        y[...] = x
        y[:: attr.stride] *= a


@implements(VBroadcastAttr, compiles=True)
def vbroadcast(attr: VBroadcastAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x


@implements(NCHW16CMulNCAttr, compiles=True)
def nchw16c_mul_nc(attr: NCHW16CMulNCAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(x, y, out=z)
