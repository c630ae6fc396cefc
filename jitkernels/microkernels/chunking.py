"""Chunking of calls to vector functions: how much one call gets, how much a thread gets.

A piece is short enough to stay in the first-level cache between the loops around a call, and long enough to amortize
the call.
"""

from jitkernels.attrs.schema.registry import Variant
from jitkernels.attrs.vector import VectorAttr
from jitkernels.codegen.source_protocol import inlined

PIECE = 2048
"""Elements per call."""
MAX_BLOCKS = 64
"""Blocks that threads share rows of images out in: half as many threads may take part."""
MIN_THREAD_ELEMENTS = 2 * PIECE
"""Least number of elements per thread."""


@inlined()
def rows_per_chunk(n: int, elements: int) -> int:
    """Return how many rows of n elements have at most `elements` elements: a power of two, at least one."""
    rows = 1
    while 2 * rows * max(n, 1) <= elements:
        rows *= 2
    return rows


@inlined()
def chunk_rows(rows: int, n: int, elements: int) -> int:
    """Return how many of these rows to process at once: all, or `rows_per_chunk`, which takes longer to compute."""
    return rows if rows * n <= elements else rows_per_chunk(n, elements)


def grain(elements: float, least: int = MIN_THREAD_ELEMENTS) -> int:
    """Return how many items of so many elements have `least` elements, and are what a thread gets at least.

    A power of two, so that few objects serve all shapes.
    """
    return 1 << max(0, int(least / max(elements, 1)).bit_length() - 1)


def threads(blocks: int) -> list[Variant]:
    """List the variants: serial first, parallel as well when two threads get two blocks each."""
    return [{"parallel": parallel} for parallel in ((False, True) if blocks >= 4 else (False,))]


def vector_threads(attr: VectorAttr) -> list[Variant]:
    """List the variants of an elementwise kernel."""
    return threads(attr.n // MIN_THREAD_ELEMENTS)


@inlined()
def no_setup() -> int:
    """Default of `enter`, for a library that needs no preparation."""
    return 0


@inlined()
def no_teardown(token: int) -> None:
    """Default of `leave`, for a library that needs no preparation."""
