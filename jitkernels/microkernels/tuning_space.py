"""Tuning space of most generated kernels: vector width and threads."""

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Variant
from jitkernels.attrs.schema.schema_queries import trailing_of
from jitkernels.core import cpu_target, dtypes

STREAM_BYTES = 1 << 24
"""Results of at least so many bytes are streamed without a measurement: few caches hold them and their operands."""
MAX_STREAMED_COST = 24
"""The cost of an element, in additions, from which on computing takes longer than storing."""
STREAM_CANDIDATE_BYTES = 1 << 20
"""Least bytes of the result for which streaming stores are worth measuring: the measurement decides."""


def widths_and_threads(blocks: int) -> list[Variant]:
    """List serial code in the widest vectors first, then half of that width, then both in parallel.

    `blocks` is the number of blocks of the parallel range: it must give two threads two blocks each.
    """
    threads = [False, True] if blocks >= 4 else [False]
    return [
        {"vector_bytes": width, "parallel": parallel} for parallel in threads for width in cpu_target.target().widths
    ]


def widths_for(attr: KernelAttr) -> tuple[int, ...]:
    """List vector widths, the static choice first: the widest, but the narrowest that holds the inner dimensions.

    The widest takes up to three times as long there. Other short loops gain less than an object of their own costs.
    """
    widths, trailing = cpu_target.target().widths, trailing_of(type(attr))
    count = attr.fields()[trailing] if trailing is not None else 1
    size = dtypes.named(attr.signature().arrays[0].dtype).size
    return tuple(sorted(widths)) if count > 1 and count * size <= widths[-1] else widths
