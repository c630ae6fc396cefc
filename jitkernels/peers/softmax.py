"""What NumPy, SciPy and torch have for SOFTMAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.peers.forms import DTYPES, LAYOUTS, shape, values, with_outs
from jitkernels.signature import AnyArray


@equivalent(SoftmaxAttr)
def softmax(x: Any, axis: int = -1, out: Any = None) -> Any:
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.divide(e, e.sum(axis=axis, keepdims=True), out=out)


@peer(SoftmaxAttr)
def numpy_softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> Bound:
    return partial(softmax, x, -1, y)


@peer(SoftmaxAttr, name="scipy")
def scipy_softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import softmax

    def into(x: AnyArray, y: AnyArray) -> None:
        y[...] = softmax(x, axis=-1)

    return partial(into, x, y)


@peer(SoftmaxAttr, name="torch")
def torch_softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> Bound:
    import torch

    return partial(torch.softmax, torch.from_numpy(x), -1, out=torch.from_numpy(y))


@ordinary_calls(SoftmaxAttr)
def distributions(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    yield OrdinaryCall("2-D", (y,))
    yield OrdinaryCall("1-D", (x,))
    yield OrdinaryCall("axis=-1", (y,), {"axis": -1})
    yield OrdinaryCall("axis by position", (y, -1))
    for dimensions in (2, 3, 4, 5):
        cube = values(shape(elements, dimensions))
        for axis in range(dimensions):
            yield OrdinaryCall(f"{dimensions}-D, axis={axis}", (cube,), {"axis": axis})
    for dtype in DTYPES[:-1]:
        yield OrdinaryCall(dtype, (y.astype(dtype),))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y),))
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("transposed, axis=0", (y.T,), {"axis": 0})
    yield OrdinaryCall("empty", (y[:0],))
    yield from with_outs((y, -1), 2, y)
    yield OrdinaryCall("axis=-1, out", (y,), {"axis": -1, "out": np.zeros_like(y)})
    yield OrdinaryCall("axis=0, out", (y,), {"axis": 0, "out": np.zeros_like(y)})
    yield OrdinaryCall("in place", (y,), {"out": y})
    room = values(elements + 1)
    yield OrdinaryCall("out overlaps", (room[:-1],), {"out": room[1:]})
