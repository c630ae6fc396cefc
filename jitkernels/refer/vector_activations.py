"""NumPy references of the elementwise activations."""

import math

import numpy as np

from jitkernels.attrs.vector_activations import SwigluAttr, VGeluAttr, VSiluAttr, VSoftplusAttr
from jitkernels.graph import special
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(VGeluAttr, compiles=True)
def vgelu(attr: VGeluAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        if attr.form == "erf":
            np.multiply(0.5 * x, special.erfc(x * -math.sqrt(0.5)), out=y)
        else:
            twice = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
            np.multiply(x, special.sigmoid(twice), out=y)  # (1 + tanh(u)) / 2 is sigmoid(2 * u)


@implements(VSiluAttr, compiles=True)
def vsilu(attr: VSiluAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(x, special.sigmoid(x), out=y)


@implements(VSoftplusAttr, compiles=True)
def vsoftplus(attr: VSoftplusAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        y[...] = special.softplus(x)


@implements(SwigluAttr, compiles=True)
def swiglu(attr: SwigluAttr, a: AnyArray, b: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(a * special.sigmoid(a), b, out=y)
