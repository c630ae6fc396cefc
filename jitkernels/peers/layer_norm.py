"""What NumPy, torch, JAX and onnxruntime have for LAYER_NORM."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.peers.compiled import of_jax, of_onnxruntime
from jitkernels.peers.forms import DTYPES, LAYOUTS, shape, values, with_outs
from jitkernels.signature import AnyArray


@equivalent(LayerNormAttr)
def layer_norm(x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5, out: Any = None) -> Any:
    x = np.asarray(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    if scale is None:
        return np.divide(centred, deviation, out=out)
    return np.add(centred / deviation * scale, bias, out=out)


@peer(LayerNormAttr)
def numpy_layer_norm(attr: LayerNormAttr, x: AnyArray, *rest: AnyArray) -> Bound:
    *parameters, y = rest
    scale, bias = parameters or (None, None)
    return partial(layer_norm, x, scale, bias, attr.eps, y)


@peer(LayerNormAttr, name="torch")
def torch_layer_norm(attr: LayerNormAttr, x: AnyArray, *rest: AnyArray) -> Bound:
    import torch

    *parameters, y = (torch.from_numpy(array) for array in rest)
    scale, bias = parameters or (None, None)

    def into(x: Any, n: tuple[int], scale: Any, bias: Any, eps: float, y: Any) -> None:
        y.copy_(torch.nn.functional.layer_norm(x, n, scale, bias, eps))

    return partial(into, torch.from_numpy(x), (attr.n,), scale, bias, attr.eps, y)


@partial(of_jax, LayerNormAttr)
def jax_layer_norm(attr: LayerNormAttr, jax: Any, x: Any, scale: Any = 1.0, bias: Any = 0.0) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(1, keepdims=True) + attr.eps) * scale + bias


@partial(of_onnxruntime, LayerNormAttr)
def onnxruntime_layer_norm(attr: LayerNormAttr) -> Any:
    return ("LayerNormalization", ("x", "scale", "bias"), {"epsilon": attr.eps}) if attr.affine else None


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
    for dtype in DTYPES[:-1]:
        yield OrdinaryCall(dtype, tuple(array.astype(dtype) for array in (y, scale, bias)))
    yield OrdinaryCall("float32, affine float64", (y, scale.astype(np.float64), bias.astype(np.float64)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y), form(scale), form(bias)))
    square = values((y.shape[1], y.shape[0])).T
    yield OrdinaryCall("transposed", (square, scale, bias))
    yield OrdinaryCall("empty", (y[:0], scale, bias))
    yield from with_outs((y, scale, bias, 1e-5), 4, y)
    yield OrdinaryCall("affine, out", (y, scale, bias), {"out": np.zeros_like(y)})
    yield OrdinaryCall("eps=1e-5, out", (y, scale, bias), {"eps": 1e-5, "out": np.zeros_like(y)})
    yield OrdinaryCall("plain, out", (y,), {"out": np.zeros_like(y)})
    yield OrdinaryCall("in place", (y, scale, bias), {"out": y})
