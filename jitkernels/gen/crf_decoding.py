"""Generated CRF_DECODING: step by step, in vectors of tags."""

from typing import Any

from jitkernels.attrs.crf_decoding import CRFDecodingAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.core import cpu_target, dtypes
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.sequence.viterbi import best_predecessors


def variants(attr: CRFDecodingAttr) -> list[Variant]:
    return [{"vector_bytes": width} for width in cpu_target.target().widths]


@implements(CRFDecodingAttr, variants=variants)
def crf_decoding(attr: CRFDecodingAttr, vector_bytes: int = 64) -> RangeKernel:
    target = cpu_target.target()
    lanes = min(vector_bytes, target.vector_bytes) // dtypes.named(attr.dtype).size
    together = 4 if target.registers == 32 else 2
    several_vectors = best_predecessors(attr.dtype, lanes, together, masked=False)
    one_vector = best_predecessors(attr.dtype, lanes, together, masked=True)
    last = best_predecessors(attr.dtype, lanes, 1, masked=True)

    def body(x: Any, w: Any, alpha: Any, track: Any, seq_len: int, tag: int, begin: int) -> None:
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
                scores, best, predecessors = offset(x, at), offset(alpha, at), offset(track, at)
                if tag - i >= together * lanes:
                    several_vectors(before, follows, scores, best, predecessors, tag, tag - i)
                    i += together * lanes
                elif tag - i > lanes:
                    one_vector(before, follows, scores, best, predecessors, tag, tag - i)
                    i = tag
                else:
                    last(before, follows, scores, best, predecessors, tag, tag - i)
                    i += lanes

    return range_kernel_of(
        attr, f"crf_decoding_{attr.dtype}", body, extent="seq_len", flags=(), vector_bytes=vector_bytes
    )
