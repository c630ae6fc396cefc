"""Peers of the broadcasting elementwise kernels in NumPy, numexpr and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import broadcast_ops as schemas
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import DTYPES, LAYOUTS, in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch
from jitkernels.benchmarks.peers.fused_expressions import elementwise


def stride_scal(a: Any, x: Any, stride: int = 1, out: Any = None) -> Any:
    """Copy `x` and scale every `stride`-th element."""
    if out is None:
        array = np.asarray(x)
        out = np.array(array, np.result_type(array, a if array.dtype.kind == "f" else np.float64))
    else:
        np.copyto(out, x)
    out.reshape(-1)[::stride] *= a
    return out


def vbroadcast(x: Any, h: int = 1, out: Any = None) -> Any:
    """Copy, since the result of `numpy.broadcast_to` is read-only."""
    row = np.asarray(x)
    if out is None:
        out = np.empty((h, row.size), row.dtype if row.dtype.kind == "f" else np.float64)
    np.copyto(out, row)
    return out


equivalent(schemas.StrideScalAttr)(stride_scal)
equivalent(schemas.VBroadcastAttr)(vbroadcast)
elementwise(schemas.VScalAttr, np.multiply, "a * x", lambda torch, a, x, y: partial(torch.mul, x, a, out=y))
elementwise(schemas.VAddBiasAttr, np.add, "a + x", lambda torch, a, x, y: partial(torch.add, x, a, out=y))
equivalent(schemas.NCHW16CMulNCAttr)(np.multiply)


@ordinary_calls(schemas.VScalAttr)
@ordinary_calls(schemas.VAddBiasAttr)
def scaled(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    numbers = {"float": 2.0, "int": 3, "bool": True, "np.float32": np.float32(2), "np.float64": np.float64(2)}
    arrays = {"0-d array": np.array(2, np.float32), "array of one": np.array([2], np.float32)}
    for name, number in {**arrays, **numbers}.items():
        yield OrdinaryCall(name, (number, x))
    for dimensions in (2, 3, 4):
        yield OrdinaryCall(f"{dimensions}-D", (2.0, values(shape(elements, dimensions))))
    for dtype in DTYPES:
        yield OrdinaryCall(f"float and {dtype}", (1.5, x.astype(dtype)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (2.0, form(y)))
    yield OrdinaryCall("transposed", (2.0, y.T))
    yield OrdinaryCall("every second", (2.0, values(2 * elements)[::2]))
    yield OrdinaryCall("two floats", (2.0, 3.0))
    yield OrdinaryCall("two 0-d arrays", (np.array(2, np.float32), np.array(3, np.float32)))
    yield OrdinaryCall("empty", (2.0, x[:0]))
    yield OrdinaryCall("empty, 2-D", (2.0, y[:0]))
    yield from with_outs((2.0, y), 2, y)
    yield OrdinaryCall("in place", (1.0, x, x))
    room = values(elements + 1)
    yield OrdinaryCall("out overlaps", (1.0, room[:-1]), {"out": room[1:]})


@ordinary_calls(schemas.StrideScalAttr)
def strided_scales(elements: int) -> Iterator[OrdinaryCall]:
    x = values(elements)
    yield OrdinaryCall("1-D", (np.array(2, np.float32), x))
    for stride in (1, 2, 3, 10, 100):
        yield OrdinaryCall(f"stride {stride}", (2.0, x, stride))
    yield OrdinaryCall("by name", (2.0, x), {"stride": 4})
    yield OrdinaryCall("np.int64", (2.0, x, np.int64(4)))
    for name, number in {"int": 3, "0-d array": np.array(2, np.float32), "np.float64": np.float64(2)}.items():
        yield OrdinaryCall(name, (number, x, 2))
    for dtype in DTYPES:
        yield OrdinaryCall(f"float and {dtype}", (1.5, x.astype(dtype), 3))
    yield OrdinaryCall("every second", (2.0, values(2 * elements)[::2], 3))
    yield OrdinaryCall("reversed", (2.0, x[::-1], 3))
    yield OrdinaryCall("empty", (2.0, x[:0], 3))
    yield OrdinaryCall("out", (2.0, x, 3), {"out": np.zeros_like(x)})
    yield OrdinaryCall("out by position", (2.0, x, 3, np.zeros_like(x)))
    yield OrdinaryCall("out=float64", (2.0, x, 3), {"out": np.zeros(elements)})
    yield OrdinaryCall("in place", (1.0, x, 3, x))


@ordinary_calls(schemas.VBroadcastAttr)
def repeated(elements: int) -> Iterator[OrdinaryCall]:
    h, w = shape(elements, 2)
    x = values(w)
    yield OrdinaryCall("one row by default", (x,))
    yield OrdinaryCall("rows", (x, h))
    yield OrdinaryCall("by name", (x,), {"h": h})
    yield OrdinaryCall("one row", (values(elements), 1))
    yield OrdinaryCall("one column", (values(1), elements))
    yield from in_dtypes(x, fixed=(h,))
    yield OrdinaryCall("strided", (values(2 * w)[::2], h))
    yield OrdinaryCall("reversed", (x[::-1], h))
    yield OrdinaryCall("list", (x.tolist(), h))
    yield OrdinaryCall("empty", (x[:0], h))
    yield OrdinaryCall("no rows", (x, 0))
    result = np.zeros((h, w), np.float32)
    yield from with_outs((x, h), 2, result)


@ordinary_calls(schemas.NCHW16CMulNCAttr)
def blocks(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values((*shape(max(elements // 16, 1), 2), 16)), values(16)
    yield OrdinaryCall("3-D", (x, y))
    yield from in_dtypes(x, y)
    yield OrdinaryCall("float64 and float32", (x.astype(np.float64), y))
    yield from in_layouts(x, fixed=(y,))
    yield OrdinaryCall("strided scales", (x, values(32)[::2]))
    yield OrdinaryCall("empty", (x[:0], y))
    yield from with_outs((x, y), 2, x)
    yield OrdinaryCall("in place", (x, np.ones_like(y), x))


peer(schemas.StrideScalAttr)(lambda attr, a, x, y: partial(stride_scal, a, x, attr.stride, y))
peer(schemas.VBroadcastAttr)(lambda _, x, y: partial(np.copyto, y, x))
of_torch(schemas.VBroadcastAttr, lambda _, _torch, x, y: partial(y.copy_, x))
peer(schemas.NCHW16CMulNCAttr)(lambda _, x, y, z: partial(np.multiply, x, y, z))
of_torch(schemas.NCHW16CMulNCAttr, lambda _, torch, x, y, z: partial(torch.mul, x, y, out=z))
