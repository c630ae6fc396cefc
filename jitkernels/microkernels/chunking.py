"""How work is cut for calls of vector functions, and what surrounds such calls.

A piece is short enough to stay in the first-level cache between the loops around a call, and long enough to
make the call cheap.
"""

from jitkernels.attrs.vector import VectorAttr
from jitkernels.native.source import inlined
from jitkernels.registry import Variant

PIECE = 2048
"""Elements that one call gets."""
BLOCK = 2 * PIECE
"""Elements that a thread gets at least."""


@inlined()
def rows_at_once(n: int, elements: int) -> int:
    """How many rows of n elements have no more than so many elements, a power of two and at least one."""
    rows = 1
    while 2 * rows * max(n, 1) <= elements:
        rows *= 2
    return rows


@inlined()
def rows_of_piece(rows: int, n: int, elements: int) -> int:
    """How many of these rows to take at once: all, or else `rows_at_once`, which takes longer to find."""
    return rows if rows * n <= elements else rows_at_once(n, elements)


def threads(blocks: int) -> list[Variant]:
    """Serial first, in parallel as well when two threads get two blocks each."""
    return [{"parallel": parallel} for parallel in ((False, True) if blocks >= 4 else (False,))]


def vector_threads(attr: VectorAttr) -> list[Variant]:
    """Variants of an elementwise kernel."""
    return threads(attr.n // BLOCK)


@inlined()
def nothing() -> int:
    """What stands for `enter` where a library needs no preparation."""
    return 0


@inlined()
def ignore(token: int) -> None:
    """What stands for `leave` where a library needs no preparation."""
