"""The oracle of CRF_DECODING: step by step, in the dtype itself, as every sum is rounded to it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def crf_decoding(attr: Any, x: AnyArray, w: AnyArray) -> list[AnyArray]:
    x, w = x.astype(attr.dtype), w.astype(attr.dtype)
    alpha, track = np.zeros_like(x), np.zeros(x.shape, np.int32)
    for k in range(attr.seq_len if attr.tag else 0):
        if k == 0:
            best = w[0]
        else:
            scores = alpha[k - 1] + w[2:].T  # a row for each target tag
            track[k] = scores.argmax(axis=1)  # the first of ties; the first NaN before all
            best = scores[np.arange(attr.tag), track[k]]
        alpha[k] = best + x[k]
    return [alpha.astype(WIDE), track]
