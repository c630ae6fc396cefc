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
    """Widths of vectors, the static choice first: the widest, but the narrowest where innermost loops are that short.

    Loops along trailing dimensions are where one narrow vector holds them. Those along rows take several rows at once
    unless there are few: there it is half of a vector.
    """
    widths = machine.target().widths
    shape = attr.signature().arrays[0].shape
    if len(shape) < 2:
        return widths
    trailing = trailing_of(type(attr))
    is_along_rows = trailing is None or attr.fields()[trailing] == 1
    return narrowest_first(shape[-1] * 2 if is_along_rows else shape[-1], attr.signature().arrays[0].dtype)


def narrowest_first(count: int, dtype: str) -> tuple[int, ...]:
    """Widths of vectors, the narrowest first where it holds so many elements."""
    widths = machine.target().widths
    return tuple(sorted(widths)) if count * dtypes.named(dtype).size <= widths[-1] else widths
