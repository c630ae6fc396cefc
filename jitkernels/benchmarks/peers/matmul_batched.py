"""Peers of MATMUL_BATCHED in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch

equivalent(MatMulBatchedAttr)(np.matmul)


@peer(MatMulBatchedAttr)
def numpy_matmul(attr: MatMulBatchedAttr, a: AnyArray, b: AnyArray, c: AnyArray) -> Bound:
    left, right = a.swapaxes(1, 2) if attr.trans_a else a, b.swapaxes(1, 2) if attr.trans_b else b
    return partial(np.matmul, left, right, c)


@partial(of_torch, MatMulBatchedAttr)
def torch_bmm(attr: MatMulBatchedAttr, torch: Any, a: Any, b: Any, c: Any) -> Bound:
    left, right = a.swapaxes(1, 2) if attr.trans_a else a, b.swapaxes(1, 2) if attr.trans_b else b
    return partial(torch.bmm, left, right, out=c)


@partial(of_jax, MatMulBatchedAttr)
def jax_matmul_batched(attr: MatMulBatchedAttr, jax: Any, a: Any, b: Any) -> Any:
    return (a.swapaxes(-1, -2) if attr.trans_a else a) @ (b.swapaxes(-1, -2) if attr.trans_b else b)


@ordinary_calls(MatMulBatchedAttr)
def batches(elements: int) -> Iterator[OrdinaryCall]:
    a = values(shape(elements, 3))
    batch, rows, inner = a.shape
    b, result = values((batch, inner, rows)), np.zeros((batch, rows, rows), np.float32)
    yield OrdinaryCall("3-D", (a, b))
    yield OrdinaryCall("second transposed", (a, a.swapaxes(1, 2)))
    yield OrdinaryCall("first transposed", (a.swapaxes(1, 2), a))
    yield OrdinaryCall("second broadcast", (a, b[:1]))
    yield OrdinaryCall("rows", (a[:, :1], b))
    cube = values(shape(elements, 4))
    yield OrdinaryCall("4-D", (cube, values((*cube.shape[:2], cube.shape[3], rows))))
    yield from in_dtypes(a, b)
    yield from in_layouts(a, b, label="both {}")
    yield OrdinaryCall("empty", (a[:0], b[:0]))
    yield from with_outs((a, b), 2, result)
