"""Attention over heads, with caches, masks and windows, and rotary embeddings."""

import math
from typing import Any

import numpy as np

from jitkernels.errors import ModelError
from jitkernels.onnx.element_types import dtype_of
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError, broadcast, in_trace, is_float, like, numbers

SCORES, CAPPED, BIASED, PROBABILITIES = range(4)
"""What the fourth output holds: products, those behind the soft cap, those with the mask, or their softmax."""


def _heads(x: Any, count: int | None) -> Any:
    """An array [batch, sequence, heads * size] as [batch, heads, sequence, size]."""
    if x.ndim == 4:
        return x
    if not count:
        raise ModelError("attention over three dimensions without numbers of heads")
    return np.transpose(np.reshape(x, (x.shape[0], x.shape[1], count, x.shape[2] // count)), (0, 2, 1, 3))


def _additive(mask: Any, keys: Any, dtype: Any) -> Any:
    """A mask as numbers to add; keys behind its end are masked."""
    low = dtype.type(-np.inf)
    if mask.dtype == bool:
        mask = np.where(mask, dtype.type(0), low)
    mask = mask.astype(dtype)
    missing = keys - mask.shape[-1]
    if type(missing) is not int or missing:
        rest = broadcast(low, (*mask.shape[:-1], missing))
        mask = np.concatenate([mask, rest], axis=-1)
    return mask


def _bias(q: Any, k: Any, mask: Any, offset: Any, attributes: Any) -> Any:
    """What is added to products of queries and keys; None where nothing is masked."""
    bias = None if mask is None else _additive(mask, k.shape[2], q.dtype)
    causal = attributes.get("is_causal", 0)
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if not causal and left < 0 and right < 0:
        return bias
    rows, columns = numbers(q.shape[2])[:, None], numbers(k.shape[2])[None, :]
    if getattr(offset, "ndim", 0):
        offset = np.reshape(offset, (-1, 1, 1, 1))
    distance = rows + offset - columns
    allowed = [one for one in (
        distance >= 0 if causal else None,
        distance <= left if left >= 0 else None,
        distance >= -right if right >= 0 else None,
    ) if one is not None]  # fmt: skip
    inside = allowed[0]
    for one in allowed[1:]:
        inside = inside & one
    window = np.where(inside, q.dtype.type(0), q.dtype.type(-np.inf))
    return window if bias is None else bias + window


@operator("Attention")
def attention(q: Any, k: Any, v: Any, *rest: Any, node: Any = None) -> Any:
    """The softmax of scaled products of queries and keys, times values; the keys and values with those of before."""
    mask, past_key, past_value, lengths = (*rest, *(None,) * 4)[:4]
    attributes = node.attributes
    is_flat = q.ndim == 3
    q = _heads(q, attributes.get("q_num_heads"))
    k, v = (_heads(one, attributes.get("kv_num_heads")) for one in (k, v))
    offset: Any = 0
    if past_key is not None:
        offset = past_key.shape[2]
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    elif lengths is not None:
        offset = np.reshape(lengths, (-1,)) - q.shape[2]
    present = k, v
    bias = _bias(q, k, mask, offset, attributes)
    if lengths is not None:
        inside = np.reshape(numbers(k.shape[2]), (1, 1, 1, -1)) < np.reshape(lengths, (-1, 1, 1, 1))
        padding = np.where(inside, q.dtype.type(0), q.dtype.type(-np.inf))
        bias = padding if bias is None else bias + padding
    result, scores = _attended(q, k, v, bias, attributes)
    if is_flat:
        result = np.transpose(result, (0, 2, 1, 3))
        result = np.reshape(result, (result.shape[0], result.shape[1], -1))
    return result, *present, scores


def _attended(q: Any, k: Any, v: Any, bias: Any, attributes: Any) -> tuple[Any, Any]:
    """The result for each head, and what the fourth output holds."""
    if not is_float(q) or q.dtype.name == "bfloat16":
        raise NotServedError("elements that NumPy lacks")
    scale, cap = attributes.get("scale"), attributes.get("softcap", 0.0)
    root = math.sqrt(1 / math.sqrt(int(q.shape[3])) if scale is None else scale)
    repeats = int(q.shape[1]) // int(k.shape[1])
    if repeats > 1:
        k, v = np.repeat(k, repeats, axis=1), np.repeat(v, repeats, axis=1)
    scores = np.matmul(q * like(root, q), np.transpose(k, (0, 1, 3, 2)) * like(root, k))
    shown, mode = scores, attributes.get("qk_matmul_output_mode", SCORES)
    if cap > 0:
        scores = like(cap, q) * np.tanh(scores / like(cap, q))
        shown = scores if mode == CAPPED else shown
    scores = scores if bias is None else scores + bias
    shown = scores if mode == BIASED else shown
    precision = attributes.get("softmax_precision")
    wide = scores if not precision else scores.astype(dtype_of(precision))
    largest = np.max(wide, axis=-1, keepdims=True)
    exponentials = np.exp(wide - np.where(np.isneginf(largest), like(0, wide), largest))
    total = np.sum(exponentials, axis=-1, keepdims=True)
    shares = (exponentials / np.where(total == 0, like(1, wide), total)).astype(q.dtype)
    if bias is not None:
        masked = np.isneginf(np.max(bias, axis=-1, keepdims=True))
        shares = np.where(masked, like(0, q), shares)
    return np.matmul(shares, v), shares if mode == PROBABILITIES else shown


@operator("RotaryEmbedding")
def rotary_embedding(
    x: Any, cosines: Any, sines: Any, positions: Any = None, *, interleaved: int = 0, rotary_embedding_dim: int = 0,
    num_heads: int = 0,
) -> Any:  # fmt: skip
    """Pairs of elements rotated by the angles of their positions."""
    shape, is_flat = x.shape, x.ndim == 3
    if is_flat:
        x = np.reshape(x, (x.shape[0], x.shape[1], num_heads, x.shape[2] // num_heads))
    else:
        x = np.transpose(x, (0, 2, 1, 3))
    size = rotary_embedding_dim or int(x.shape[3])
    if positions is not None:
        cosines, sines = (np.take(in_trace(one, positions), positions, axis=0) for one in (cosines, sines))
    cosines, sines = (np.expand_dims(one, 2) for one in (cosines, sines))
    head = x[..., :size]
    first, second = (
        (head[..., 0::2], head[..., 1::2]) if interleaved else (head[..., : size // 2], head[..., size // 2 :])
    )
    real, imaginary = cosines * first - sines * second, sines * first + cosines * second
    if interleaved:
        rotated = np.reshape(np.stack([real, imaginary], axis=-1), head.shape)
    else:
        rotated = np.concatenate([real, imaginary], axis=-1)
    if size < int(x.shape[3]):
        rotated = np.concatenate([rotated, x[..., size:]], axis=-1)
    return np.reshape(rotated, shape) if is_flat else np.transpose(rotated, (0, 2, 1, 3))
