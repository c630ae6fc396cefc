"""NumPy references of the elementwise kernels that are a few instructions."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector_arithmetic import (
    VAddAttr,
    VAddReluAttr,
    VClipAttr,
    VCopyAttr,
    VIdentityAttr,
    VReluAttr,
    VRsqrtAttr,
    VSqrtAttr,
    VSquareAttr,
    VSubAttr,
)


@implements(VAddAttr, compiles=True)
def vadd(attr: VAddAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.add(x, y, out=z)


@implements(VSubAttr, compiles=True)
def vsub(attr: VSubAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.subtract(x, y, out=z)


@implements(VAddReluAttr, compiles=True)
def vadd_relu(attr: VAddReluAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.maximum(x + y, 0, out=z)


@implements(VReluAttr, compiles=True)
def vrelu(attr: VReluAttr, x: AnyArray, y: AnyArray) -> None:
    np.maximum(x, 0, out=y)


@implements(VIdentityAttr, compiles=True)
def videntity(attr: VIdentityAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x


@implements(VCopyAttr, compiles=True)
def vcopy(attr: VCopyAttr, x: AnyArray, y: AnyArray) -> None:
    np.copyto(y, x)


@implements(VSquareAttr, compiles=True)
def vsquare(attr: VSquareAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.square(x, out=y)


@implements(VClipAttr, compiles=True)
def vclip(attr: VClipAttr, x: AnyArray, y: AnyArray) -> None:
    np.clip(x, attr.low, attr.high, out=y)


@implements(VSqrtAttr, compiles=True)
def vsqrt(attr: VSqrtAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sqrt(x, out=y)


@implements(VRsqrtAttr, compiles=True)
def vrsqrt(attr: VRsqrtAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.divide(1, np.sqrt(x), out=y)
