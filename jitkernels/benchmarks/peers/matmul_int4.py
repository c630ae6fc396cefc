"""Peers of MATMUL_INT4 in NumPy and ONNX Runtime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import OF_ARRAYS, in_layouts, shape, values
from jitkernels.benchmarks.peers.packed_weights import ACCURACY_FLOAT32, ACCURACY_INT8, matmul_nbits


@equivalent(MatMulInt4Attr)
def matmul_int4(a: Any, packed: Any, scale: Any, zero: Any = None, rounded: str = "float", out: Any = None) -> Any:
    """Dequantize the weights, then multiply."""
    bytes_, scales = np.asarray(packed).astype(np.uint8, copy=False), np.asarray(scale)
    a = np.asarray(a, np.result_type(np.asarray(a).dtype, scales.dtype))
    both = np.empty((*bytes_.shape, 2), a.dtype)
    np.bitwise_and(bytes_, 15, out=both[..., 0], casting="unsafe")
    np.right_shift(bytes_, 4, out=both[..., 1], casting="unsafe")
    both -= 8 if zero is None else np.asarray(zero)[..., np.newaxis, np.newaxis]
    both *= scales[..., np.newaxis, np.newaxis]
    return np.matmul(a, both.reshape(len(bytes_), -1).T, out=out)


@peer(MatMulInt4Attr)
def numpy_weights(attr: MatMulInt4Attr, a: AnyArray, packed: AnyArray, scale: AnyArray, *rest: AnyArray) -> Bound:
    *zero, c = rest
    return partial(matmul_int4, a, packed, scale, zero[0] if zero else None, attr.rounded, c)


@peer(MatMulInt4Attr, name="onnxruntime")
def onnxruntime_nbits(
    attr: MatMulInt4Attr, a: AnyArray, packed: AnyArray, scale: AnyArray, *rest: AnyArray
) -> Bound | None:
    if attr.shifted:
        return None
    accuracy = ACCURACY_INT8 if attr.rounded == "int8" else ACCURACY_FLOAT32
    return matmul_nbits(a, packed, scale, rest[-1], bits=4, accuracy=accuracy)


@ordinary_calls(MatMulInt4Attr)
def packed_products(elements: int) -> Iterator[OrdinaryCall]:
    rows, inner = shape(elements, 2)
    groups = -(-inner // 32)
    a = values((rows, 32 * groups))
    packed = values((rows, groups, 16), "uint8")
    scale = np.full((rows, groups), 0.125, np.float32)
    zero = np.full((rows, groups), 7, np.uint8)
    yield OrdinaryCall("2-D", (a, packed, scale))
    yield OrdinaryCall("one row", (a[0], packed, scale))
    yield OrdinaryCall("zero points", (a, packed, scale, zero))
    yield OrdinaryCall("3-D", (a[np.newaxis], packed, scale))
    yield from in_layouts(a, fixed=(packed, scale), layouts=OF_ARRAYS)
    yield OrdinaryCall("empty", (a[:0], packed, scale))
    yield OrdinaryCall("out", (a, packed, scale), {"out": np.zeros((rows, rows), np.float32)})
