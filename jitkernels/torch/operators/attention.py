"""Attention by the softmax of scaled products of queries with keys, and its gradients."""

import math
from typing import Any

import numpy as np

from jitkernels.torch.array_values import highest, like, numbers
from jitkernels.torch.aten_table import operator


def _scores(query: Any, key: Any, is_causal: bool, mask: Any, scale: float | None) -> tuple[Any, float]:
    """Masked and scaled products, and the scale."""
    factor = 1 / math.sqrt(int(query.shape[-1])) if scale is None else scale
    scores = np.matmul(query * like(factor, query), np.swapaxes(key, -1, -2))
    lowest = like(-np.inf, scores)
    if is_causal:
        rows, columns = numbers(scores.shape[-2])[:, None], numbers(scores.shape[-1])[None, :]
        scores = np.where(rows >= columns, scores, lowest)
    if mask is not None:
        scores = np.where(mask, scores, lowest) if mask.dtype == bool else scores + mask
    return scores, factor


def _require_no_dropout(dropout_p: float) -> None:
    if dropout_p:
        raise NotImplementedError("dropout of attention weights")


@operator("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, attn_mask: Any = None,
    scale: float | None = None,
) -> Any:  # fmt: skip
    """The weighted values, and the logarithms of the sums of exponentials."""
    _require_no_dropout(dropout_p)
    scores, _ = _scores(query, key, is_causal, attn_mask, scale)
    most = highest(scores, (-1,))
    most = np.where(most == -np.inf, like(0, most), most)
    weights = np.exp(scores - most)
    sums = np.sum(weights, axis=-1, keepdims=True)
    divisor = np.where(sums == 0, like(1, sums), sums)
    return np.matmul(weights / divisor, value), np.squeeze(np.log(sums) + most, -1)


@operator("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    dy: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout_p: float, is_causal: bool,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    """The cotangents of queries, keys and values (Dao et al., FlashAttention, 2022, appendix B.4)."""
    _require_no_dropout(dropout_p)
    scores, factor = _scores(query, key, is_causal, attn_mask, scale)
    sums = np.where(logsumexp == -np.inf, like(0, logsumexp), logsumexp)  # of rows that are masked altogether
    weights = np.exp(scores - np.expand_dims(sums, -1))
    dweights = np.matmul(dy, np.swapaxes(value, -1, -2))
    dscores = weights * (dweights - np.sum(dy * out, axis=-1, keepdims=True)) * like(factor, query)
    dquery, dkey = np.matmul(dscores, key), np.matmul(np.swapaxes(dscores, -1, -2), query)
    return dquery, dkey, np.matmul(np.swapaxes(weights, -1, -2), dy)
