"""Peers of the elementwise activations in NumPy, numexpr and torch."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_activations as schemas
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import values
from jitkernels.benchmarks.peers.fused_expressions import elementwise
from jitkernels.benchmarks.peers.vector import products, unary
from jitkernels.benchmarks.peers.vector_functions import erf

ROOT = math.sqrt(2 / math.pi)


def silu(x: Any, out: Any = None) -> Any:
    return np.divide(x, 1 + np.exp(np.subtract(0, x)), out=out)  # NumPy cannot negate bools


def softplus(x: Any, out: Any = None) -> Any:
    return np.logaddexp(x, 0, out=out)


def swiglu(a: Any, b: Any, out: Any = None) -> Any:
    return np.multiply(silu(a), b, out=out)


def gelu(x: Any, form: str = "erf", out: Any = None) -> Any:
    x = np.asarray(x)
    if form == "erf":
        return np.multiply(0.5 * x, 1 + erf(x * math.sqrt(0.5)), out=out)
    return np.multiply(0.5 * x, 1 + np.tanh(ROOT * (x + 0.044715 * x**3)), out=out)


elementwise(
    schemas.VSiluAttr, silu, "x / (1 + exp(-x))", lambda torch, x, y: partial(torch.ops.aten.silu.out, x, out=y)
)
elementwise(
    schemas.VSoftplusAttr,
    softplus,
    "where(x > 0, x, 0) + log1p(exp(-where(x > 0, x, -x)))",
    lambda torch, x, y: partial(torch.ops.aten.softplus.out, x, out=y),
)
elementwise(
    schemas.SwigluAttr, swiglu, "a / (1 + exp(-a)) * b", lambda torch, a, b, y: partial(_torch_swiglu, torch, a, b, y)
)
elementwise(
    schemas.VGeluAttr,
    gelu,
    None,
    lambda torch, x, y, form: partial(torch.ops.aten.gelu.out, x, approximate="none" if form == "erf" else form, out=y),
    compiled={
        "erf": "0.5 * x * (1 + erf(x * 0.7071067811865476))",
        "tanh": "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
    },
)


def _torch_swiglu(torch: Any, a: Any, b: Any, y: Any) -> None:
    """Use two calls, as models do."""
    torch.ops.aten.silu.out(a, out=y)
    torch.mul(y, b, out=y)


@peer(schemas.VGeluAttr, name="numexpr")
def numexpr_gelu(attr: schemas.VGeluAttr, x: AnyArray, y: AnyArray) -> Bound | None:
    """Use the tanh formula: numexpr has no error function."""
    if attr.form == "erf":
        return None
    import numexpr

    numbers = {"half": x.dtype.type(0.5), "root": x.dtype.type(ROOT), "cubic": x.dtype.type(0.044715)}
    text = "half * x * (1 + tanh(root * (x + cubic * x * x * x)))"
    return partial(numexpr.evaluate, text, local_dict={"x": x, **numbers}, out=y)


for _schema in (schemas.VSiluAttr, schemas.VSoftplusAttr):
    ordinary_calls(_schema)(unary)
ordinary_calls(schemas.SwigluAttr)(products)


@ordinary_calls(schemas.VGeluAttr)
def gelus(elements: int) -> Iterator[OrdinaryCall]:
    yield from (call for call in unary(elements) if len(call.arguments) == 1)  # the second is the form
    x = values(elements)
    yield OrdinaryCall("tanh", (x,), {"form": "tanh"})
    yield OrdinaryCall("tanh by position", (x, "tanh"))
    yield OrdinaryCall("tanh, out", (x, "tanh"), {"out": np.zeros_like(x)})
