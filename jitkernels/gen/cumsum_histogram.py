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
MAX_BINS = 1 << 30
"""Upper limit of bins, whose doubled indices are of 32 bits."""
LARGEST = float(np.finfo(np.float64).max)
ZERO, ONE, TWO = np.float64(0), np.float64(1), np.float64(2)


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


def has_short_indices(attr: HistogramAttr) -> bool | str:
    """Whether doubled indices of bins fit 32 bits."""
    return attr.bins < MAX_BINS or f"bins: at least {MAX_BINS}"


@implements(HistogramAttr, can_be_used=has_short_indices, variants=histogram_variants)
def histogram(attr: HistogramAttr, vector_bytes: int = 64) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type

    @inlined()
    def edge(i: Any, low: Any, high: Any, step: Any, bins: Any) -> Any:
        """Return the bin edge i, as np.linspace does."""
        return number(high) if i == bins else number(i * step + low)

    @inlined()
    def count_bins(x: Any, counts: Any, n: int, bins: int, low: Any, high: Any, bin_indices: Any) -> None:
        all_bins = np.float64(bins)
        last_bin = all_bins - ONE
        step = (high - low) / all_bins
        scale = all_bins / (high - low)
        first, last = number(low), number(high)
        for i in range(bins):
            counts[i] = 0
        start = 0
        while start < n:
            stop = min(start + BINNED_ELEMENTS, n)
            for i in range(start, stop):  # bins are whole floats: int64 takes no vector conversions without AVX-512
                value = x[i]
                is_inside = (value >= first) & (value <= last)
                known = value if is_inside else first
                place = np.floor((np.float64(known) - low) * scale)
                place = min(max(place, ZERO), last_bin)
                place -= ONE if known < edge(place, low, high, step, all_bins) else ZERO
                is_behind = (known >= edge(place + ONE, low, high, step, all_bins)) & (place < last_bin)
                place += ONE if is_behind else ZERO
                bin_indices[i - start] = np.int32(TWO * place + ONE if is_inside else ZERO)
            for i in range(stop - start):  # branch-free: a branch on elements out of range would be mispredicted
                bin_index = int(bin_indices[i])
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
        workspace=4 * BINNED_ELEMENTS,
        workspace_dtype="int32",
        flags=(),
        vector_bytes=vector_bytes,
    )
