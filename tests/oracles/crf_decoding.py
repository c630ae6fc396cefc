"""The truth about CRF_DECODING: one predecessor after the other, in the dtype itself, as every sum is rounded to it."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def crf_decoding(attr: Any, x: AnyArray, w: AnyArray) -> list[AnyArray]:
    x, w = x.astype(attr.dtype), w.astype(attr.dtype)
    alpha, track = np.zeros_like(x), np.zeros(x.shape, np.int32)
    for k in range(attr.seq_len if attr.tag else 0):
        best, where = w[0].copy(), track[k]
        if k:
            best[...] = alpha[k - 1, 0] + w[2]
            for j in range(1, attr.tag):
                found = alpha[k - 1, j] + w[2 + j]
                better = ((found > best) | np.isnan(found)) & ~np.isnan(best)
                best[better], where[better] = found[better], j
        alpha[k] = best + x[k]
    return [alpha.astype(WIDE), track]
