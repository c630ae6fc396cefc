"""The oracle of ATTENTION."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, exp, oracle, total


@oracle
def attention(
    attr: Any, q: AnyArray, k: AnyArray, v: AnyArray, mask: Any = None, padding: Any = None
) -> list[AnyArray]:
    if 0 in (attr.batch, attr.heads, attr.queries, attr.dv):
        return [np.zeros((attr.batch, attr.heads, attr.queries, attr.dv), WIDE)]
    lenders = np.arange(attr.heads) * attr.kv_heads // attr.heads
    factor = WIDE(attr.scale) or 1 / np.sqrt(WIDE(max(attr.d, 1)))
    scores = q @ k[:, lenders].swapaxes(-1, -2) * factor  # in long double NumPy uses its own loop, no BLAS
    for b in range(attr.batch):
        for h in range(attr.heads):
            of_head = [] if mask is None else [mask[(b * attr.heads + h) % attr.masks]]
            for one in [*of_head, *([] if padding is None else [padding[b][np.newaxis]])]:
                hidden = one < 0 if attr.masked_fill else False
                scores[b, h] = np.where(hidden, one, scores[b, h] + one)
    if attr.causal:
        for i in range(attr.queries):
            scores[..., i, max(i + 1 + attr.keys - attr.queries, 0) :] = -np.inf
    weights = exp(scores - scores.max(axis=-1, keepdims=True))
    return [weights / total(weights, -1)[..., np.newaxis] @ v[:, lenders]]
