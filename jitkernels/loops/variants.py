"""The variants that most generated kernels offer to the tuner: vector width and threads."""

from jitkernels import machine
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
