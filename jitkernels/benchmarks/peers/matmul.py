"""Peers of MATMUL in NumPy, torch, JAX and onnxruntime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, in_dtypes, shape, transposed, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_onnxruntime, of_torch

equivalent(MatMulAttr)(np.matmul)


@peer(MatMulAttr)
def numpy_matmul(attr: MatMulAttr, a: AnyArray, b: AnyArray, c: AnyArray) -> Bound:
    left, right = a.T if attr.trans_a else a, b.T if attr.trans_b else b
    if not attr.beta:
        return partial(np.matmul, left, right, c)
    return partial(add_product, left, right, attr.beta, c)


def add_product(left: AnyArray, right: AnyArray, beta: float, out: AnyArray) -> None:
    out *= beta
    out += left @ right


@partial(of_torch, MatMulAttr, narrow=True)
def torch_matmul(attr: MatMulAttr, torch: Any, a: Any, b: Any, c: Any) -> Bound:
    left, right = a.T if attr.trans_a else a, b.T if attr.trans_b else b
    if not attr.beta:
        return partial(torch.matmul, left, right, out=c)
    return partial(torch.addmm, c, left, right, beta=attr.beta, out=c)


@partial(of_jax, MatMulAttr)
def jax_matmul(attr: MatMulAttr, jax: Any, a: Any, b: Any, c: Any = 0.0) -> Any:
    product = (a.T if attr.trans_a else a) @ (b.T if attr.trans_b else b)
    return product + attr.beta * c if attr.beta else product


@partial(of_onnxruntime, MatMulAttr)
def onnxruntime_matmul(attr: MatMulAttr) -> Any:
    transposed = {"transA": int(attr.trans_a), "transB": int(attr.trans_b)}
    if attr.beta:
        return None  # also the output array
    return ("Gemm", ("a", "b"), transposed) if attr.trans_a or attr.trans_b else ("MatMul", ("a", "b"), {})


@ordinary_calls(MatMulAttr)
def matrix_products(elements: int) -> Iterator[OrdinaryCall]:
    a = values(shape(elements, 2))
    rows, inner = a.shape
    b, result = values((inner, rows)), np.zeros((rows, rows), np.float32)
    yield OrdinaryCall("2-D", (a, b))
    yield OrdinaryCall("x @ x.T", (a, a.T))
    yield OrdinaryCall("x.T @ x", (a.T, a))
    yield OrdinaryCall("both transposed", (b.T, a.T))
    yield OrdinaryCall("square", (values((rows, rows)), values((rows, rows))))
    yield OrdinaryCall("matrix @ vector", (a, values(inner)))
    yield OrdinaryCall("vector @ matrix", (values(rows), a))
    yield OrdinaryCall("vector @ vector", (values(elements), values(elements)))
    yield OrdinaryCall("row @ matrix", (values((1, rows)), a))
    for dimensions in (3, 4, 5):
        cube = values(shape(elements, dimensions))
        yield OrdinaryCall(f"{dimensions}-D @ 2-D", (cube, values((cube.shape[-1], rows))))
    yield from in_dtypes(a, b)
    for dtype in ("float64", "int64"):
        yield OrdinaryCall(f"float32 and {dtype}", (a, b.astype(dtype)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(f"both {name}", (form(a), form(b)))
        yield OrdinaryCall(f"second {name}", (a, form(b)))
    yield OrdinaryCall("first transposed", (transposed(a), b))
    yield OrdinaryCall("empty", (a[:0], b))
    yield OrdinaryCall("nothing summed", (a[:, :0], b[:0]))
    yield from with_outs((a, b), 2, result)
    yield OrdinaryCall("x @ x.T, out", (a, a.T), {"out": result.copy()})
    square = np.eye(rows, dtype=np.float32)
    yield OrdinaryCall("out overlaps", (square, np.eye(rows, dtype=np.float32)), {"out": square})
