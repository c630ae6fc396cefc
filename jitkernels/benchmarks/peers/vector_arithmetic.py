"""Peers of the elementwise kernels of a few instructions in NumPy, numexpr, numba, JAX and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_arithmetic as schemas
from jitkernels.attrs.vector import VectorAttr
from jitkernels.benchmarks.peers import OrdinaryCall, ordinary_calls
from jitkernels.benchmarks.peers.array_layouts import values
from jitkernels.benchmarks.peers.fused_expressions import elementwise
from jitkernels.benchmarks.peers.vector import products, unary


def add_relu(x: Any, y: Any, out: Any = None) -> Any:
    return np.maximum(np.add(x, y), 0, out=out)


def relu(x: Any, out: Any = None) -> Any:
    return np.maximum(x, 0, out=out)


def copy(x: Any, out: Any = None) -> Any:
    """Copy as floating-point numbers, as the kernels compute integers in float64."""
    if out is None:
        array = np.asarray(x)
        return np.array(array, array.dtype if array.dtype.kind == "f" else np.float64)
    np.copyto(out, x)
    return out


def clip(x: Any, low: float = 0.0, high: float = 1.0, out: Any = None) -> Any:
    return np.clip(x, low, high, out=out)


def reciprocal_root(x: Any, out: Any = None) -> Any:
    return np.divide(1, np.sqrt(x), out=out)


elementwise(schemas.VAddAttr, np.add, "x + y", lambda torch, x, y, z: partial(torch.add, x, y, out=z))
elementwise(schemas.VSubAttr, np.subtract, "x - y", lambda torch, x, y, z: partial(torch.sub, x, y, out=z))
elementwise(
    schemas.VAddReluAttr,
    add_relu,
    "where(x + y > 0, x + y, 0)",
    lambda torch, x, y, z: partial(lambda x, y, z: torch.add(x, y, out=z).relu_(), x, y, z),
)
elementwise(schemas.VReluAttr, relu, "where(x > 0, x, 0)", lambda torch, x, y: partial(torch.clamp_min, x, 0, out=y))
elementwise(schemas.VIdentityAttr, copy, "x", lambda _, x, y: partial(y.copy_, x))
elementwise(schemas.VCopyAttr, copy, "x", lambda _, x, y: partial(y.copy_, x))
elementwise(schemas.VSquareAttr, np.square, "x * x", lambda torch, x, y: partial(torch.square, x, out=y))
elementwise(
    schemas.VClipAttr,
    clip,
    "where(x < low, low, where(x > high, high, x))",
    lambda torch, x, y, low, high: partial(torch.clamp, x, low, high, out=y),
)
elementwise(schemas.VSqrtAttr, np.sqrt, "sqrt(x)", lambda torch, x, y: partial(torch.sqrt, x, out=y))
elementwise(schemas.VRsqrtAttr, reciprocal_root, "1 / sqrt(x)", lambda torch, x, y: partial(torch.rsqrt, x, out=y))

BINARY: tuple[type[VectorAttr], ...] = (schemas.VAddAttr, schemas.VAddReluAttr)
UNARY: tuple[type[VectorAttr], ...] = (
    schemas.VReluAttr, schemas.VIdentityAttr, schemas.VCopyAttr, schemas.VSquareAttr, schemas.VSqrtAttr,
    schemas.VRsqrtAttr,
)  # fmt: skip
for _schema in BINARY:
    ordinary_calls(_schema)(products)
for _schema in UNARY:
    ordinary_calls(_schema)(unary)


@ordinary_calls(schemas.VSubAttr)
def differences(elements: int) -> Iterator[OrdinaryCall]:
    """Return calls without bools, which NumPy cannot subtract."""
    yield from (call for call in products(elements) if "bool" not in call.form)


@ordinary_calls(schemas.VClipAttr)
def clipped(elements: int) -> Iterator[OrdinaryCall]:
    yield from (call for call in unary(elements) if len(call.arguments) == 1)  # the second is a bound
    x = values(elements)
    yield OrdinaryCall("in place", (x,), {"out": x})
    yield OrdinaryCall("bounds by position", (x, 0.75, 1.25))
    yield OrdinaryCall("bounds by name", (x,), {"low": 0.75, "high": 1.25})
    yield OrdinaryCall("one bound", (x,), {"high": 6.0})
    yield OrdinaryCall("bounds, out", (x,), {"low": 0.75, "high": 1.25, "out": np.zeros_like(x)})
    yield OrdinaryCall("bounds that are ints", (x,), {"low": 0, "high": 1})
    yield OrdinaryCall("bounds and float64", (values(elements, "float64"),), {"low": 0.75, "high": 1.25})
