"""The variants that most generated kernels offer to the tuner: vector width and threads."""

from jitkernels import dtypes, machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.roles import trailing_of
from jitkernels.registry import Variant

STREAM_BYTES = 1 << 20
"""From this size of the result on, stores past the caches are worth measuring."""


def widths_and_threads(blocks: int) -> list[Variant]:
    """Serial code in the widest vectors first, then half of that width, then both in parallel.

    `blocks` is how many blocks the parallel range has: threads come in when two of them get two blocks each.
    """
    threads = [False, True] if blocks >= 4 else [False]
    return [
        {"vector_bytes": width, "parallel": parallel}
        for parallel in threads
        for width in machine.target().widths
    ]


def widths_for(attr: KernelAttr) -> tuple[int, ...]:
    """Widths of vectors, the static choice first: the widest, but the narrowest for trailing dimensions that it holds.

    The widest take up to three times as long there. Other short loops gain less than an object of their own costs.
    """
    widths, trailing = machine.target().widths, trailing_of(type(attr))
    count = attr.fields()[trailing] if trailing is not None else 1
    size = dtypes.named(attr.signature().arrays[0].dtype).size
    return tuple(sorted(widths)) if count > 1 and count * size <= widths[-1] else widths
