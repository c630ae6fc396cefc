"""CRF_DECODING, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "crf_decoding": {
        "transitions the other way round": ("w[2 + j]", "w[2:, j]"),
        "first row is not the beginning": ("w[0] + x[0]", "w[1] + x[0]"),
        "rows of transitions begin too early": ("w[2 + j]", "w[1 + j]"),
        "last of equal sums": ("found > best", "found >= best"),
        "NaN is never taken": ("(found > best) | np.isnan(found)", "found > best"),
        "the last NaN is taken": ("& ~np.isnan(best)", "| np.isnan(found)"),
        "maximum begins at the largest negative number": (
            "before[0] + w[2]",
            "np.maximum(before[0] + w[2], -np.finfo(x.dtype).max)",
        ),
        "first row of the track is left as it was": ("track[0] = 0", "pass"),
        "score of the tag is left out": ("alpha[k] = best + x[k]", "alpha[k] = best"),
        "last tag is forgotten": ("range(1, attr.tag)", "range(1, attr.tag - 1)"),
        "sums in another order": ("alpha[k] = best + x[k]", "alpha[k] = best + x[k] + before[0] - before[0]"),
    }
}


def crf_decoding(attr: Any, x: AnyArray, w: AnyArray, alpha: AnyArray, track: AnyArray) -> None:
    if attr.seq_len == 0 or attr.tag == 0:
        return
    alpha[0] = w[0] + x[0]
    track[0] = 0
    for k in range(1, attr.seq_len):
        before = alpha[k - 1]
        best = before[0] + w[2]
        where = np.zeros(attr.tag, np.int32)
        for j in range(1, attr.tag):
            found = before[j] + w[2 + j]
            better = ((found > best) | np.isnan(found)) & ~np.isnan(best)
            best, where = np.where(better, found, best), np.where(better, j, where)
        track[k] = where
        alpha[k] = best + x[k]
