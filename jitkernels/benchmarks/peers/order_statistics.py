"""Peers of ORDER_STATISTICS in NumPy."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.order_statistics import OrderStatisticsAttr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values


@equivalent(OrderStatisticsAttr)
def order_statistics(x: Any, k: Any, out: Any = None) -> Any:
    """Partition at each index, which is faster than a full sort."""
    found = np.partition(x, k)[..., k] if len(k) else np.empty((*x.shape[:-1], 0), x.dtype)
    if out is None:
        return found
    out[...] = found
    return out


peer(OrderStatisticsAttr)(lambda _, x, k, y: partial(order_statistics, x, k, y))


@ordinary_calls(OrderStatisticsAttr)
def statistics(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    middle = np.array([(x.shape[-1] - 1) // 2, x.shape[-1] // 2])
    yield OrdinaryCall("2-D", (x, middle))
    yield OrdinaryCall("1-D", (values(elements), np.array([elements // 2])))
    yield from in_layouts(x, fixed=(middle,))
    yield from in_dtypes(x, fixed=(middle,))
    yield OrdinaryCall("out", (x, middle), {"out": order_statistics(x, middle)})
