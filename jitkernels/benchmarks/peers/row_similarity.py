"""Peers of DOT, SQEUCLIDEAN and COSINE in NumPy, torch, JAX and NumKong."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.row_similarity import CosineAttr, DotAttr, PairsAttr, SqEuclideanAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, transposed, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch, stored


@equivalent(DotAttr)
def dot(x: Any, y: Any, out: Any = None) -> Any:
    return np.sum(np.multiply(x, y), axis=-1, out=out)


@equivalent(SqEuclideanAttr)
def sqeuclidean(x: Any, y: Any, out: Any = None) -> Any:
    return np.sum(np.square(np.subtract(x, y)), axis=-1, out=out)


@equivalent(CosineAttr)
def cosine(x: Any, y: Any, out: Any = None) -> Any:
    x, y = np.asarray(x), np.asarray(y)
    lengths = np.sqrt(np.sum(x * x, axis=-1)) * np.sqrt(np.sum(y * y, axis=-1))
    return np.maximum(1 - np.sum(x * y, axis=-1) / lengths, 0, out=out)


def _vecdot(x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    np.vecdot(x, y, out=z)


def _einsum_squares(x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    off = x - y
    np.vecdot(off, off, out=z)


def _vecdot_cosine(x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    lengths = np.sqrt(np.vecdot(x, x)) * np.sqrt(np.vecdot(y, y))
    np.maximum(1 - np.vecdot(x, y) / lengths, 0, out=z)


peer(DotAttr)(lambda _, x, y, z: partial(_vecdot, x, y, z))
peer(SqEuclideanAttr)(lambda _, x, y, z: partial(_einsum_squares, x, y, z))
peer(CosineAttr)(lambda _, x, y, z: partial(_vecdot_cosine, x, y, z))


def _torch(attr: PairsAttr, torch: Any, x: Any, y: Any, z: Any) -> Bound:
    def into(function: Any) -> None:
        torch.sub(function(x, y), 0, out=z) if function is not torch.linalg.vecdot else function(x, y, out=z)

    functions = {
        "dot": torch.linalg.vecdot,
        "sqeuclidean": lambda a, b: torch.square(torch.nn.functional.pairwise_distance(a, b, eps=0.0)),
        "cosine": lambda a, b: 1 - torch.nn.functional.cosine_similarity(a, b),
    }
    return partial(into, functions[attr.name])


def _numkong(attr: PairsAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> Bound | None:
    import numkong

    if attr.n == 0:
        return None
    function = {"dot": numkong.dot, "sqeuclidean": numkong.sqeuclidean, "cosine": numkong.angular}[attr.name]
    return stored(z, function, x, y)


for _schema in (DotAttr, SqEuclideanAttr, CosineAttr):
    of_torch(_schema, _torch, narrow=True)
    peer(_schema, name="numkong")(_numkong)


of_jax(DotAttr, lambda _, jax, x, y: jax.numpy.sum(x * y, 1))
of_jax(SqEuclideanAttr, lambda _, jax, x, y: jax.numpy.sum(jax.numpy.square(x - y), 1))


@partial(of_jax, CosineAttr)
def jax_cosine(attr: CosineAttr, jax: Any, x: Any, y: Any) -> Any:
    lengths = jax.numpy.sqrt(jax.numpy.sum(x * x, 1) * jax.numpy.sum(y * y, 1))
    return 1 - jax.numpy.sum(x * y, 1) / lengths


@ordinary_calls(DotAttr)
@ordinary_calls(SqEuclideanAttr)
def pairs(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(shape(elements, 2)), values(shape(elements, 2))[::-1].copy()
    one, other = values(elements), values(elements)[::-1].copy()
    result = np.zeros(len(x), np.float32)
    yield OrdinaryCall("2-D", (x, y))
    yield OrdinaryCall("1-D", (one, other))
    yield OrdinaryCall("by name", (), {"x": x, "y": y})
    for dimensions in (3, 4):
        cube = values(shape(elements, dimensions))
        yield OrdinaryCall(f"{dimensions}-D", (cube, cube[..., ::-1, ::-1].copy()))
    yield OrdinaryCall("one against many", (x[0].copy(), y))
    yield from in_dtypes(x, y)
    yield from in_layouts(x, y)
    yield OrdinaryCall("transposed", (transposed(x), y))
    yield OrdinaryCall("empty", (x[:0], y[:0]))
    yield from with_outs((x, y), 2, result)


@ordinary_calls(CosineAttr)
def angles(elements: int) -> Iterator[OrdinaryCall]:
    """Return the same calls without parallel vectors, whose results are rounding errors alone."""
    yield from (call for call in pairs(elements) if call.form != "bool")
