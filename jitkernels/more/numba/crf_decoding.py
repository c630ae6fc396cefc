"""CRF_DECODING by numba: every step needs the one before it."""

from typing import Any

from jitkernels.attrs.crf_decoding import CRFDecodingAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import numba_kernel, usable


@implements(CRFDecodingAttr, can_be_used=usable)
def crf_decoding(attr: CRFDecodingAttr) -> RangeKernel:
    def body(x: Any, w: Any, alpha: Any, track: Any, tag: int, begin: int, end: int) -> None:
        for step in range(begin, end):
            for j in range(tag):
                if step == 0:
                    alpha[j] = w[j] + x[j]
                    track[j] = 0
                else:
                    before = (step - 1) * tag
                    best, place = alpha[before] + w[2 * tag + j], 0
                    for i in range(1, tag):
                        value = alpha[before + i] + w[(i + 2) * tag + j]
                        if best == best and not value <= best:
                            best, place = value, i
                    alpha[step * tag + j] = best + x[step * tag + j]
                    track[step * tag + j] = place

    return numba_kernel(attr, body, "seq_len")
