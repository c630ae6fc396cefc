"""Peers of STRIDE_ASUM in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.stride_asum import StrideASumAttr
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(StrideASumAttr)
def stride_asum(x: Any, stride: int = 1, out: Any = None) -> Any:
    return np.abs(np.asarray(x)[..., ::stride]).sum(axis=-1, out=out)


peer(StrideASumAttr)(lambda attr, x, y: partial(stride_asum, x, attr.stride, y))
of_torch(StrideASumAttr, lambda attr, torch, x, y: partial(torch.linalg.vector_norm, x[:, :: attr.stride], 1, 1, out=y))


@ordinary_calls(StrideASumAttr)
def sums(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    yield OrdinaryCall("1-D", (x,))
    yield OrdinaryCall("2-D", (y,))
    for stride in (2, 3, 10):
        yield OrdinaryCall(f"stride={stride}", (x,), {"stride": stride})
        yield OrdinaryCall(f"{stride} by position", (y, stride))
    yield from in_dtypes(y, bools=False)
    yield from in_layouts(y)
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("empty", (y[:0],))
    yield from with_outs((y, 1), 2, np.zeros(y.shape[0], y.dtype))
