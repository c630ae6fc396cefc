"""Generated CRF_DECODING: step by step, in vectors of tags."""

from typing import Any

from jitkernels import dtypes, machine
from jitkernels.attrs.crf_decoding import CRFDecodingAttr
from jitkernels.loops.viterbi import best_predecessors
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements


def variants(attr: CRFDecodingAttr) -> list[Variant]:
    return [{"vector_bytes": width} for width in machine.target().widths]


@implements(CRFDecodingAttr, variants=variants)
def crf_decoding(attr: CRFDecodingAttr, vector_bytes: int = 64) -> LoopNest:
    target = machine.target()
    lanes = min(vector_bytes, target.vector_bytes) // dtypes.named(attr.dtype).size
    together = 4 if target.registers == 32 else 2
    some = best_predecessors(attr.dtype, lanes, together, masked=False)
    few = best_predecessors(attr.dtype, lanes, together, masked=True)
    last = best_predecessors(attr.dtype, lanes, 1, masked=True)

    def body(x: Any, w: Any, alpha: Any, track: Any, seq_len: int, tag: int, begin: int, end: int) -> None:
        if begin > 0:
            return
        for i in range(tag if seq_len > 0 else 0):
            alpha[i] = w[i] + x[i]
            track[i] = 0
        for k in range(1, seq_len):
            i = 0
            while i < tag:
                at = k * tag + i
                before, follows = offset(alpha, (k - 1) * tag), offset(w, 2 * tag + i)
                scores, best, where = offset(x, at), offset(alpha, at), offset(track, at)
                if tag - i >= together * lanes:
                    some(before, follows, scores, best, where, tag, tag - i)
                    i += together * lanes
                elif tag - i > lanes:
                    few(before, follows, scores, best, where, tag, tag - i)
                    i = tag
                else:
                    last(before, follows, scores, best, where, tag, tag - i)
                    i += lanes

    signature = attr.signature()
    return LoopNest(
        f"crf_decoding_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("seq_len"),
        flags=(),
        vector_bytes=vector_bytes,
    )
