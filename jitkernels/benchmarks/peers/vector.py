"""Peers of VMUL, VEXP and VSIGMOID in NumPy, numexpr, SciPy, numba, JAX and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector import VectorAttr, VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import (
    DTYPES,
    LAYOUTS,
    in_dtypes,
    in_layouts,
    reversed_,
    shape,
    strided,
    transposed,
    values,
    with_outs,
)
from jitkernels.benchmarks.peers.fused_expressions import elementwise


def sigmoid(x: Any, out: Any = None) -> Any:
    return np.divide(1, 1 + np.exp(np.negative(x)), out)


elementwise(VMulAttr, np.multiply, "x * y", lambda torch, x, y, z: partial(torch.mul, x, y, out=z))
elementwise(VExpAttr, np.exp, "exp(x)", lambda torch, x, y: partial(torch.exp, x, out=y))
elementwise(VSigmoidAttr, sigmoid, "1 / (1 + exp(-x))", lambda torch, x, y: partial(torch.sigmoid, x, out=y))


@peer(VSigmoidAttr, name="scipy")
def scipy_logistic(attr: VectorAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import expit

    return partial(expit, x, y)


@ordinary_calls(VMulAttr)
def products(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    row, column = values(y.shape[1]), values((y.shape[0], 1))
    yield OrdinaryCall("1-D", (x, np.ones_like(x)))
    for dimensions in (2, 3, 4, 5):
        cube = values(shape(elements, dimensions))
        yield OrdinaryCall(f"{dimensions}-D", (cube, cube.copy()))
    for dtype in DTYPES:
        yield OrdinaryCall(dtype, (x.astype(dtype), x.astype(dtype)))
        yield OrdinaryCall(f"float32 and {dtype}", (x, x.astype(dtype)))
    for dtype in ("float32", *DTYPES):
        line = values(3 * elements, dtype)
        yield OrdinaryCall(f"every second {dtype}", (line[::2][:elements], line[1::2][:elements]))
        yield OrdinaryCall(f"every third {dtype}", (line[::3], line[1::3]))
        yield OrdinaryCall(f"reversed {dtype} of one dimension", (line[:elements][::-1], line[:elements]))
    for dtype in (name for name in DTYPES if np.dtype(name).kind != "f"):
        whole = values(y.shape, dtype)
        yield OrdinaryCall(f"{dtype} by float", (x.astype(dtype), 1.5))
        yield OrdinaryCall(f"{dtype} and bool", (whole, whole.astype(bool)))
        yield OrdinaryCall(f"both strided {dtype}", (strided(whole), strided(whole)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(f"both {name}", (form(y), form(y)))
        yield OrdinaryCall(f"second {name}", (y, form(y)))
    yield OrdinaryCall("both transposed", (y.T, y.T))
    yield OrdinaryCall("second transposed", (y, transposed(y)))
    yield OrdinaryCall("x * x", (x, x))
    scalars = {"float": 2.0, "int": 3, "bool": True, "np.float32": np.float32(2), "np.float64": np.float64(2)}
    for name, scalar in {**scalars, "0-d array": np.array(2, np.float32)}.items():
        yield OrdinaryCall(f"by {name}", (x, scalar))
        yield OrdinaryCall(f"{name} first", (scalar, x))
    yield OrdinaryCall("row broadcast", (y, row))
    yield OrdinaryCall("column broadcast", (y, column))
    yield OrdinaryCall("outer", (column, row))
    yield OrdinaryCall("two scalars", (2.0, 3.0))
    yield OrdinaryCall("two 0-d arrays", (np.array(2, np.float32), np.array(3, np.float32)))
    yield OrdinaryCall("empty", (x[:0], x[:0]))
    yield OrdinaryCall("empty, 2-D", (y[:0], y[:0]))
    yield from with_outs((y, np.ones_like(y)), 2, y)
    yield OrdinaryCall("scalar, out", (x, 1.0), {"out": np.zeros_like(x)})
    yield OrdinaryCall("row broadcast, out", (y, row), {"out": np.zeros_like(y)})
    yield OrdinaryCall("in place", (x, np.ones_like(x), x))
    room = values(elements + 1)
    yield OrdinaryCall("out overlaps", (room[:-1], np.ones_like(x)), {"out": room[1:]})


@ordinary_calls(VExpAttr)
@ordinary_calls(VSigmoidAttr)
def unary(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    yield OrdinaryCall("1-D", (x,))
    for dimensions in (2, 3, 4, 5):
        yield OrdinaryCall(f"{dimensions}-D", (values(shape(elements, dimensions)),))
    yield from in_dtypes(x, bools=False)
    yield from in_layouts(y)
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("every second", (values(2 * elements)[::2],))
    yield OrdinaryCall("strided float64", (strided(values(elements, "float64")),))
    yield OrdinaryCall("reversed int64", (reversed_(values(elements, "int64")),))
    yield OrdinaryCall("broadcast", (np.broadcast_to(x[:1], elements),))
    for name, scalar in {"float": 1.5, "int": 2, "np.float32": np.float32(1), "0-d": np.array(1, np.float32)}.items():
        yield OrdinaryCall(name, (scalar,))
    yield OrdinaryCall("empty", (x[:0],))
    yield OrdinaryCall("empty, 2-D", (y[:0],))
    yield from with_outs((y,), 1, y)
    fixed = np.full(elements, np.inf, np.float32)  # the fixed point of repeated exponentials
    yield OrdinaryCall("in place", (fixed, fixed))
    room = np.full(elements + 1, np.inf, np.float32)
    yield OrdinaryCall("out overlaps", (room[:-1],), {"out": room[1:]})
