"""Peers of the elementary functions in NumPy, numexpr, SciPy and torch."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_functions as rows
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


elementwise(rows.VTanhAttr, np.tanh, "tanh(x)", lambda torch, x, y: partial(torch.tanh, x, out=y))
elementwise(rows.VLogAttr, np.log, "log(x)", lambda torch, x, y: partial(torch.log, x, out=y))
elementwise(rows.VErfAttr, erf, None, lambda torch, x, y: partial(torch.erf, x, out=y), compiled={"": "erf(x)"})
elementwise(rows.VSinAttr, np.sin, "sin(x)", lambda torch, x, y: partial(torch.sin, x, out=y))
elementwise(rows.VCosAttr, np.cos, "cos(x)", lambda torch, x, y: partial(torch.cos, x, out=y))
elementwise(rows.VPowAttr, np.power, "x ** y", lambda torch, x, y, z: partial(torch.pow, x, y, out=z))

for _row in (rows.VTanhAttr, rows.VLogAttr, rows.VErfAttr, rows.VSinAttr, rows.VCosAttr):
    ordinary_calls(_row)(unary)


@ordinary_calls(rows.VPowAttr)
def powers(elements: int) -> Iterator[OrdinaryCall]:
    """Return calls without integer powers, most of which overflow in NumPy's integer types."""
    for call in products(elements):
        if np.result_type(*map(np.asarray, call.arguments[:2])).kind == "f":
            yield call


@peer(rows.VErfAttr, name="scipy")
def scipy_erf(attr: rows.VErfAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import erf as of_scipy

    return partial(of_scipy, x, y)
