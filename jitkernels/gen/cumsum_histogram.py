"""Generated CUMSUM and HISTOGRAM."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.counting import CumsumAttr, HistogramAttr
from jitkernels.loops.running_sums import elements_of, running_sums
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

WORK = 1 << 15
"""Elements that a thread gets at least."""
AHEAD = 64
"""Elements whose bins are worked out before they are counted."""
LARGEST = float(np.finfo(np.float64).max)


def check_ends(x: Any, counts: Any, n: int, bins: int, low: Any, high: Any) -> int:
    """1 unless high is above low, and not too far: one object serves all ends, those that are wrong as well."""
    return 0 if (low[0] < high[0]) & (high[0] - low[0] <= LARGEST) else 1


def _rows(attr: CumsumAttr) -> int:
    """Rows that a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (WORK // max(attr.n, 1)).bit_length() - 1)


def cumsum_variants(attr: CumsumAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _rows(attr))


@implements(CumsumAttr, variants=cumsum_variants)
def cumsum(attr: CumsumAttr, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    size = number(0).itemsize
    lanes = variant.get("vector_bytes", machine.target().vector_bytes) // size
    run, add_run = elements_of(attr.dtype, lanes), running_sums(attr.dtype, lanes)
    nothing = number(-0.0)

    @inlined()
    def add_row(x: Any, y: Any, n: int, workspace: Any) -> None:
        carried = offset(workspace, run)
        carried[0] = nothing
        carried[1] = nothing
        i = 0
        while i + run <= n:
            add_run(offset(x, i), offset(y, i), carried)
            i += run
        if i < n:
            for j in range(i, n):
                workspace[j - i] = x[j]
            for j in range(n - i, run):
                workspace[j] = nothing
            add_run(workspace, workspace, carried)
            for j in range(i, n):
                y[j] = workspace[j - i]

    def body(x: Any, y: Any, rows: int, n: int, workspace: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            add_row(offset(x, row * n), offset(y, row * n), n, workspace)

    signature = attr.signature()
    return LoopNest(
        f"cumsum_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if variant.get("parallel") else 1,
        workspace=(run + 8) * size,
        workspace_dtype=attr.dtype,
        flags=(),
        reads_first=True,
        **variant,
    )


def histogram_variants(attr: HistogramAttr) -> list[Variant]:
    return [{"vector_bytes": width} for width in machine.target().widths]


@implements(HistogramAttr, variants=histogram_variants)
def histogram(attr: HistogramAttr, vector_bytes: int = 64) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type

    @inlined()
    def edge(i: int, low: Any, high: Any, step: Any, bins: int) -> Any:
        """As np.linspace has it."""
        return number(high) if i == bins else number(np.float64(i) * step + low)

    def body(
        x: Any,
        counts: Any,
        n: int,
        bins: int,
        low_at: Any,
        high_at: Any,
        places: Any,
        begin: int,
        end: int,
    ) -> None:
        low, high = low_at[0], high_at[0]
        step = (high - low) / np.float64(bins)
        scale = np.float64(bins) / (high - low)
        first, last = number(low), number(high)
        for i in range(bins):
            counts[i] = 0
        start = 0
        while start < n:
            stop = min(start + AHEAD, n)
            for i in range(start, stop):
                value = x[i]
                is_inside = (value >= first) & (value <= last)
                known = value if is_inside else first
                place = int((np.float64(known) - low) * scale)
                place = min(max(place, 0), bins - 1)
                place -= 1 if known < edge(place, low, high, step, bins) else 0
                place += 1 if (known >= edge(place + 1, low, high, step, bins)) & (place < bins - 1) else 0
                places[i - start] = 2 * place + 1 if is_inside else 0
            for i in range(stop - start):  # without a branch, which nobody foresees where some are outside
                place = places[i]
                counts[place >> 1] += place & 1
            start = stop

    signature = attr.signature()
    return LoopNest(
        f"histogram_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=1 << 62,
        check=check_ends,
        workspace=8 * AHEAD,
        workspace_dtype="int64",
        flags=(),
        vector_bytes=vector_bytes,
    )
