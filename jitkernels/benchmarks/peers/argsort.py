"""Peers of ARGSORT in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.argsort import ArgsortAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import shape, values
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch
from jitkernels.benchmarks.peers.sort_topk import along_axes


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
    yield from along_axes(elements)
    yield OrdinaryCall("out", (x,), {"out": np.empty_like(argsort(x))})
