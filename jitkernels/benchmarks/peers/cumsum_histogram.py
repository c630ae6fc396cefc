"""Peers of CUMSUM and HISTOGRAM in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.cumsum_histogram import CumsumAttr, HistogramAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import DTYPES, LAYOUTS, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax


@equivalent(CumsumAttr)
def cumsum(x: Any, axis: int = -1, out: Any = None) -> Any:
    return np.cumsum(x, axis, out=out)


@equivalent(HistogramAttr)
def histogram(x: Any, bins: int = 10, low: float = 0.0, high: float = 1.0, out: Any = None) -> Any:
    counts = np.histogram(x, bins, (low, high))[0]
    if out is None:
        return counts
    out[...] = counts
    return out


@peer(CumsumAttr)
def numpy_cumsum(attr: CumsumAttr, x: AnyArray, y: AnyArray) -> Bound:
    return partial(np.cumsum, x, -1, None, y)


@peer(CumsumAttr, name="torch")
def torch_cumsum(attr: CumsumAttr, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    return partial(torch.cumsum, torch.from_numpy(x), -1, out=torch.from_numpy(y))


@peer(HistogramAttr)
def numpy_histogram(attr: HistogramAttr, x: AnyArray, counts: AnyArray) -> Bound:
    return partial(histogram, x, attr.bins, attr.low, attr.high, counts)


@peer(HistogramAttr, name="torch")
def torch_histogram(attr: HistogramAttr, x: AnyArray, counts: AnyArray) -> Bound:
    import torch

    return partial(torch.histc, torch.from_numpy(x), attr.bins, attr.low, attr.high)


of_jax(CumsumAttr, lambda _, jax, x: jax.numpy.cumsum(x, 1))


@ordinary_calls(CumsumAttr)
def sums(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("1-D", (values(elements),))
    for axis in (0, 1, -1):
        yield OrdinaryCall(f"axis={axis}", (x,), {"axis": axis})
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(x),))
    for dtype in DTYPES:
        yield OrdinaryCall(dtype, (x.astype(dtype),))
    yield OrdinaryCall("empty", (x[:0],))
    yield from with_outs((x, -1), 2, x)


@ordinary_calls(HistogramAttr)
def histograms(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("1-D", (values(elements),))
    yield OrdinaryCall("bins, low, high", (x,), {"bins": 64, "low": 0.0, "high": 2.0})
    yield OrdinaryCall("by position", (x, 64, 0.0, 2.0))
    yield OrdinaryCall("ends that are ints", (x,), {"bins": 64, "low": 0, "high": 2})
    yield OrdinaryCall("many bins", (x, 1000, 0.0, 2.0))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(x),))
    for dtype in DTYPES:
        yield OrdinaryCall(dtype, (x.astype(dtype),))
    yield OrdinaryCall("empty", (x[:0],))
    yield OrdinaryCall("out", (x,), {"out": np.zeros(10, np.int64)})
