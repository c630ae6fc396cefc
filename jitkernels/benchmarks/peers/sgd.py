"""Peers of SGD in NumPy, torch and Numba."""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, in_dtypes, index_array, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(SgdAttr)
def sgd(param: Any, grad: Any, rows: Any, lr: float = 1e-3, out: Any = None) -> Any:
    steps = lr * np.asarray(grad)
    if out is None:
        out = np.array(param, np.result_type(np.asarray(param), steps))
    elif out is not param:
        out[...] = param
    np.subtract.at(out, index_array(rows), steps)
    return out


@peer(SgdAttr)
def numpy_sgd(attr: SgdAttr, param: AnyArray, grad: AnyArray, rows: AnyArray, out: AnyArray) -> Bound:
    return partial(sgd, param, grad, rows, np.dtype(attr.dtype).type(attr.lr), out)


@partial(of_torch, SgdAttr)
def torch_sgd(attr: SgdAttr, _: Any, param: Any, grad: Any, rows: Any, out: Any) -> Bound:
    def into(result: Any, param: Any, rows: Any, grad: Any, factor: float) -> None:
        result.copy_(param).index_add_(0, rows, grad, alpha=factor)

    return partial(into, out, param, rows, grad, -attr.lr)


@peer(SgdAttr, name="numba")
def numba_sgd(attr: SgdAttr, param: AnyArray, grad: AnyArray, rows: AnyArray, out: AnyArray) -> Bound:
    return partial(_numba_loop(), param, grad, rows, np.dtype(attr.dtype).type(attr.lr), out)


@functools.cache
def _numba_loop() -> Callable[..., None]:
    import numba

    @numba.njit  # type: ignore[untyped-decorator,unused-ignore]  # where there is no Numba
    def loop(param: Any, grad: Any, rows: Any, lr: Any, out: Any) -> None:
        out[:] = param
        for i in range(rows.size):
            for j in range(param.shape[1]):
                out[rows[i], j] -= lr * grad[i, j]

    compiled: Callable[..., None] = loop
    return compiled


@ordinary_calls(SgdAttr)
def steps(elements: int) -> Iterator[OrdinaryCall]:
    height, width = shape(elements, 2)
    param, grad = values((4 * height, width)), values((height, width))
    rows = np.random.default_rng(0).integers(0, 4 * height, height)
    yield OrdinaryCall("some rows", (param, grad, rows))
    yield OrdinaryCall("lr", (param, grad, rows), {"lr": 0.1})
    yield OrdinaryCall("lr by position", (param, grad, rows, 0.1))
    yield OrdinaryCall("one row again and again", (param, grad, np.zeros_like(rows)))
    yield OrdinaryCall("no rows", (param, grad[:0], rows[:0]))
    yield OrdinaryCall("dense", (param.reshape(1, -1), param.reshape(1, -1), np.zeros(1, np.int64)))
    yield from in_dtypes(param, grad, fixed=(rows,), bools=False)
    for dtype in ("int32", "uint8"):
        yield OrdinaryCall(f"rows {dtype}", (param, grad, (rows % 200).astype(dtype)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(f"param {name}", (form(param), grad, rows))
        yield OrdinaryCall(f"grad {name}", (param, form(grad), rows))
        yield OrdinaryCall(f"rows {name}", (param, grad, form(rows)))
    yield from with_outs((param, grad, rows, 0.1), 4, param)
    own = values((4 * height, width))
    yield OrdinaryCall("in place", (own, grad, rows), {"out": own})
