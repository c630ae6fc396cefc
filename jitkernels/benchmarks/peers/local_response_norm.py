"""Peers of LOCAL_RESPONSE_NORM in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.local_response_norm import LocalResponseNormAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(LocalResponseNormAttr)
def local_response_norm(
    x: Any, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, out: Any = None
) -> Any:
    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    padded = np.pad(np.square(x), (*((0, 0),) * (x.ndim - 1), ((size - 1) // 2, size // 2)))
    sums = np.lib.stride_tricks.sliding_window_view(padded, size, axis=-1).sum(axis=-1)
    return np.divide(x, (bias + alpha / size * sums) ** beta, out=out)


@peer(LocalResponseNormAttr)
def numpy_local_response(attr: LocalResponseNormAttr, x: AnyArray, y: AnyArray) -> Bound:
    own = {name: value for name, value in attr.fields().items() if name in attr.options}
    return partial(local_response_norm, x, out=y, **own)


@partial(of_torch, LocalResponseNormAttr)
def torch_local_response(attr: LocalResponseNormAttr, torch: Any, x: Any, y: Any) -> Bound | None:
    """Give torch the channels as its second dimension; of an even number of neighbours it has one more before."""
    if not x.numel() or attr.size % 2 == 0:
        return None
    normalized = torch.nn.functional.local_response_norm

    def call() -> None:
        y.copy_(normalized(x[..., None], attr.size, attr.alpha, attr.beta, attr.bias)[..., 0])

    return partial(call)


@ordinary_calls(LocalResponseNormAttr)
def rows(elements: int) -> Iterator[OrdinaryCall]:
    x = values((2, 3, 4, 1 + elements % 7))
    yield OrdinaryCall("plain", (x,))
    yield OrdinaryCall("by name", (x,), {"size": 3, "alpha": 0.5, "beta": 0.5, "bias": 2.0})
    yield OrdinaryCall("any power", (x, 4, 1.0, 0.6, 0.5))
    yield OrdinaryCall("one row", (x[0, 0, 0],))
    yield OrdinaryCall("no row", (x[:0],))
    yield from in_dtypes(x)
    yield from in_layouts(x, label="all {}")
    yield from with_outs((x,), 6, np.zeros(x.shape, np.float32))
