"""Peers of RMS_NORM and BATCH_NORM in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.normalization import BatchNormAttr, RmsNormAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_torch, stored_tensor


@equivalent(RmsNormAttr)
def rms_norm(x: Any, scale: Any = None, axis: int = -1, eps: float = 1e-5, out: Any = None) -> Any:
    x = np.asarray(x)
    y = x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps)
    if scale is None:
        return np.positive(y, out=out)
    behind = -1 - axis if axis < 0 else x.ndim - 1 - axis
    return np.multiply(y, np.reshape(scale, (-1,) + (1,) * behind), out=out)


@equivalent(BatchNormAttr)
def batch_norm(
    x: Any, mean: Any, var: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5, out: Any = None
) -> Any:
    x = np.asarray(x)
    column = (-1,) + (1,) * (x.ndim - 2)
    factor = 1 / np.sqrt(np.asarray(var) + eps)
    if scale is None:
        return np.multiply(x - np.reshape(mean, column), factor.reshape(column), out=out)
    y = (x - np.reshape(mean, column)) * (factor * scale).reshape(column)
    return np.add(y, np.reshape(bias, column), out=out)


@peer(RmsNormAttr)
def numpy_rms_norm(attr: RmsNormAttr, x: AnyArray, *rest: AnyArray) -> Bound:
    *scale, y = rest
    return partial(rms_norm, x, scale[0] if scale else None, 1, attr.eps, y)


@partial(of_torch, RmsNormAttr, narrow=True)
def torch_rms_norm(attr: RmsNormAttr, torch: Any, x: Any, *rest: Any) -> Bound | None:
    *scale, y = rest
    if attr.remain != 1:
        return None
    return stored_tensor(y, torch.nn.functional.rms_norm, x, (attr.n,), scale[0] if scale else None, attr.eps)


@peer(BatchNormAttr)
def numpy_batch_norm(attr: BatchNormAttr, x: AnyArray, mean: AnyArray, var: AnyArray, *rest: AnyArray) -> Bound:
    *affine, y = rest
    scale, bias = affine or (None, None)
    return partial(batch_norm, x, mean, var, scale, bias, attr.eps, y)


@partial(of_torch, BatchNormAttr)
def torch_batch_norm(attr: BatchNormAttr, torch: Any, x: Any, mean: Any, var: Any, *rest: Any) -> Bound:
    *affine, y = rest
    scale, bias = affine or (None, None)
    normalized = partial(torch.nn.functional.batch_norm, eps=attr.eps)
    return stored_tensor(y, normalized, x, mean, var, scale, bias)


@partial(of_jax, RmsNormAttr)
def jax_rms_norm(attr: RmsNormAttr, jax: Any, x: Any, scale: Any = None) -> Any:
    y = x * jax.lax.rsqrt((x * x).mean(1, keepdims=True) + attr.eps)
    return y if scale is None else y * scale.reshape(-1, *[1] * (x.ndim - 2))


@partial(of_jax, BatchNormAttr)
def jax_batch_norm(
    attr: BatchNormAttr, jax: Any, x: Any, mean: Any, var: Any, scale: Any = None, bias: Any = None
) -> Any:
    def along(each: Any) -> Any:
        return each.reshape(-1, *[1] * (x.ndim - 2))

    y = (x - along(mean)) * along(jax.lax.rsqrt(var + attr.eps))
    return y if scale is None else y * along(scale) + along(bias)


@ordinary_calls(RmsNormAttr)
def rows(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2))
    scale = values(y.shape[1])
    yield OrdinaryCall("2-D", (y, scale))
    yield OrdinaryCall("without scale", (y,))
    yield OrdinaryCall("1-D", (y[0], scale))
    yield OrdinaryCall("eps", (y, scale), {"eps": 1e-3})
    for dimensions in (2, 3, 4):
        cube = values(shape(elements, dimensions))
        for axis in range(dimensions):
            yield OrdinaryCall(f"{dimensions}-D, axis={axis}", (cube, values(cube.shape[axis])), {"axis": axis})
    yield from in_dtypes(y, fixed=(scale,), bools=False)
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y), scale))
        yield OrdinaryCall(f"{name}, axis=0", (form(y), values(y.shape[0])), {"axis": 0})
    yield OrdinaryCall("transposed", (y.T, values(y.shape[0])))
    yield OrdinaryCall("empty", (y[:0], scale))
    yield from with_outs((y, scale, -1, 1e-5), 4, y)
    yield OrdinaryCall("in place", (y, scale), {"out": y})


@ordinary_calls(BatchNormAttr)
def channels(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2))

    def four(count: int) -> tuple[AnyArray, ...]:
        return tuple(values(count) + i for i in range(4))

    each = four(y.shape[1])
    yield OrdinaryCall("2-D", (y, *each))
    yield OrdinaryCall("without scale", (y, *each[:2]))
    yield OrdinaryCall("eps", (y, *each), {"eps": 1e-3})
    for dimensions in (3, 4, 5):
        cube = values(shape(elements, dimensions))
        yield OrdinaryCall(f"{dimensions}-D", (cube, *four(cube.shape[1])))
        yield OrdinaryCall(f"{dimensions}-D, Fortran", (np.asfortranarray(cube), *four(cube.shape[1])))
    yield from in_dtypes(y, fixed=each, bools=False)
    yield from in_layouts(y, fixed=each)
    yield OrdinaryCall("transposed", (y.T, *four(y.shape[0])))
    yield OrdinaryCall("empty", (y[:0], *each))
    yield from with_outs((y, *each, 1e-5), 6, y)
    yield OrdinaryCall("in place", (y, *each), {"out": y})
