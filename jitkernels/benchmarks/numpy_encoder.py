"""The encoder of the benchmark ``transformers`` as a NumPy function, and the same in torch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.transformer_models import Transformer

EPSILON = np.float32(1e-5)


class EncoderLayer(NamedTuple):
    """The weights of a layer: matrices [inputs, outputs], biases, and factors and shifts of layer norms."""

    queries: Any
    keys: Any
    values: Any
    attended: Any
    grown: Any
    shrunk: Any
    biases: Any
    norms: Any


def weights_of(sizes: Transformer, seed: int = 0) -> list[EncoderLayer]:
    """Random weights."""
    rng = np.random.default_rng(seed)
    hidden, inner = sizes.hidden, sizes.inner
    shapes = (*[(hidden, hidden)] * 4, (hidden, inner), (inner, hidden))

    def vector(size: int, mean: float) -> AnyArray:
        return (mean + 0.1 * rng.standard_normal(size)).astype(np.float32)

    def matrix(shape: tuple[int, int]) -> Any:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return [
        EncoderLayer._make(
            (
                *map(matrix, shapes),
                tuple(vector(shape[1], 0.0) for shape in shapes),
                tuple(vector(hidden, mean) for mean in (1.0, 0.0, 1.0, 0.0)),
            )
        )
        for _ in range(sizes.layers)
    ]


def layer_norm(x: Any, factor: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + EPSILON)
    return centred / deviation * factor + shift


def of_heads(y: Any, heads: int) -> Any:
    """[batch, tokens, hidden] as [batch, heads, tokens, size]."""
    batch, length, hidden = y.shape
    return y.reshape(batch, length, heads, hidden // heads).swapaxes(1, 2)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def encoder(x: AnyArray, layers: Sequence[EncoderLayer], heads: int) -> AnyArray:
    """Layers of attention and a network of two matrices, each with its residual and layer norm behind it."""
    for layer in layers:
        b = layer.biases
        q = of_heads(x @ layer.queries + b[0], heads)
        k = of_heads(x @ layer.keys + b[1], heads)
        v = of_heads(x @ layer.values + b[2], heads)
        attended = attention(q, k, v).swapaxes(1, 2).reshape(x.shape)
        x = layer_norm(attended @ layer.attended + b[3] + x, layer.norms[0], layer.norms[1])
        grown = jk.vgelu(x @ layer.grown + b[4])
        x = layer_norm(grown @ layer.shrunk + b[5] + x, layer.norms[2], layer.norms[3])
    return x


def in_torch(x: AnyArray, layers: Sequence[EncoderLayer], heads: int, threads: int) -> Callable[[], Any]:
    """The same as a function of torch, operation by operation."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    tensors = [
        EncoderLayer._make(
            (
                *(torch.from_numpy(np.ascontiguousarray(matrix.T)) for matrix in layer[:6]),
                tuple(map(torch.from_numpy, layer.biases)),
                tuple(map(torch.from_numpy, layer.norms)),
            )
        )
        for layer in layers
    ]
    first = torch.from_numpy(x)
    hidden = x.shape[-1]

    def call() -> Any:
        with torch.no_grad():
            x: Any = first
            for layer in tensors:
                matrices, b, norms = layer[:3], layer.biases, layer.norms
                q, k, v = (
                    functional.linear(x, matrix, bias).view(*x.shape[:2], heads, -1).transpose(1, 2)
                    for matrix, bias in zip(matrices, b[:3], strict=True)
                )
                attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
                x = functional.linear(attended, layer.attended, b[3]) + x
                x = functional.layer_norm(x, (hidden,), norms[0], norms[1], float(EPSILON))
                grown = functional.gelu(functional.linear(x, layer.grown, b[4]))
                x = functional.linear(grown, layer.shrunk, b[5]) + x
                x = functional.layer_norm(x, (hidden,), norms[2], norms[3], float(EPSILON))
            return x

    return call
