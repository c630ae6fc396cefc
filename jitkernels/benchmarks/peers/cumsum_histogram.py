"""Peers of CUMSUM and HISTOGRAM in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.cumsum_histogram import CumsumAttr, HistogramAttr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch


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


peer(CumsumAttr)(lambda _, x, y: partial(np.cumsum, x, -1, None, y))
of_torch(CumsumAttr, lambda _, torch, x, y: partial(torch.cumsum, x, -1, out=y))
peer(HistogramAttr)(lambda attr, x, counts: partial(histogram, x, attr.bins, attr.low, attr.high, counts))
of_torch(HistogramAttr, lambda attr, torch, x, _counts: partial(torch.histc, x, attr.bins, attr.low, attr.high))
of_jax(CumsumAttr, lambda _, jax, x: jax.numpy.cumsum(x, 1))


@ordinary_calls(CumsumAttr)
def sums(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    yield OrdinaryCall("2-D", (x,))
    yield OrdinaryCall("1-D", (values(elements),))
    for axis in (0, 1, -1):
        yield OrdinaryCall(f"axis={axis}", (x,), {"axis": axis})
    yield from in_layouts(x)
    yield from in_dtypes(x)
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
    yield from in_layouts(x)
    yield from in_dtypes(x)
    yield OrdinaryCall("empty", (x[:0],))
    yield OrdinaryCall("out", (x,), {"out": np.zeros(10, np.int64)})
