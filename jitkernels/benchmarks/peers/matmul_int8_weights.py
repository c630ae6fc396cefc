"""Peers of MATMUL_INT8_WEIGHTS in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import OF_ARRAYS, in_layouts, shape, values
from jitkernels.benchmarks.peers.compiled import of_torch
from jitkernels.benchmarks.peers.packed_weights import ACCURACY_FLOAT32, ACCURACY_INT8, matmul_nbits


@equivalent(MatMulInt8WeightsAttr)
def matmul_int8_weights(a: Any, q: Any, scale: Any, zero: Any = None, rounded: str = "float", out: Any = None) -> Any:
    """Dequantize the weights, then multiply."""
    scales = np.asarray(scale)
    a = np.asarray(a, np.result_type(np.asarray(a).dtype, scales.dtype))
    weights = np.asarray(q).astype(a.dtype)
    if zero is not None:
        weights -= np.asarray(zero)[..., np.newaxis]
    weights *= scales[..., np.newaxis]
    return np.matmul(a, weights.reshape(len(weights), -1).T, out=out)


@peer(MatMulInt8WeightsAttr)
def numpy_weights(attr: MatMulInt8WeightsAttr, a: AnyArray, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound:
    *zero, c = rest
    return partial(matmul_int8_weights, a, q, scale, zero[0] if zero else None, attr.rounded, c)


@partial(of_torch, MatMulInt8WeightsAttr)
def torch_packed_weights(
    attr: MatMulInt8WeightsAttr, torch: Any, a: Any, q: Any, scale: Any, *rest: Any
) -> Bound | None:
    if attr.shifted or attr.groups != 1 or attr.dtype != "float32":
        return None
    return partial(torch._weight_int8pack_mm, a, q.reshape(attr.n, attr.k), scale.reshape(attr.n))


@peer(MatMulInt8WeightsAttr, name="onnxruntime")
def onnxruntime_nbits(
    attr: MatMulInt8WeightsAttr, a: AnyArray, q: AnyArray, scale: AnyArray, *rest: AnyArray
) -> Bound | None:
    if attr.shifted:
        return None
    accuracy = ACCURACY_INT8 if attr.rounded == "int8" else ACCURACY_FLOAT32
    return matmul_nbits(a, q.view(np.uint8) ^ 128, scale, rest[-1], bits=8, accuracy=accuracy)


@ordinary_calls(MatMulInt8WeightsAttr)
def weighted_products(elements: int) -> Iterator[OrdinaryCall]:
    rows, inner = shape(elements, 2)
    groups = -(-inner // 32)
    a = values((rows, 32 * groups))
    q = values((rows, groups, 32), "int8")
    scale = np.full((rows, groups), 0.125, np.float32)
    zero = np.full((rows, groups), 7, np.int8)
    yield OrdinaryCall("2-D", (a, q, scale))
    yield OrdinaryCall("one row", (a[0], q, scale))
    yield OrdinaryCall("one group", (a, q.reshape(rows, 1, -1), scale[:, :1]))
    yield OrdinaryCall("zero points", (a, q, scale, zero))
    yield OrdinaryCall("3-D", (a[np.newaxis], q, scale))
    yield from in_layouts(a, fixed=(q, scale), layouts=OF_ARRAYS)
    yield OrdinaryCall("empty", (a[:0], q, scale))
    yield OrdinaryCall("out", (a, q, scale), {"out": np.zeros((rows, rows), np.float32)})
