"""NumPy reference of ATTENTION."""

import numpy as np

from jitkernels.attrs.attention import AttentionAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(AttentionAttr)
def attention(attr: AttentionAttr, q: AnyArray, k: AnyArray, v: AnyArray, *rest: AnyArray) -> None:
    *masks, out = rest
    if out.size == 0:
        return
    with np.errstate(all="ignore"):
        scores = attr.apply_mask(attr.scores(q, k) * attr.factor, masks)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        out[...] = attr.weighted(weights, v)
