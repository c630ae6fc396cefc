"""Peers of EMB_SEQ_POOL in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, shape, strided, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch, stored_tensor


@equivalent(EmbSeqPoolAttr)
def emb_seq_pool(table: Any, ids: Any, pool: str = "sum", out: Any = None) -> Any:
    rows = np.asarray(table)[ids]
    into = None if out is None else out.reshape(rows.shape[1:])
    if pool == "max":
        result = rows.max(axis=0, out=into)
    elif pool == "mean":
        result = rows.mean(axis=0, out=into)
    else:
        result = rows.sum(axis=0, out=into)
    if out is None:
        return result.reshape(-1)
    if not np.may_share_memory(into, out):  # a strided out has no matrix view
        out[...] = result.reshape(-1)
    return out


peer(EmbSeqPoolAttr)(lambda attr, table, ids, out: partial(emb_seq_pool, table, ids, attr.pool, out))


@partial(of_torch, EmbSeqPoolAttr, narrow=True)
def torch_emb_seq_pool(attr: EmbSeqPoolAttr, torch: Any, table: Any, ids: Any, out: Any) -> Bound:
    pooled = partial(torch.nn.functional.embedding_bag, mode=attr.pool)
    return stored_tensor(out.reshape(attr.idx_w, attr.table_w), pooled, ids.T.contiguous(), table)


@ordinary_calls(EmbSeqPoolAttr)
def lookups(elements: int) -> Iterator[OrdinaryCall]:
    height, width = shape(elements, 2)
    table = values((10 * height, width))
    ids = np.random.default_rng(0).integers(0, 10 * height, (height, 2))
    result = np.zeros(2 * width, table.dtype)
    yield OrdinaryCall("sum", (table, ids))
    for pool in ("sum", "mean", "max"):
        yield OrdinaryCall(f"pool={pool}", (table, ids), {"pool": pool})
        yield OrdinaryCall(f"{pool} by position", (table, ids, pool))
        yield OrdinaryCall(f"pool={pool}, out", (table, ids), {"pool": pool, "out": result.copy()})
    for dtype in ("float64", "float16"):
        yield OrdinaryCall(f"table {dtype}", (table.astype(dtype), ids))
    for dtype in ("int32", "uint8", "uint64"):
        yield OrdinaryCall(f"ids {dtype}", (table, (ids % 200).astype(dtype)))
    for name, form in LAYOUTS.items():
        if name != "list":
            yield OrdinaryCall(f"table {name}", (form(table), ids))
        yield OrdinaryCall(f"ids {name}", (table, form(ids)))
    yield OrdinaryCall("table broadcast", (np.broadcast_to(table[:1], table.shape), ids))
    yield OrdinaryCall("table of larger rows", (values((10 * height, 2 * width))[:, ::2], ids))
    yield OrdinaryCall("table Fortran, pool=max", (np.asfortranarray(table), ids), {"pool": "max"})
    yield OrdinaryCall("table Fortran, many ids", (np.asfortranarray(table), np.tile(ids, (6, 1))))
    yield OrdinaryCall("ids transposed", (table, np.ascontiguousarray(ids.T).T))
    yield OrdinaryCall("one sequence", (table, ids[:, :1].copy()))
    yield OrdinaryCall("ids a column of a matrix", (table, strided(ids)[:, :1]))
    yield OrdinaryCall("empty", (table, ids[:, :0]))
    yield from with_outs((table, ids, "sum"), 3, result)
