"""What NumPy, numexpr and torch have for the elementwise kernels of a vector and something smaller."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs import vector_number as rows
from jitkernels.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.peers.expressions import elementwise
from jitkernels.peers.forms import DTYPES, LAYOUTS, shape, values, with_outs
from jitkernels.signature import AnyArray


def stride_scal(a: Any, x: Any, stride: int = 1, out: Any = None) -> Any:
    """A copy, of which every so many elements are multiplied."""
    result = np.array(x, np.result_type(a, x)) if out is None else out
    if out is not None:
        np.copyto(out, x)
    result[::stride] *= a
    return result


def vbroadcast(x: Any, h: int, out: Any = None) -> Any:
    """A copy, as what `numpy.broadcast_to` gives may not be written to."""
    row = np.asarray(x)
    if out is None:
        return np.repeat(row[np.newaxis], h, axis=0)
    np.copyto(out, row)
    return out


equivalent(rows.StrideScalAttr)(stride_scal)
equivalent(rows.VBroadcastAttr)(vbroadcast)
elementwise(rows.VScalAttr, np.multiply, "a * x", lambda torch, a, x, y: partial(torch.mul, x, a, out=y))
elementwise(rows.VAddBiasAttr, np.add, "a + x", lambda torch, a, x, y: partial(torch.add, x, a, out=y))
equivalent(rows.NCHW16CMulNCAttr)(np.multiply)


@ordinary_calls(rows.VScalAttr)
@ordinary_calls(rows.VAddBiasAttr)
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


@ordinary_calls(rows.NCHW16CMulNCAttr)
def blocks(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values((*shape(max(elements // 16, 1), 2), 16)), values(16)
    yield OrdinaryCall("3-D", (x, y))
    for dtype in DTYPES:
        yield OrdinaryCall(dtype, (x.astype(dtype), y.astype(dtype)))
    yield OrdinaryCall("float64 and float32", (x.astype(np.float64), y))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(x), y))
    yield OrdinaryCall("strided scales", (x, values(32)[::2]))
    yield OrdinaryCall("empty", (x[:0], y))
    yield from with_outs((x, y), 2, x)
    yield OrdinaryCall("in place", (x, np.ones_like(y), x))


@peer(rows.StrideScalAttr)
def numpy_stride_scal(attr: rows.StrideScalAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> Bound:
    return partial(stride_scal, a, x, attr.stride, y)


@peer(rows.VBroadcastAttr)
def numpy_broadcast(attr: rows.VBroadcastAttr, x: AnyArray, y: AnyArray) -> Bound:
    return partial(np.copyto, y, x)


@peer(rows.VBroadcastAttr, name="torch")
def torch_broadcast(attr: rows.VBroadcastAttr, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    return partial(torch.from_numpy(y).copy_, torch.from_numpy(x))


@peer(rows.NCHW16CMulNCAttr)
def numpy_channels(attr: rows.NCHW16CMulNCAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound:
    return partial(np.multiply, x, y, z)


@peer(rows.NCHW16CMulNCAttr, name="torch")
def torch_channels(attr: rows.NCHW16CMulNCAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound:
    import torch

    return partial(torch.mul, *map(torch.from_numpy, (x, y)), out=torch.from_numpy(z))
