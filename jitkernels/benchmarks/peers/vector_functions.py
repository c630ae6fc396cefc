"""What NumPy, numexpr, SciPy and torch have for the elementary functions."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_functions as rows
from jitkernels.peers import Bound, OrdinaryCall, ordinary_calls, peer
from jitkernels.peers.expressions import elementwise
from jitkernels.peers.vector import products, unary
from jitkernels.signature import AnyArray

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any, out: Any = None) -> Any:
    """The error function of each element, which NumPy has not: that of Python's own library."""
    array = np.asarray(x)
    kind = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
    found = np.asarray(_erf(array)).astype(kind)
    if out is None:
        return found
    np.copyto(out, found)
    return out


elementwise(rows.VTanhAttr, np.tanh, "tanh(x)", lambda torch, x, y: partial(torch.tanh, x, out=y))
elementwise(rows.VLogAttr, np.log, "log(x)", lambda torch, x, y: partial(torch.log, x, out=y))
elementwise(
    rows.VErfAttr, erf, None, lambda torch, x, y: partial(torch.erf, x, out=y), compiled={"": "erf(x)"}
)
elementwise(rows.VSinAttr, np.sin, "sin(x)", lambda torch, x, y: partial(torch.sin, x, out=y))
elementwise(rows.VCosAttr, np.cos, "cos(x)", lambda torch, x, y: partial(torch.cos, x, out=y))
elementwise(rows.VPowAttr, np.power, "x ** y", lambda torch, x, y, z: partial(torch.pow, x, y, out=z))

for _row in (rows.VTanhAttr, rows.VLogAttr, rows.VErfAttr, rows.VSinAttr, rows.VCosAttr):
    ordinary_calls(_row)(unary)


@ordinary_calls(rows.VPowAttr)
def powers(elements: int) -> Iterator[OrdinaryCall]:
    """NumPy raises integers to integers in their own type, where most of these powers overflow."""
    for call in products(elements):
        if np.result_type(*map(np.asarray, call.arguments[:2])).kind == "f":
            yield call


@peer(rows.VErfAttr, name="scipy")
def scipy_erf(attr: rows.VErfAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import erf as of_scipy

    return partial(of_scipy, x, y)
