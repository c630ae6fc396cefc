"""ATTENTION, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "attention": {
        "scale is not applied": ("* factor", "* 1"),
        "scale of 0 is 0": ("attr.scale or", "attr.scale + 0 *"),
        "scale by d instead of its root": ("max(attr.d, 1) ** -0.5", "max(attr.d, 1) ** -1"),
        "sign of the scale is lost": ("attr.scale or", "abs(attr.scale) or"),
        "heads take keys in turn": ("numbers * attr.kv_heads // attr.heads", "numbers % attr.kv_heads"),
        "mask of the batch entry": ("np.arange(attr.batch * attr.heads)", "np.arange(attr.batch).repeat(attr.heads)"),
        "mask is left out": ("if attr.masked:", "if False:"),
        "hidden scores are added": (" & attr.masked_fill", " & False"),
        "padding is left out": ("if attr.padded:", "if False:"),
        "padding of the first batch entry": ("masks[-1][:, ", "masks[-1][:1, "),
        "causal by the first ones": ("i + 1 + attr.keys - attr.queries", "i + 1"),
        "causal hides the query's own key": ("i + 1 + attr.keys", "i + attr.keys"),
        "not causal": ("if attr.causal:", "if False:"),
        "no maximum": ("scores - scores.max(axis=-1, keepdims=True)", "scores.astype(q.dtype)"),
        "zeros where all is hidden": ("weights /= total", "weights = np.nan_to_num(weights / total)"),
        "sum without the last weight": ("weights.sum(", "weights[..., : max(attr.keys - 1, 1)].sum("),
        "last column of the values is lost": ("@ v[:, lenders]", "@ (v * (np.arange(attr.dv) % 8 < 7))[:, lenders]"),
        "half precision on the way": ("weights /= total", "weights = (weights / total).astype('f2').astype(q.dtype)"),
    }
}


def attention(attr: Any, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> None:
    *masks, out = rest
    if out.size == 0:
        return
    numbers, factor = np.arange(attr.heads), WIDE(attr.scale or max(attr.d, 1) ** -0.5)
    lenders = numbers * attr.kv_heads // attr.heads
    scores = q.astype(WIDE) @ k[:, lenders].swapaxes(-1, -2) * factor
    added = []
    if attr.masked:
        added.append(masks[0][np.arange(attr.batch * attr.heads) % attr.masks].reshape(scores.shape))
    if attr.padded:
        added.append(masks[-1][:, np.newaxis, np.newaxis, :])
    for mask in added:
        scores = np.where((mask < 0) & attr.masked_fill, mask, scores + mask)
    if attr.causal:
        for i in range(attr.queries):
            scores[..., i, max(i + 1 + attr.keys - attr.queries, 0) :] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    weights /= total
    out[...] = weights @ v[:, lenders]
