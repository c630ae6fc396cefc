"""NumPy references of the elementwise activations."""

import math

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector_activations import SwigluAttr, VGeluAttr, VSiluAttr, VSoftplusAttr
from jitkernels.compiler.ir import special_functions


@implements(VGeluAttr, compiles=True)
def vgelu(attr: VGeluAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        if attr.form == "erf":
            np.multiply(0.5 * x, special_functions.erfc(x * -math.sqrt(0.5)), out=y)
        else:
            twice = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
            np.multiply(x, special_functions.sigmoid(twice), out=y)  # (1 + tanh(u)) / 2 is sigmoid(2 * u)


@implements(VSiluAttr, compiles=True)
def vsilu(attr: VSiluAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(x, special_functions.sigmoid(x), out=y)


@implements(VSoftplusAttr, compiles=True)
def vsoftplus(attr: VSoftplusAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        y[...] = special_functions.softplus(x)


@implements(SwigluAttr, compiles=True)
def swiglu(attr: SwigluAttr, a: AnyArray, b: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.multiply(a * special_functions.sigmoid(a), b, out=y)
