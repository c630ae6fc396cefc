"""The truth about CRF_DECODING: step by step, in the dtype itself, as every sum is rounded to it."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def crf_decoding(attr: Any, x: AnyArray, w: AnyArray) -> list[AnyArray]:
    x, w = x.astype(attr.dtype), w.astype(attr.dtype)
    alpha, track = np.zeros_like(x), np.zeros(x.shape, np.int32)
    for k in range(attr.seq_len if attr.tag else 0):
        if k == 0:
            best = w[0]
        else:
            found = alpha[k - 1] + w[2:].T  # one row for each tag that is reached
            track[k] = found.argmax(axis=1)  # the first of equals; the first NaN before all
            best = found[np.arange(attr.tag), track[k]]
        alpha[k] = best + x[k]
    return [alpha.astype(WIDE), track]
