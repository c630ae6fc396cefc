"""Peers of TRANSPOSE, GATHER and SCATTER_ADD in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.transpose_gather_scatter import GatherAttr, ScatterAddAttr, TransposeAttr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import (
    LAYOUTS,
    in_dtypes,
    in_layouts,
    index_array,
    shape,
    strided,
    values,
    with_outs,
)
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(TransposeAttr)
def transpose(x: Any, out: Any = None) -> Any:
    transposed_view = np.swapaxes(x, -1, -2)
    if out is None:
        return np.array(transposed_view, order="C")
    out[...] = transposed_view
    return out


@equivalent(GatherAttr)
def gather(table: Any, ids: Any, out: Any = None) -> Any:
    return np.take(table, ids, axis=0, out=out)


@equivalent(ScatterAddAttr)
def scatter_add(table: Any, ids: Any, x: Any, out: Any = None) -> Any:
    if out is None:
        out = np.array(table)
    elif out is not table:
        out[...] = table
    np.add.at(out, index_array(ids), x)
    return out


peer(TransposeAttr)(lambda _, x, y: partial(np.copyto, y, x.swapaxes(-1, -2)))
of_torch(TransposeAttr, lambda _, _torch, x, y: partial(y.copy_, x.transpose(-1, -2)))
peer(GatherAttr)(lambda _, table, ids, y: partial(np.take, table, ids, 0, y))
of_torch(GatherAttr, lambda _, torch, table, ids, y: partial(torch.index_select, table, 0, ids, out=y))
peer(ScatterAddAttr)(lambda _, table, ids, x, y: partial(scatter_add, table, ids, x, y))
of_torch(ScatterAddAttr, lambda _, torch, table, ids, x, y: partial(torch.index_add, table, 0, ids, x, out=y))


@ordinary_calls(TransposeAttr)
def turns(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("3-D", (values(shape(elements, 3)),))
    yield from in_layouts(x)
    yield from in_dtypes(x)
    yield OrdinaryCall("empty", (x[:0],))
    yield from with_outs((x,), 1, np.ascontiguousarray(x.T))


@ordinary_calls(GatherAttr)
def lookups(elements: int) -> Iterator[OrdinaryCall]:
    height, width = shape(elements, 2)
    table = values((10 * height, width))
    ids = np.random.default_rng(0).integers(0, 10 * height, height)
    yield OrdinaryCall("rows", (table, ids))
    yield OrdinaryCall("ids 2-D", (table, ids.reshape(-1, 1)))
    yield OrdinaryCall("one row", (table, 3))
    for dtype in ("int32", "uint8", "uint64"):
        yield OrdinaryCall(f"ids {dtype}", (table, (ids % 200).astype(dtype)))
    for name, form in LAYOUTS.items():
        if name != "list":
            yield OrdinaryCall(f"table {name}", (form(table), ids))
        yield OrdinaryCall(f"ids {name}", (table, form(ids)))
    yield OrdinaryCall("table float64", (table.astype(np.float64), ids))
    yield OrdinaryCall("empty", (table, ids[:0]))
    result = table[ids]
    yield OrdinaryCall("out", (table, ids), {"out": result.copy()})
    yield OrdinaryCall("out by position", (table, ids, result.copy()))


@ordinary_calls(ScatterAddAttr)
def additions(elements: int) -> Iterator[OrdinaryCall]:
    height, width = shape(elements, 2)
    table, x = values((height, width)), values((height, width)) * np.float32(1e-6)
    ids = np.random.default_rng(0).integers(0, height, height)
    yield OrdinaryCall("rows", (table, ids, x))
    yield OrdinaryCall("ids int32", (table, ids.astype(np.int32), x))
    for name, form in LAYOUTS.items():
        if name != "list":
            yield OrdinaryCall(f"table {name}", (form(table), ids, x))
            yield OrdinaryCall(f"x {name}", (table, ids, form(x)))
    yield OrdinaryCall("float64", (table.astype(np.float64), ids, x.astype(np.float64)))
    yield OrdinaryCall("empty", (table, ids[:0], x[:0]))
    yield OrdinaryCall("into the table", (table, ids, x), {"out": table})
    yield OrdinaryCall("out", (table, ids, x), {"out": table.copy()})
    yield OrdinaryCall("out strided", (table, ids, x), {"out": strided(table)})
