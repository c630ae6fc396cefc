"""Peers of TRANSPOSE, GATHER and SCATTER_ADD in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.transpose_gather_scatter import GatherAttr, ScatterAddAttr, TransposeAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import DTYPES, LAYOUTS, shape, strided, values, with_outs


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
    np.add.at(out, ids, x)
    return out


@peer(TransposeAttr)
def numpy_transpose(attr: TransposeAttr, x: AnyArray, y: AnyArray) -> Bound:
    return partial(np.copyto, y, x.swapaxes(-1, -2))


@peer(TransposeAttr, name="torch")
def torch_transpose(attr: TransposeAttr, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    return partial(torch.from_numpy(y).copy_, torch.from_numpy(x).transpose(-1, -2))


@peer(GatherAttr)
def numpy_gather(attr: GatherAttr, table: AnyArray, ids: AnyArray, y: AnyArray) -> Bound:
    return partial(np.take, table, ids, 0, y)


@peer(GatherAttr, name="torch")
def torch_gather(attr: GatherAttr, table: AnyArray, ids: AnyArray, y: AnyArray) -> Bound:
    import torch

    return partial(torch.index_select, torch.from_numpy(table), 0, torch.from_numpy(ids), out=torch.from_numpy(y))


@peer(ScatterAddAttr)
def numpy_scatter_add(attr: ScatterAddAttr, table: AnyArray, ids: AnyArray, x: AnyArray, y: AnyArray) -> Bound:
    return partial(scatter_add, table, ids, x, y)


@peer(ScatterAddAttr, name="torch")
def torch_scatter_add(attr: ScatterAddAttr, table: AnyArray, ids: AnyArray, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    given = torch.from_numpy(table), 0, torch.from_numpy(ids), torch.from_numpy(x)
    return partial(torch.index_add, *given, out=torch.from_numpy(y))


@ordinary_calls(TransposeAttr)
def turns(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("3-D", (values(shape(elements, 3)),))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(x),))
    for dtype in DTYPES:
        yield OrdinaryCall(dtype, (x.astype(dtype),))
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
