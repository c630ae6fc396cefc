"""Peers of GEMV in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch
from jitkernels.benchmarks.peers.matmul import add_product

equivalent(GEMVAttr)(np.matmul)


@peer(GEMVAttr)
def numpy_matvec(attr: GEMVAttr, a: AnyArray, x: AnyArray, y: AnyArray) -> Bound:
    matrix = a.T if attr.trans else a
    if not attr.beta:
        return partial(np.matmul, matrix, x, y)
    return partial(add_product, matrix, x, attr.beta, y)


@partial(of_torch, GEMVAttr, narrow=True)
def torch_mv(attr: GEMVAttr, torch: Any, a: Any, x: Any, y: Any) -> Bound:
    matrix = a.T if attr.trans else a
    if not attr.beta:
        return partial(torch.mv, matrix, x, out=y)
    return partial(torch.addmv, y, matrix, x, beta=attr.beta, out=y)


@partial(of_jax, GEMVAttr)
def jax_matvec(attr: GEMVAttr, jax: Any, a: Any, x: Any, y: Any = 0.0) -> Any:
    product = (a.T if attr.trans else a) @ x
    return product + attr.beta * y if attr.beta else product


@ordinary_calls(GEMVAttr)
def matrix_vectors(elements: int) -> Iterator[OrdinaryCall]:
    a = values(shape(elements, 2))
    x, result = values(a.shape[1]), np.zeros(a.shape[0], np.float32)
    yield OrdinaryCall("2-D", (a, x))
    yield OrdinaryCall("transposed", (a.T, values(a.shape[0])))
    cube = values(shape(elements, 3))
    yield OrdinaryCall("3-D", (cube, values(cube.shape[-1])))
    yield OrdinaryCall("vector", (values(elements), values(elements)))
    yield from in_dtypes(a, x)
    for dtype in ("float64", "int64"):
        yield OrdinaryCall(f"float32 and {dtype}", (a, x.astype(dtype)))
    yield from in_layouts(a, x, label="both {}")
    yield OrdinaryCall("empty", (a[:0], x))
    yield from with_outs((a, x), 2, result)
