"""NumPy reference of CRF_DECODING."""

import numpy as np

from jitkernels.attrs.crf_decoding import CRFDecodingAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(CRFDecodingAttr)
def crf_decoding(attr: CRFDecodingAttr, x: AnyArray, w: AnyArray, alpha: AnyArray, track: AnyArray) -> None:
    x, w = (
        x.astype(attr.dtype),
        w.astype(attr.dtype),
    )  # where the arrays stand for a narrower type: sums are rounded to it
    with np.errstate(all="ignore"):
        alpha[:1], track[:1] = w[0] + x[:1], 0
        before = (w[0] + x[:1]).reshape(-1)
        for k in range(1, attr.seq_len if attr.tag else 0):
            sums = before[:, np.newaxis] + w[2:]
            best = np.argmax(sums, axis=0)
            before = sums[best, np.arange(attr.tag)] + x[k]
            alpha[k], track[k] = before, best
