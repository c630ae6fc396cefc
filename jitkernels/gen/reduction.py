"""Generated HARGMAX of long rows; the other reductions, and short rows, are made from their references.

The rows' parts are asked for their maximum alone, and the best of them for its place: indices that are kept beside the
maxima take as long again as these.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels import from_reference, machine
from jitkernels.attrs.reduction import HArgMaxAttr
from jitkernels.loops.row_argmax import TOGETHER, first_place, lanes_of, largest
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implementation, implements

SHORT = 64
"""Elements up to which the reference is compiled: few rows of them have a whole step of vectors."""
PART = 1024
"""Elements of which one maximum is kept; their first place is looked for in a part of the last row as well."""
WORK = 1 << 15
"""Elements that a thread gets at least."""


def _rows(attr: HArgMaxAttr) -> int:
    """Rows that a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (WORK // max(attr.n, 1)).bit_length() - 1)


def _is_long(attr: HArgMaxAttr) -> bool:
    return attr.remain == 1 and attr.n > SHORT


def variants(attr: HArgMaxAttr) -> Sequence[Variant]:
    if _is_long(attr):
        return widths_and_threads(attr.rows // _rows(attr))
    return from_reference.variants(attr)


@implements(HArgMaxAttr, variants=variants)
def hargmax(attr: HArgMaxAttr, **variant: Any) -> LoopNest:
    if not _is_long(attr):
        chosen = {
            "unroll": from_reference.unrolls_of(attr)[0],
            "vector_bytes": 64,
            "stream": False,
            "parallel": False,
        }
        reference = implementation(HArgMaxAttr, "refer").function
        return from_reference.nest(attr, reference, **{**chosen, **variant})
    dtype = attr.dtype
    width = variant.get("vector_bytes", machine.target().vector_bytes)
    step = TOGETHER * lanes_of(dtype, width)
    maximum, place_of = largest(dtype, width), first_place(dtype, width)

    @inlined()
    def first_of(x: Any, n: int) -> int:
        """One after the other: rows shorter than a step of vectors, and parts in which there is NaN."""
        place, most = 0, x[0]
        for j in range(n):
            value = x[j]
            if value != value:
                return j
            if value > most:
                place, most = j, value
        return place

    def body(x: Any, y: Any, rows: int, n: int, remain: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            own = offset(x, row * n)
            if n < step:
                y[row] = first_of(own, n)
            else:
                most, start = maximum(own, max(min(n, PART), step)), 0
                at = PART
                while at < n and most == most:
                    first = min(at, n - step)
                    value = maximum(offset(own, first), min(n - first, PART))
                    if not value <= most:
                        most, start = value, first
                    at += PART
                count = min(n - start, PART)
                if most == most:
                    y[row] = start + place_of(offset(own, start), count, most)
                else:
                    y[row] = start + first_of(offset(own, start), count)

    signature = attr.signature()
    return LoopNest(
        f"hargmax_{dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
