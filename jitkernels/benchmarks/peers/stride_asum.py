"""Peers of STRIDE_ASUM in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.stride_asum import StrideASumAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import DTYPES, LAYOUTS, shape, values, with_outs


@equivalent(StrideASumAttr)
def stride_asum(x: Any, stride: int = 1, out: Any = None) -> Any:
    return np.abs(np.asarray(x)[..., ::stride]).sum(axis=-1, out=out)


@peer(StrideASumAttr)
def numpy_stride_asum(attr: StrideASumAttr, x: AnyArray, y: AnyArray) -> Bound:
    return partial(stride_asum, x, attr.stride, y)


@peer(StrideASumAttr, name="torch")
def torch_stride_asum(attr: StrideASumAttr, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    chosen = torch.from_numpy(x)[:, :: attr.stride]
    return partial(torch.linalg.vector_norm, chosen, 1, 1, out=torch.from_numpy(y))


@ordinary_calls(StrideASumAttr)
def sums(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    yield OrdinaryCall("1-D", (x,))
    yield OrdinaryCall("2-D", (y,))
    for stride in (2, 3, 10):
        yield OrdinaryCall(f"stride={stride}", (x,), {"stride": stride})
        yield OrdinaryCall(f"{stride} by position", (y, stride))
    for dtype in DTYPES[:-1]:
        yield OrdinaryCall(dtype, (y.astype(dtype),))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y),))
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("empty", (y[:0],))
    yield from with_outs((y, 1), 2, np.zeros(y.shape[0], y.dtype))
