"""Generated CUMSUM and HISTOGRAM."""

from typing import Any

import numpy as np

from jitkernels.attrs.cumsum_histogram import CumsumAttr, HistogramAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.prefix_sum import elements_of, running_sums
from jitkernels.microkernels.tuning_space import widths_and_threads

WORK = 1 << 15
"""Least number of elements per thread."""
BINNED_ELEMENTS = 64
"""Elements whose bins are computed before they are counted."""
LARGEST = float(np.finfo(np.float64).max)


def check_ends(low: Any, high: Any) -> int:
    """Return 1 unless high exceeds low, by a finite difference: one object serves all limits, invalid ones as well."""
    return 0 if (low[0] < high[0]) & (high[0] - low[0] <= LARGEST) else 1


def cumsum_variants(attr: CumsumAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, WORK))


@implements(CumsumAttr, variants=cumsum_variants)
def cumsum(attr: CumsumAttr, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    size = number(0).itemsize
    lanes = variant.get("vector_bytes", cpu_target.target().vector_bytes) // size
    run, add_run = elements_of(attr.dtype, lanes), running_sums(attr.dtype, lanes)
    identity = number(-0.0)

    @inlined()
    def add_row(x: Any, y: Any, n: int, workspace: Any) -> None:
        carried = offset(workspace, run)
        carried[0] = identity
        carried[1] = identity
        i = 0
        while i + run <= n:
            add_run(offset(x, i), offset(y, i), carried)
            i += run
        if i < n:
            for j in range(i, n):
                workspace[j - i] = x[j]
            for j in range(n - i, run):
                workspace[j] = identity
            add_run(workspace, workspace, carried)
            for j in range(i, n):
                y[j] = workspace[j - i]

    def body(x: Any, y: Any, rows: int, n: int, workspace: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            add_row(offset(x, row * n), offset(y, row * n), n, workspace)

    signature = attr.signature()
    return RangeKernel(
        f"cumsum_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        workspace=(run + 8) * size,
        workspace_dtype=attr.dtype,
        flags=(),
        reads_first=True,
        **variant,
    )


def histogram_variants(attr: HistogramAttr) -> list[Variant]:
    return [{"vector_bytes": width} for width in cpu_target.target().widths]


@implements(HistogramAttr, variants=histogram_variants)
def histogram(attr: HistogramAttr, vector_bytes: int = 64) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type

    @inlined()
    def edge(i: int, low: Any, high: Any, step: Any, bins: int) -> Any:
        """Return the bin edge i, as np.linspace does."""
        return number(high) if i == bins else number(np.float64(i) * step + low)

    @inlined()
    def count_bins(x: Any, counts: Any, n: int, bins: int, low: Any, high: Any, bin_indices: Any) -> None:
        step = (high - low) / np.float64(bins)
        scale = np.float64(bins) / (high - low)
        first, last = number(low), number(high)
        for i in range(bins):
            counts[i] = 0
        start = 0
        while start < n:
            stop = min(start + BINNED_ELEMENTS, n)
            for i in range(start, stop):
                value = x[i]
                is_inside = (value >= first) & (value <= last)
                known = value if is_inside else first
                bin_index = int((np.float64(known) - low) * scale)
                bin_index = min(max(bin_index, 0), bins - 1)
                bin_index -= 1 if known < edge(bin_index, low, high, step, bins) else 0
                bin_index += 1 if (known >= edge(bin_index + 1, low, high, step, bins)) & (bin_index < bins - 1) else 0
                bin_indices[i - start] = 2 * bin_index + 1 if is_inside else 0
            for i in range(stop - start):  # branch-free: a branch on elements out of range would be mispredicted
                bin_index = bin_indices[i]
                counts[bin_index >> 1] += bin_index & 1
            start = stop

    def body(x: Any, counts: Any, n: int, bins: int, low: Any, high: Any, workspace: Any) -> None:
        count_bins(x, counts, n, bins, low[0], high[0], workspace)

    return range_kernel_of(
        attr,
        f"histogram_{attr.dtype}",
        body,
        extent="n",
        block=1 << 62,
        check=check_ends,
        workspace=8 * BINNED_ELEMENTS,
        workspace_dtype="int64",
        flags=(),
        vector_bytes=vector_bytes,
    )
