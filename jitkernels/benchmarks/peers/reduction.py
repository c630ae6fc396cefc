"""Peers of the reductions along one axis in NumPy, torch, JAX, numexpr and scipy."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.reduction import HArgMaxAttr, HLogSumExpAttr, HMaxAttr, HMeanAttr, HMinAttr, HSumAttr, HVarAttr
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import DTYPES, LAYOUTS, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch, stored


@equivalent(HVarAttr)
def hvar(x: Any, axis: int = -1, ddof: float = 0.0, out: Any = None) -> Any:
    return np.var(x, axis=axis, ddof=ddof, out=out)


@equivalent(HLogSumExpAttr)
def hlogsumexp(x: Any, axis: int = -1, out: Any = None) -> Any:
    x = np.asarray(x)
    largest = x.max(axis=axis, keepdims=True)
    return np.add(np.log(np.exp(x - largest).sum(axis=axis)), np.squeeze(largest, axis), out=out)


def _of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, axis: int = -1, out: Any = None) -> Any:
        return function(x, axis=axis, out=out)

    return call


PLAIN: dict[type[KernelAttr], Callable[..., Any]] = {
    HMaxAttr: np.max, HMinAttr: np.min, HArgMaxAttr: np.argmax, HSumAttr: np.sum, HMeanAttr: np.mean,
}  # fmt: skip
"""Rows with a NumPy function."""
OF_TORCH: dict[type[KernelAttr], str] = {
    HMaxAttr: "amax", HMinAttr: "amin", HArgMaxAttr: "argmax", HSumAttr: "sum", HMeanAttr: "mean",
}  # fmt: skip
OF_NUMEXPR: dict[type[KernelAttr], str] = {HMaxAttr: "max", HMinAttr: "min", HSumAttr: "sum"}


def _numpy(function: Callable[..., Any], attr: Any, x: AnyArray, y: AnyArray) -> Bound:
    return partial(function, x, 1, out=y)


def _torch(name: str, attr: Any, torch: Any, x: Any, y: Any) -> Bound:
    return partial(getattr(torch, name), x, 1, out=y)


def _numexpr(name: str, attr: Any, x: AnyArray, y: AnyArray) -> Bound:
    import numexpr

    return partial(numexpr.evaluate, f"{name}(x, axis=1)", {"x": x}, {}, out=y)


def _jax(name: str, attr: Any, jax: Any, x: Any) -> Any:
    return getattr(jax.numpy, name)(x, 1)


of_jax(HVarAttr, lambda attr, jax, x: jax.numpy.var(x, 1, ddof=attr.ddof))
of_jax(HLogSumExpAttr, lambda _, jax, x: jax.scipy.special.logsumexp(x, 1))
peer(HVarAttr)(lambda attr, x, y: partial(np.var, x, 1, ddof=attr.ddof, out=y))
of_torch(HVarAttr, lambda attr, torch, x, y: partial(torch.var, x, 1, correction=attr.ddof, out=y))
peer(HLogSumExpAttr)(lambda _, x, y: partial(hlogsumexp, x, 1, y))


@peer(HLogSumExpAttr, name="scipy")
def scipy_hlogsumexp(attr: HLogSumExpAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import logsumexp

    return stored(y, logsumexp, x, 1)


of_torch(HLogSumExpAttr, lambda _, torch, x, y: partial(torch.logsumexp, x, 1, out=y))


def reductions(row: type[KernelAttr], elements: int) -> Iterator[OrdinaryCall]:
    """Return vectors, matrices and arrays of higher rank, along every axis, in every layout."""
    x, y = values(elements), values(shape(elements, 2))
    result = np.zeros(y.shape[0], np.int64 if row is HArgMaxAttr else y.dtype)
    yield OrdinaryCall("2-D", (y,))
    yield OrdinaryCall("1-D", (x,))
    yield OrdinaryCall("axis by position", (y, -1))
    for dimensions in (2, 3, 4):
        cube = values(shape(elements, dimensions))
        for axis in range(dimensions):
            yield OrdinaryCall(f"{dimensions}-D, axis={axis}", (cube,), {"axis": axis})
            yield OrdinaryCall(f"{dimensions}-D, Fortran, axis={axis}", (np.asfortranarray(cube),), {"axis": axis})
    for dtype in DTYPES[:-1]:
        yield OrdinaryCall(dtype, (y.astype(dtype),))
        yield OrdinaryCall(f"{dtype}, axis=0", (y.astype(dtype),), {"axis": 0})
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y),))
        yield OrdinaryCall(f"{name}, axis=0", (form(y),), {"axis": 0})
    yield OrdinaryCall("one row", (x[np.newaxis],))
    yield OrdinaryCall("one column", (x[:, np.newaxis],))
    yield OrdinaryCall("one column, axis=0", (x[:, np.newaxis],), {"axis": 0})
    yield OrdinaryCall("empty", (y[:0],))
    if row is HArgMaxAttr:
        yield OrdinaryCall("out", (y,), {"out": result})
    else:
        yield from with_outs((y, -1), 99, result)
    yield OrdinaryCall("axis=0, out", (y,), {"axis": 0, "out": np.zeros(y.shape[1], result.dtype)})


for _schema in (*PLAIN, HVarAttr, HLogSumExpAttr):
    ordinary_calls(_schema)(partial(reductions, _schema))
for _schema, _function in PLAIN.items():
    equivalent(_schema)(_of_numpy(_function))
    peer(_schema)(partial(_numpy, _function))
    of_torch(_schema, partial(_torch, OF_TORCH[_schema]))
    of_jax(_schema, partial(_jax, _function.__name__))
    if _schema in OF_NUMEXPR:
        peer(_schema, name="numexpr")(partial(_numexpr, OF_NUMEXPR[_schema]))
