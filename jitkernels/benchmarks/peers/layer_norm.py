"""Peers of LAYER_NORM in NumPy, torch, JAX and onnxruntime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_onnxruntime, of_torch, stored_tensor


@equivalent(LayerNormAttr)
def layer_norm(
    x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5, stats: bool = False, axis: int = -1, out: Any = None
) -> Any:
    if axis != -1:
        return _along(x, scale, bias, eps, stats, axis, out)
    x = np.asarray(x)
    y, *moments = out if stats and out is not None else (out,)
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    deviation = np.sqrt(variance + eps)
    whole = (centred, deviation) if scale is None else (centred / deviation * scale, bias)
    y = (np.divide if scale is None else np.add)(*whole, out=y)
    if not stats:
        return y
    if out is None:
        return y, mean[..., 0], variance[..., 0]
    for result, value in zip(moments, (mean, variance), strict=True):
        np.copyto(result, value[..., 0])
    return out


def _along(x: Any, scale: Any, bias: Any, eps: float, stats: bool, axis: int, out: Any) -> Any:
    """Normalize along an axis other than the last by moving that axis."""
    results = layer_norm(np.moveaxis(np.asarray(x), axis, -1), scale, bias, eps, stats)
    y, *moments = results if stats else (results,)
    normalized = (np.moveaxis(y, -1, axis), *moments)
    if out is None:
        return normalized if stats else normalized[0]
    for result, value in zip(out if stats else (out,), normalized, strict=True):
        np.copyto(result, value)
    return out


@peer(LayerNormAttr)
def numpy_layer_norm(attr: LayerNormAttr, x: AnyArray, *rest: AnyArray) -> Bound:
    parameters, results = rest[: 2 * attr.affine], rest[2 * attr.affine :]
    scale, bias = parameters or (None, None)
    out = results if attr.stats else results[0]
    return partial(layer_norm, x, scale, bias, attr.eps, attr.stats, out=out)


@partial(of_torch, LayerNormAttr)
def torch_layer_norm(attr: LayerNormAttr, torch: Any, x: Any, *rest: Any) -> Bound | None:
    if attr.stats:
        return None  # it returns the mean, and one over the deviation
    *parameters, y = rest
    scale, bias = parameters or (None, None)
    return stored_tensor(y, torch.nn.functional.layer_norm, x, (attr.n,), scale, bias, attr.eps)


@partial(of_jax, LayerNormAttr)
def jax_layer_norm(attr: LayerNormAttr, jax: Any, x: Any, scale: Any = 1.0, bias: Any = 0.0) -> Any:
    centred = x - x.mean(1, keepdims=True)
    variance = (centred * centred).mean(1, keepdims=True)
    y = centred * jax.lax.rsqrt(variance + attr.eps) * scale + bias
    return (y, x.mean(1), variance[:, 0]) if attr.stats else y


@partial(of_onnxruntime, LayerNormAttr)
def onnxruntime_layer_norm(attr: LayerNormAttr) -> Any:
    if attr.stats or not attr.affine or attr.n == 1:  # of one element, onnxruntime 1.32 returns NaN
        return None
    return "LayerNormalization", ("x", "scale", "bias"), {"epsilon": attr.eps}


@ordinary_calls(LayerNormAttr)
def norms(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2))
    scale, bias = values(y.shape[1]), values(y.shape[1])
    yield OrdinaryCall("affine", (y, scale, bias))
    yield OrdinaryCall("plain", (y,))
    yield OrdinaryCall("1-D", (values(elements), values(elements), values(elements)))
    for dimensions in (3, 4, 5):
        cube = values(shape(elements, dimensions))
        n = cube.shape[-1]
        yield OrdinaryCall(f"{dimensions}-D", (cube, values(n), values(n)))
    yield OrdinaryCall("eps=1e-5", (y, scale, bias), {"eps": 1e-5})
    yield OrdinaryCall("eps=1e-3", (y, scale, bias), {"eps": 1e-3})
    yield OrdinaryCall("eps by position", (y, scale, bias, 1e-3))
    yield OrdinaryCall("plain, eps=1e-3", (y,), {"eps": 1e-3})
    yield OrdinaryCall("scale and bias by name", (y,), {"scale": scale, "bias": bias})
    yield from in_dtypes(y, scale, bias, bools=False)
    yield OrdinaryCall("float32, affine float64", (y, scale.astype(np.float64), bias.astype(np.float64)))
    yield from in_layouts(y, scale, bias)
    square = values((y.shape[1], y.shape[0])).T
    yield OrdinaryCall("transposed", (square, scale, bias))
    yield OrdinaryCall("empty", (y[:0], scale, bias))
    yield from with_outs((y, scale, bias, 1e-5, False, -1), 6, y)
    yield OrdinaryCall("stats", (y, scale, bias), {"stats": True})
    yield OrdinaryCall("plain, stats", (y,), {"stats": True})
    moments = np.zeros_like(y[:, 0]), np.zeros_like(y[:, 0])
    yield OrdinaryCall("stats, out", (y, scale, bias), {"stats": True, "out": (np.zeros_like(y), *moments)})
    rows = values(y.shape[0]), values(y.shape[0])
    yield OrdinaryCall("axis=0", (y, *rows), {"axis": 0})
    yield OrdinaryCall("axis=0, stats", (y, *rows), {"axis": 0, "stats": True})
    yield OrdinaryCall("plain, axis=1 of 3", (values(shape(elements, 3)),), {"axis": 1})
    yield OrdinaryCall("affine, out", (y, scale, bias), {"out": np.zeros_like(y)})
    yield OrdinaryCall("eps=1e-5, out", (y, scale, bias), {"eps": 1e-5, "out": np.zeros_like(y)})
    yield OrdinaryCall("plain, out", (y,), {"out": np.zeros_like(y)})
    yield OrdinaryCall("in place", (y, scale, bias), {"out": y})
