"""Generated HARGMAX and HVAR of long rows, HARGMAX of few columns, and column reductions of large matrices.

The compiler builds the others, and other reductions, from their references.

A first pass computes the maximum of each part of a row, and a second one finds the index in the best part: indices
carried beside the maxima double the time. With fewer columns than a vector has lanes, a vector holds several rows, and
each lane keeps the first step that has its maximum.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.reduction import HArgMaxAttr, HMaxAttr, HMeanAttr, HMinAttr, HSumAttr, HVarAttr, ReductionAttr
from jitkernels.attrs.schema.registry import Variant, implementation, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.compiler.api import traced_kernel
from jitkernels.core import cpu_target, dtypes
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.column_reduction import extremes_kernel, sums_kernel
from jitkernels.microkernels.reduction.one_pass_variance import row_squares
from jitkernels.microkernels.reduction.row_argmax import ACCUMULATORS, first_index, lanes_of, largest, strided_argmax
from jitkernels.microkernels.tuning_space import widths_and_threads

MAX_TRACED_ROW = 64
"""Up to so many elements the reference is compiled: few such rows have a whole step of vectors."""
MAX_COLUMN_VECTORS = 4
"""Up to so many vectors of columns, each is followed through all rows."""
MIN_FEW_COLUMN_ELEMENTS = 16
"""Least elements of so few columns for which combining the lanes at the end pays."""
MAXIMUM_ELEMENTS = 1024
"""Elements per maximum; the first index is searched in one such part."""
ONCE = 8192
"""Least bytes of a row whose variance takes one pass."""
WORK = 1 << 15
"""Least number of elements per thread."""

MIN_ROW_BY_ROW_BYTES = 1 << 24
"""Least bytes of a matrix whose columns are reduced row by row."""
MIN_LONG_ROW_BYTES = 128
"""Least bytes of its rows."""
IN_ORDER = "rows"
"""Name of that algorithm."""


def _is_long(attr: HArgMaxAttr) -> bool:
    return attr.remain == 1 and attr.n > MAX_TRACED_ROW


def _has_few_columns(attr: HArgMaxAttr) -> bool:
    max_columns = MAX_COLUMN_VECTORS * lanes_of(attr.dtype, cpu_target.target().vector_bytes)
    return 1 < attr.remain <= max_columns and attr.n >= MIN_FEW_COLUMN_ELEMENTS


def variants(attr: HArgMaxAttr) -> Sequence[Variant]:
    if _is_long(attr):
        return widths_and_threads(attr.rows // grain(attr.n * attr.remain, WORK))
    if _has_few_columns(attr):
        return [
            {"parallel": parallel}
            for parallel in ((False, True) if attr.rows // grain(attr.n * attr.remain, WORK) >= 4 else (False,))
        ]
    return traced_kernel.variants(attr)


def _of_reference(attr: ReductionAttr, **variant: Any) -> RangeKernel:
    chosen = {"unroll": traced_kernel.unrolls_of(attr)[0], "vector_bytes": 64, "stream": False, "parallel": False}
    reference = implementation(type(attr), "refer").function
    return traced_kernel.range_kernel(attr, reference, **{**chosen, **variant})


@implements(HArgMaxAttr, variants=variants)
def hargmax(attr: HArgMaxAttr, **variant: Any) -> RangeKernel:
    if _has_few_columns(attr):
        return _of_few_columns(attr, **variant)
    if not _is_long(attr):
        return _of_reference(attr, **variant)
    dtype = attr.dtype
    width = variant.get("vector_bytes", cpu_target.target().vector_bytes)
    step = ACCUMULATORS * lanes_of(dtype, width)
    maximum, place_of = largest(dtype, width), first_index(dtype, width)

    @inlined()
    def first_of(x: Any, n: int) -> int:
        """Scan in order: rows shorter than a step of vectors, and parts with a NaN."""
        index, maximum = 0, x[0]
        for j in range(n):
            value = x[j]
            if value != value:
                return j
            if value > maximum:
                index, maximum = j, value
        return index

    def body(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            own = offset(x, row * n)
            if n < step:
                y[row] = first_of(own, n)
            else:
                maximum_of_parts, start = maximum(own, max(min(n, MAXIMUM_ELEMENTS), step)), 0
                at = MAXIMUM_ELEMENTS
                while at < n and maximum_of_parts == maximum_of_parts:
                    first = min(at, n - step)
                    value = maximum(offset(own, first), min(n - first, MAXIMUM_ELEMENTS))
                    if not value <= maximum_of_parts:
                        maximum_of_parts, start = value, first
                    at += MAXIMUM_ELEMENTS
                count = min(n - start, MAXIMUM_ELEMENTS)
                if maximum_of_parts == maximum_of_parts:
                    y[row] = start + place_of(offset(own, start), count, maximum_of_parts)
                else:
                    y[row] = start + first_of(offset(own, start), count)

    return range_kernel_of(
        attr,
        f"hargmax_{dtype}",
        body,
        extent="rows",
        block=grain(attr.n * attr.remain, WORK) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )


def of_columns(attr: ReductionAttr) -> Sequence[Variant]:
    """Reduce row by row if the columns exceed the caches, unless rows are as short as a cache line or two."""
    x = attr.signature().arrays[0]
    if (
        attr.remain * x.numpy.itemsize < MIN_LONG_ROW_BYTES
        or attr.n <= MIN_FEW_COLUMN_ELEMENTS
        or x.nbytes < MIN_ROW_BY_ROW_BYTES
    ):
        return traced_kernel.variants(attr)
    shares = (False, True) if attr.rows // grain(attr.n * attr.remain, WORK) >= 4 else (False,)
    return [{"algorithm": IN_ORDER, "parallel": parallel} for parallel in shares]


def _columns(attr: ReductionAttr, variant: Variant, make: Callable[..., RangeKernel], **options: bool) -> RangeKernel:
    if variant.get("algorithm") != IN_ORDER:
        return _of_reference(attr, **variant)
    parallel = bool(variant.get("parallel"))
    return make(attr, block=grain(attr.n * attr.remain, WORK) if parallel else 1, parallel=parallel, **options)


@implements(HMaxAttr, variants=of_columns)
def hmax(attr: HMaxAttr, **variant: Any) -> RangeKernel:
    return _columns(attr, variant, extremes_kernel, largest=True)


@implements(HMinAttr, variants=of_columns)
def hmin(attr: HMinAttr, **variant: Any) -> RangeKernel:
    return _columns(attr, variant, extremes_kernel, largest=False)


@implements(HSumAttr, variants=of_columns)
def hsum(attr: HSumAttr, **variant: Any) -> RangeKernel:
    return _columns(attr, variant, sums_kernel, is_mean=False)


@implements(HMeanAttr, variants=of_columns)
def hmean(attr: HMeanAttr, **variant: Any) -> RangeKernel:
    return _columns(attr, variant, sums_kernel, is_mean=True)


def _of_few_columns(attr: HArgMaxAttr, parallel: bool = False) -> RangeKernel:
    """Read as many rows of the columns per step as a vector has room for; surplus lanes are ignored.

    More columns are done a vector at a time, the last vector overlapping the one before.
    """
    dtype = attr.dtype
    lanes = lanes_of(dtype, cpu_target.target().vector_bytes)
    best_of_lanes, is_short = (strided_argmax(dtype, cpu_target.target().vector_bytes), dtypes.named(dtype).size == 4)

    @inlined()
    def number(bits: Any) -> Any:
        return np.int32(bits).view(np.float32) if is_short else bits.view(np.float64)

    def body(x: Any, y: Any, n: int, remain: int, workspace: Any, begin: int, end: int) -> None:
        together = max(lanes // max(remain, 1), 1)
        steps = 0
        if n * remain >= lanes and n < 1 << 31:
            steps = (n * remain - lanes) // (together * remain) + 1 if remain < lanes else n
        for row in range(begin, end):
            for column in range(0, remain, lanes):
                surplus = max(min(column, remain - lanes), 0)
                own, width = offset(x, row * n * remain + surplus), min(remain, lanes)
                has_nan = steps == 0 or best_of_lanes(own, steps, together * remain, workspace) != 0
                for k in range(width):
                    best, index, first = own[k], 0, 1
                    if not has_nan:
                        best, index = number(workspace[k]), workspace[lanes + k] * together
                        first = steps * together
                        for later in range(1, together):
                            lane = later * remain + k
                            value, at = number(workspace[lane]), workspace[lanes + lane] * together + later
                            if value > best or (value == best and at < index):
                                best, index = value, at
                    for j in range(first, n):
                        value = own[j * remain + k]
                        if best == best and not value <= best:
                            best, index = value, j
                    y[row * remain + surplus + k] = index

    return range_kernel_of(
        attr,
        f"hargmax_few_{dtype}",
        body,
        extent="rows",
        block=grain(attr.n * attr.remain, WORK) if parallel else 1,
        workspace=2 * lanes * 8,
        workspace_dtype="int64",
        flags=(),
        parallel=parallel,
    )


def _goes_once(attr: HVarAttr) -> bool:
    return attr.remain == 1 and attr.n * dtypes.named(attr.dtype).size >= ONCE


def variance_variants(attr: HVarAttr) -> Sequence[Variant]:
    return (
        widths_and_threads(attr.rows // grain(attr.n * attr.remain, WORK))
        if _goes_once(attr)
        else traced_kernel.variants(attr)
    )


@implements(HVarAttr, variants=variance_variants)
def hvar(attr: HVarAttr, **variant: Any) -> RangeKernel:
    if not _goes_once(attr):
        return _of_reference(attr, **variant)
    squares_of, number = row_squares(attr.dtype), np.dtype(attr.dtype).type

    def body(x: Any, y: Any, n: int, ddof: Any, begin: int, end: int) -> None:
        degrees = max(np.float64(n) - ddof[0], 0.0)
        for row in range(begin, end):
            y[row] = number(np.float64(squares_of(offset(x, row * n), n)) / degrees)

    return range_kernel_of(
        attr,
        f"hvar_{attr.dtype}",
        body,
        extent="rows",
        block=grain(attr.n * attr.remain, WORK) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
