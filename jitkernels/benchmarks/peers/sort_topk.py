"""Peers of SORT and TOPK in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sort_topk import SortAttr, TopkAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch


@equivalent(SortAttr)
def sort(x: Any, axis: int = -1, out: Any = None) -> Any:
    if out is None:
        return np.sort(x, axis)
    if out is not x:
        out[...] = x
    out.sort(axis)
    return out


@equivalent(TopkAttr)
def topk(x: Any, k: int, axis: int = -1, out: Any = None) -> Any:
    """Sort everything stably in reverse: among ties, lower indices come first."""
    x = np.asarray(x)
    n = x.shape[axis]
    order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    order = np.take(order, np.arange(k), axis)
    results = np.take_along_axis(x, order, axis), order
    if out is None:
        return results
    for to, result in zip(out, results, strict=True):
        to[...] = result
    return out


peer(SortAttr)(lambda _, x, y: partial(sort, x, -1, y))


@partial(of_torch, SortAttr)
def torch_sort(attr: SortAttr, torch: Any, x: Any, y: Any) -> Bound:
    return partial(torch.sort, x, dim=-1, out=(y, torch.empty(y.shape, dtype=torch.int64)))


peer(TopkAttr)(lambda attr, x, values, indices: partial(_of_parts, x, attr.k, values, indices))


def _of_parts(x: AnyArray, k: int, values: AnyArray, indices: AnyArray) -> None:
    """Partition first, which is faster than a full sort; ties have any order."""
    first = x.shape[-1] - k
    order = np.argpartition(x, min(first, x.shape[-1] - 1), -1)[..., first:]
    sorted_values = np.take_along_axis(x, order, -1)
    descending = np.argsort(sorted_values, -1)[..., ::-1]
    values[...] = np.take_along_axis(sorted_values, descending, -1)
    indices[...] = np.take_along_axis(order, descending, -1)


of_torch(TopkAttr, lambda attr, torch, x, values, indices: partial(torch.topk, x, attr.k, out=(values, indices)))
of_jax(SortAttr, lambda _, jax, x: jax.numpy.sort(x, 1))
of_jax(TopkAttr, lambda attr, jax, x: jax.lax.top_k(x, attr.k))


def along_axes(elements: int) -> Iterator[OrdinaryCall]:
    """Calls of functions that order the elements along an axis."""
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("1-D", (values(elements),))
    for axis in (0, 1, -1):
        yield OrdinaryCall(f"axis={axis}", (x,), {"axis": axis})
    yield OrdinaryCall("axis by position", (x, 0))
    yield from in_layouts(x)
    yield from in_dtypes(x)
    yield OrdinaryCall("empty", (x[:0],))


@ordinary_calls(SortAttr)
def sorts(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield from along_axes(elements)
    yield from with_outs((x, -1), 2, x)


@ordinary_calls(TopkAttr)
def topks(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    k = min(5, x.shape[-1])
    yield OrdinaryCall("k by name", (x,), {"k": k})
    yield OrdinaryCall("k by position", (x, k))
    yield OrdinaryCall("k=1", (x, 1))
    yield OrdinaryCall("all", (x, x.shape[-1]))
    yield OrdinaryCall("1-D", (values(elements), k))
    yield OrdinaryCall("axis=0", (x, min(2, x.shape[0])), {"axis": 0})
    yield from in_layouts(x, fixed=(k,))
    yield from in_dtypes(x, fixed=(k,))
    found = topk(x, k)
    yield OrdinaryCall("out", (x, k), {"out": tuple(result.copy() for result in found)})
