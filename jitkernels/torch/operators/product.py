"""Products of matrices, and attention."""

import math
from typing import Any

import numpy as np

from jitkernels.torch.array_values import like
from jitkernels.torch.operator_registry import operator


@operator("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default")
def matmul(x: Any, y: Any) -> Any:
    return np.matmul(x, y)


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * like(factor, x)


@operator("addmm.default", "baddbmm.default", "addmv.default")
def addmm(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(np.matmul(x, y), alpha)
    return product if beta == 0 else product + _scaled(addend, beta)


@operator("addbmm.default")
def addbmm(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(np.sum(np.matmul(x, y), axis=0), alpha)
    return product if beta == 0 else product + _scaled(addend, beta)


@operator("_addmm_activation.default")
def addmm_activation(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False) -> Any:
    from jitkernels.torch.operators.elementwise import gelu

    total = addmm(addend, x, y, beta, alpha)
    return gelu(total) if use_gelu else np.maximum(total, like(0, total))


@operator("linear.default")
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.transpose(weight))
    return product if bias is None else product + bias


@operator("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, attn_mask: Any = None,
    scale: float | None = None,
) -> Any:  # fmt: skip
    """The softmax of scaled products of queries with keys, times values, and the logarithm of its sums."""
    if dropout_p:
        raise NotImplementedError("dropout of attention weights")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = np.matmul(query * like(factor, query), np.swapaxes(key, -1, -2))
    if is_causal:
        rows, columns = np.arange(scores.shape[-2])[:, None], np.arange(scores.shape[-1])[None, :]
        scores = np.where(rows >= columns, scores, like(-np.inf, scores))
    if attn_mask is not None:
        if attn_mask.dtype == bool:
            scores = np.where(attn_mask, scores, like(-np.inf, scores))
        else:
            scores = scores + attn_mask
    most = np.max(scores, axis=-1, keepdims=True)
    most = np.where(most == -np.inf, like(0, most), most)
    weights = np.exp(scores - most)
    sums = np.sum(weights, axis=-1, keepdims=True)
    sums = np.where(sums == 0, like(1, sums), sums)
    return np.matmul(weights / sums, value), np.squeeze(np.log(sums) + most, -1)
