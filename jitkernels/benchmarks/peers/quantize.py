"""Peers of QUANTIZE and DEQUANTIZE in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.quantize import DequantizeAttr, QuantizeAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import OF_ARRAYS, in_layouts, shape, values


def _beside(number: Any) -> Any:
    """Return per-row numbers, shaped to broadcast against the rows."""
    return np.asarray(number)[..., np.newaxis]


@equivalent(QuantizeAttr)
def quantize(x: Any, scale: Any, zero: Any = None, q_dtype: str = "int8", out: Any = None) -> Any:
    limits = np.iinfo(q_dtype)
    whole = np.rint(np.divide(x, _beside(scale)))
    if zero is not None:
        whole += _beside(zero)
    np.clip(whole, limits.min, limits.max, out=whole)
    if out is None:
        return whole.astype(q_dtype)
    np.copyto(out, whole, casting="unsafe")
    return out


@equivalent(DequantizeAttr)
def dequantize(q: Any, scale: Any, zero: Any = None, out: Any = None) -> Any:
    factor = _beside(scale)
    whole = np.asarray(q).astype(factor.dtype)
    if zero is not None:
        whole -= _beside(zero)
    return np.multiply(whole, factor, out=out)


@peer(QuantizeAttr)
def numpy_quantize(attr: QuantizeAttr, x: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound:
    *zero, q = rest
    return partial(quantize, x, scale, zero[0] if zero else None, attr.q_dtype, q)


@peer(DequantizeAttr)
def numpy_dequantize(attr: DequantizeAttr, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound:
    *zero, y = rest
    return partial(dequantize, q, scale, zero[0] if zero else None, y)


@peer(QuantizeAttr, name="torch")
def torch_quantize(attr: QuantizeAttr, x: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound | None:
    import torch

    zero = rest[0] if attr.shifted else np.zeros(attr.rows, np.int32)
    if attr.dtype != "float32":
        return None
    kind = torch.quint8 if attr.q_dtype == "uint8" else torch.qint8
    if attr.rows == 1:
        return partial(torch.quantize_per_tensor, torch.from_numpy(x), float(scale[0]), int(zero[0]), kind)
    scales, zeros = torch.from_numpy(scale), torch.from_numpy(zero.astype(np.int64))
    return partial(torch.quantize_per_channel, torch.from_numpy(x), scales, zeros, 0, kind)


@peer(DequantizeAttr, name="torch")
def torch_dequantize(attr: DequantizeAttr, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound | None:
    import torch

    zero = rest[0] if attr.shifted else np.zeros(attr.rows, np.int32)
    if attr.dtype != "float32" or attr.rows != 1:
        return None
    made = torch._make_per_tensor_quantized_tensor(torch.from_numpy(q), float(scale[0]), int(zero[0]))
    return partial(made.dequantize)


@ordinary_calls(QuantizeAttr)
def quantizations(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    scale, zero = np.full(x.shape[0], 0.02, np.float32), np.ones(x.shape[0], np.int8)
    one = np.float32(0.02)
    yield OrdinaryCall("per row", (x, scale, zero))
    yield OrdinaryCall("per tensor", (x.reshape(-1), one))
    yield OrdinaryCall("2-D per tensor", (x, one))
    yield OrdinaryCall("uint8", (x, scale, zero.astype(np.uint8)), {"q_dtype": "uint8"})
    yield OrdinaryCall("float64", (x.astype(np.float64), scale.astype(np.float64)))
    yield from in_layouts(x, fixed=(scale,))
    yield OrdinaryCall("empty", (x[:0], scale[:0]))
    yield OrdinaryCall("out", (x, scale), {"out": np.zeros(x.shape, np.int8)})


@ordinary_calls(DequantizeAttr)
def dequantizations(elements: int) -> Iterator[OrdinaryCall]:
    q = values(shape(elements, 2), "int8")
    scale, zero = np.full(q.shape[0], 0.02, np.float32), np.ones(q.shape[0], np.int8)
    yield OrdinaryCall("per row", (q, scale, zero))
    yield OrdinaryCall("per tensor", (q.reshape(-1), np.float32(0.02)))
    yield OrdinaryCall("2-D per tensor", (q, np.float32(0.02)))
    yield OrdinaryCall("uint8", (q.astype(np.uint8), scale))
    yield OrdinaryCall("float64", (q, scale.astype(np.float64)))
    yield from in_layouts(q, fixed=(scale,), layouts=OF_ARRAYS)
    yield OrdinaryCall("empty", (q[:0], scale[:0]))
    yield OrdinaryCall("out", (q, scale), {"out": np.zeros(q.shape, np.float32)})
