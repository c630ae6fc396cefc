"""Peers of SEQ_POOL in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(SeqPoolAttr)
def seq_pool(x: Any, pool: str = "sum", out: Any = None) -> Any:
    x = np.asarray(x)
    if pool == "max":
        return x.max(axis=0, out=out)
    if pool == "mean":
        return x.mean(axis=0, out=out)
    if pool == "sum":
        return x.sum(axis=0, out=out)
    return np.divide(x.sum(axis=0), x.shape[0] ** 0.5, out=out)


@peer(SeqPoolAttr)
def numpy_seq_pool(attr: SeqPoolAttr, x: AnyArray, y: AnyArray) -> Bound:
    if attr.pool == "sqrt":
        return partial(seq_pool, x, attr.pool, y)
    return partial(getattr(x, attr.pool), 0, out=y)


@partial(of_torch, SeqPoolAttr)
def torch_seq_pool(attr: SeqPoolAttr, torch: Any, x: Any, y: Any) -> Bound | None:
    pools = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}
    return partial(pools[attr.pool], x, 0, out=y) if attr.pool in pools else None


@ordinary_calls(SeqPoolAttr)
def pools(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2))
    result = np.zeros(y.shape[1], y.dtype)
    yield OrdinaryCall("sum", (y,))
    for pool in ("sum", "mean", "sqrt", "max"):
        yield OrdinaryCall(f"pool={pool}", (y,), {"pool": pool})
        yield OrdinaryCall(f"{pool} by position", (y, pool))
        yield OrdinaryCall(f"pool={pool}, out", (y,), {"pool": pool, "out": result.copy()})
    yield from in_dtypes(y, pool="mean", bools=False)
    yield from in_layouts(y)
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("one row", (values((1, elements)),))
    yield OrdinaryCall("one column", (values((elements, 1)),))
    yield OrdinaryCall("empty", (y[:, :0],))
    yield from with_outs((y, "sum"), 2, result)
    room = values((y.shape[0] + 1, y.shape[1]))
    yield OrdinaryCall("out overlaps", (room[:-1], "max"), {"out": room[0]})
