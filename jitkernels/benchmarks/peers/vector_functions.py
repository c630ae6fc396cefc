"""Peers of the elementary functions in NumPy, numexpr, SciPy and torch."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_functions as schemas
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, ordinary_calls, peer
from jitkernels.benchmarks.peers.fused_expressions import elementwise
from jitkernels.benchmarks.peers.vector import products, unary

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any, out: Any = None) -> Any:
    """Compute the error function of each element with Python's math library, as NumPy has none."""
    array = np.asarray(x)
    kind = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
    result = np.asarray(_erf(array)).astype(kind)
    if out is None:
        return result
    np.copyto(out, result)
    return out


elementwise(schemas.VTanhAttr, np.tanh, "tanh(x)", lambda torch, x, y: partial(torch.tanh, x, out=y))
elementwise(schemas.VLogAttr, np.log, "log(x)", lambda torch, x, y: partial(torch.log, x, out=y))
elementwise(schemas.VErfAttr, erf, None, lambda torch, x, y: partial(torch.erf, x, out=y), compiled={"": "erf(x)"})
elementwise(schemas.VSinAttr, np.sin, "sin(x)", lambda torch, x, y: partial(torch.sin, x, out=y))
elementwise(schemas.VCosAttr, np.cos, "cos(x)", lambda torch, x, y: partial(torch.cos, x, out=y))
elementwise(schemas.VPowAttr, np.power, "x ** y", lambda torch, x, y, z: partial(torch.pow, x, y, out=z))

for _schema in (schemas.VTanhAttr, schemas.VLogAttr, schemas.VErfAttr, schemas.VSinAttr, schemas.VCosAttr):
    ordinary_calls(_schema)(unary)


@ordinary_calls(schemas.VPowAttr)
def powers(elements: int) -> Iterator[OrdinaryCall]:
    """Return calls without integer powers, most of which overflow in NumPy's integer types."""
    for call in products(elements):
        if np.result_type(*map(np.asarray, call.arguments[:2])).kind == "f":
            yield call


@peer(schemas.VErfAttr, name="scipy")
def scipy_erf(attr: schemas.VErfAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import erf as of_scipy

    return partial(of_scipy, x, y)
