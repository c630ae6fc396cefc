"""Peers of CDIST in NumPy, SciPy, torch and NumKong."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.cdist import CDistAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, transposed, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch, stored


@equivalent(CDistAttr)
def cdist(x: Any, y: Any, metric: str = "euclidean", out: Any = None) -> Any:
    x, y = np.asarray(x), np.asarray(y)
    if metric == "dot":
        return np.matmul(x, y.T, out=out)
    if metric == "cosine":
        lengths = np.sqrt(np.sum(x * x, axis=-1, keepdims=True)), np.sqrt(np.sum(y * y, axis=-1))
        return np.maximum(1 - x @ y.T / lengths[0] / lengths[1], 0, out=out)
    differences = x[..., np.newaxis, :] - y
    squares = np.square(differences).sum(axis=-1)
    return np.sqrt(squares, out=out) if metric == "euclidean" else np.positive(squares, out=out)


@peer(CDistAttr)
def numpy_cdist(attr: CDistAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound | None:
    if attr.m * attr.n * attr.d > 1 << 26 and attr.metric not in ("dot", "cosine"):
        return None  # a temporary of gigabytes
    return partial(cdist, x, y, attr.metric, z)


@peer(CDistAttr, name="scipy")
def scipy_cdist(attr: CDistAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound | None:
    from scipy.spatial.distance import cdist

    if attr.metric == "dot" or 0 in (attr.m, attr.n, attr.d):
        return None
    return stored(z, cdist, x, y, attr.metric)


@partial(of_torch, CDistAttr)
def torch_cdist(attr: CDistAttr, torch: Any, x: Any, y: Any, z: Any) -> Bound:
    if attr.metric == "dot":
        return partial(torch.matmul, x, y.T, out=z)
    if attr.metric == "cosine":

        def cosine() -> None:
            normal = torch.nn.functional.normalize
            torch.matmul(normal(x, eps=0.0), normal(y, eps=0.0).T, out=z)
            torch.sub(1, z, out=z)

        return partial(cosine)

    def into() -> None:
        distances = torch.cdist(x, y)
        z.copy_(distances if attr.metric == "euclidean" else torch.square(distances))

    return partial(into)


@peer(CDistAttr, name="numkong")
def numkong_cdist(attr: CDistAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound | None:
    import numkong

    if 0 in (attr.m, attr.n, attr.d):
        return None
    return stored(z, numkong.cdist, x, y, {"cosine": "angular"}.get(attr.metric, attr.metric))


@ordinary_calls(CDistAttr)
def distances(elements: int) -> Iterator[OrdinaryCall]:
    x = values(shape(elements, 2))
    y = values(x.shape)[::-1, ::-1].copy()
    result = np.zeros((len(x), len(y)), np.float32)
    yield OrdinaryCall("2-D", (x, y))
    for metric in ("sqeuclidean", "cosine", "dot"):
        yield OrdinaryCall(metric, (x, y), {"metric": metric})
    yield OrdinaryCall("metric by position", (x, y, "dot"))
    yield OrdinaryCall("one row", (x[0].copy(), y))
    cube = values(shape(elements, 3))
    yield OrdinaryCall("3-D against 2-D", (cube, values((3, cube.shape[-1]))[::-1].copy()))
    yield from in_dtypes(x, y)
    yield from in_layouts(x, y)
    yield OrdinaryCall("transposed", (transposed(x), y))
    yield OrdinaryCall("empty", (x[:0], y))
    yield from with_outs((x, y, "sqeuclidean"), 3, result)
