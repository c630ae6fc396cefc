"""NumPy references of the elementwise elementary functions."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector_functions import VCosAttr, VErfAttr, VLogAttr, VPowAttr, VSinAttr, VTanhAttr
from jitkernels.compiler.ir import special_functions


@implements(VTanhAttr, compiles=True)
def vtanh(attr: VTanhAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.tanh(x, out=y)


@implements(VLogAttr, compiles=True)
def vlog(attr: VLogAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.log(x, out=y)


@implements(VErfAttr, compiles=True)
def verf(attr: VErfAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = special_functions.erf(x)


@implements(VSinAttr, compiles=True)
def vsin(attr: VSinAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sin(x, out=y)


@implements(VCosAttr, compiles=True)
def vcos(attr: VCosAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.cos(x, out=y)


@implements(VPowAttr, compiles=True)
def vpow(attr: VPowAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.power(x, y, out=z)
