"""Peers of ARGSORT in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.argsort import ArgsortAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch


@equivalent(ArgsortAttr)
def argsort(x: Any, axis: int = -1, out: Any = None) -> Any:
    order = np.argsort(x, axis, kind="stable")
    if out is None:
        return order
    out[...] = order
    return out


peer(ArgsortAttr)(lambda _, x, y: partial(argsort, x, -1, y))


@partial(of_torch, ArgsortAttr)
def torch_argsort(attr: ArgsortAttr, torch: Any, x: Any, y: Any) -> Bound:
    return partial(torch.sort, x, dim=-1, stable=True, out=(torch.empty(x.shape, dtype=x.dtype), y))


of_jax(ArgsortAttr, lambda _, jax, x: jax.numpy.argsort(x, 1))


@ordinary_calls(ArgsortAttr)
def argsorts(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("1-D", (values(elements),))
    for axis in (0, 1, -1):
        yield OrdinaryCall(f"axis={axis}", (x,), {"axis": axis})
    yield OrdinaryCall("axis by position", (x, 0))
    yield from in_layouts(x)
    yield from in_dtypes(x)
    yield OrdinaryCall("empty", (x[:0],))
    yield OrdinaryCall("out", (x,), {"out": np.empty_like(argsort(x))})
