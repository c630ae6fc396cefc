"""Peers of MATMUL_INT8 in NumPy and torch. NumPy's own integer products take a hundred times as long."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import OF_ARRAYS, in_layouts, shape, values
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(MatMulInt8Attr)
def matmul_int8(a: Any, b: Any, a_scale: Any = None, b_scale: Any = None, out: Any = None) -> Any:
    exact = np.matmul(np.asarray(a, np.float64), np.asarray(b, np.float64))
    sums = exact.astype(np.int32)
    if a_scale is None:
        if out is None:
            return sums
        out[...] = sums
        return out
    return np.multiply(sums.astype(np.float32), np.asarray(a_scale)[..., np.newaxis] * b_scale, out=out)


@peer(MatMulInt8Attr)
def numpy_integers(attr: MatMulInt8Attr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> Bound:
    *scales, c = rest
    a_scale, b_scale = scales or (None, None)
    return partial(matmul_int8, a, b.T if attr.trans_b else b, a_scale, b_scale, c)


@partial(of_torch, MatMulInt8Attr)
def torch_int_mm(attr: MatMulInt8Attr, torch: Any, a: Any, b: Any, *rest: Any) -> Bound | None:
    if attr.scaled or attr.a_dtype != "int8":
        return None
    return partial(torch._int_mm, a, b.T if attr.trans_b else b, out=rest[-1])


@ordinary_calls(MatMulInt8Attr)
def integer_products(elements: int) -> Iterator[OrdinaryCall]:
    a = values(shape(elements, 2), "int8")
    rows, inner = a.shape
    b = values((inner, rows), "int8")
    a_scale, b_scale = np.full(rows, 0.5, np.float32), np.full(rows, 0.25, np.float32)
    yield OrdinaryCall("2-D", (a, b))
    yield OrdinaryCall("uint8", (a.astype(np.uint8), b))
    yield OrdinaryCall("scaled", (a, b, a_scale, b_scale))
    yield OrdinaryCall("x @ x.T", (a, a.T))
    cube = values(shape(elements, 3), "int8")
    yield OrdinaryCall("3-D", (cube, values((cube.shape[-1], rows), "int8")))
    yield from in_layouts(a, b, label="both {}", layouts=OF_ARRAYS)
    yield OrdinaryCall("empty", (a[:0], b))
    yield OrdinaryCall("out", (a, b), {"out": np.zeros((rows, rows), np.int32)})
