"""Generated HARGMAX and HVAR of long rows, HARGMAX of few columns, extremes and sums of columns that no cache has.

The others, and other reductions, are made from their references.

Rows' parts are asked for their maximum alone, and the best of them for its place: indices that are kept beside the
maxima take as long again as these. Of columns fewer than a vector has lanes several rows are read at once, and there
each lane keeps the first step that has its maximum.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels import dtypes, from_reference, machine
from jitkernels.attrs.reduction import (
    HArgMaxAttr,
    HMaxAttr,
    HMeanAttr,
    HMinAttr,
    HSumAttr,
    HVarAttr,
    ReductionAttr,
)
from jitkernels.loops.row_argmax import TOGETHER, among_few, first_place, lanes_of, largest
from jitkernels.loops.row_variance import row_squares
from jitkernels.loops.rows_in_order import extremes_nest, sums_nest
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implementation, implements

SHORT = 64
"""Elements up to which the reference is compiled: few rows of them have a whole step of vectors."""
FEW = 4
"""Vectors of columns of which each is followed through all rows."""
SEVERAL = 16
"""Elements of so few columns from which on it pays to put the lanes together in the end."""
PART = 1024
"""Elements of which one maximum is kept; their first place is looked for in a part of the last row as well."""
ONCE = 8192
"""Bytes from which on a row is gone through once for its variance."""
WORK = 1 << 15
"""Elements that a thread gets at least."""

BEYOND = 1 << 24
"""Bytes of a matrix from which on its columns are reduced row by row."""
SHORTEST = 128
"""Bytes of a row from which on."""
IN_ORDER = "rows"
"""The algorithm that does so."""


def _rows(attr: ReductionAttr) -> int:
    """Rows that a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (WORK // max(attr.n * attr.remain, 1)).bit_length() - 1)


def _is_long(attr: HArgMaxAttr) -> bool:
    return attr.remain == 1 and attr.n > SHORT


def _has_few_columns(attr: HArgMaxAttr) -> bool:
    most = FEW * lanes_of(attr.dtype, machine.target().vector_bytes)
    return 1 < attr.remain <= most and attr.n >= SEVERAL


def variants(attr: HArgMaxAttr) -> Sequence[Variant]:
    if _is_long(attr):
        return widths_and_threads(attr.rows // _rows(attr))
    if _has_few_columns(attr):
        return [
            {"parallel": parallel}
            for parallel in ((False, True) if attr.rows // _rows(attr) >= 4 else (False,))
        ]
    return from_reference.variants(attr)


def _of_reference(attr: ReductionAttr, **variant: Any) -> LoopNest:
    chosen = {
        "unroll": from_reference.unrolls_of(attr)[0],
        "vector_bytes": 64,
        "stream": False,
        "parallel": False,
    }
    reference = implementation(type(attr), "refer").function
    return from_reference.nest(attr, reference, **{**chosen, **variant})


@implements(HArgMaxAttr, variants=variants)
def hargmax(attr: HArgMaxAttr, **variant: Any) -> LoopNest:
    if _has_few_columns(attr):
        return _of_few_columns(attr, **variant)
    if not _is_long(attr):
        return _of_reference(attr, **variant)
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


def of_columns(attr: ReductionAttr) -> Sequence[Variant]:
    """Row by row where no cache has the columns that are reduced, unless rows are as short as a line or two."""
    x = attr.signature().arrays[0]
    if attr.remain * x.numpy.itemsize < SHORTEST or attr.n <= SEVERAL or x.nbytes < BEYOND:
        return from_reference.variants(attr)
    shares = (False, True) if attr.rows // _rows(attr) >= 4 else (False,)
    return [{"algorithm": IN_ORDER, "parallel": parallel} for parallel in shares]


def _columns(attr: ReductionAttr, variant: Variant, make: Callable[..., LoopNest], **what: bool) -> LoopNest:
    if variant.get("algorithm") != IN_ORDER:
        return _of_reference(attr, **variant)
    parallel = bool(variant.get("parallel"))
    return make(attr, block=_rows(attr) if parallel else 1, parallel=parallel, **what)


@implements(HMaxAttr, variants=of_columns)
def hmax(attr: HMaxAttr, **variant: Any) -> LoopNest:
    return _columns(attr, variant, extremes_nest, largest=True)


@implements(HMinAttr, variants=of_columns)
def hmin(attr: HMinAttr, **variant: Any) -> LoopNest:
    return _columns(attr, variant, extremes_nest, largest=False)


@implements(HSumAttr, variants=of_columns)
def hsum(attr: HSumAttr, **variant: Any) -> LoopNest:
    return _columns(attr, variant, sums_nest, is_mean=False)


@implements(HMeanAttr, variants=of_columns)
def hmean(attr: HMeanAttr, **variant: Any) -> LoopNest:
    return _columns(attr, variant, sums_nest, is_mean=True)


def _of_few_columns(attr: HArgMaxAttr, parallel: bool = False) -> LoopNest:
    """A step reads as many rows of the columns as a vector has room for; what it reads beside them counts for nothing.

    Columns that are more than that are done a vector at a time, the last ones with some before them.
    """
    dtype = attr.dtype
    lanes = lanes_of(dtype, machine.target().vector_bytes)
    among, is_short = among_few(dtype, machine.target().vector_bytes), dtypes.named(dtype).size == 4

    @inlined()
    def number(bits: Any) -> Any:
        return np.int32(bits).view(np.float32) if is_short else bits.view(np.float64)

    def body(x: Any, y: Any, rows: int, n: int, remain: int, workspace: Any, begin: int, end: int) -> None:
        together = max(lanes // max(remain, 1), 1)
        steps = 0
        if n * remain >= lanes and n < 1 << 31:
            steps = (n * remain - lanes) // (together * remain) + 1 if remain < lanes else n
        for row in range(begin, end):
            for column in range(0, remain, lanes):
                here = max(min(column, remain - lanes), 0)
                own, width = offset(x, row * n * remain + here), min(remain, lanes)
                has_nan = steps == 0 or among(own, steps, together * remain, workspace) != 0
                for k in range(width):
                    most, place, first = own[k], 0, 1
                    if not has_nan:
                        most, place = number(workspace[k]), workspace[lanes + k] * together
                        first = steps * together
                        for later in range(1, together):
                            lane = later * remain + k
                            value, at = number(workspace[lane]), workspace[lanes + lane] * together + later
                            if value > most or (value == most and at < place):
                                most, place = value, at
                    for j in range(first, n):
                        value = own[j * remain + k]
                        if most == most and not value <= most:
                            most, place = value, j
                    y[row * remain + here + k] = place

    signature = attr.signature()
    return LoopNest(
        f"hargmax_few_{dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if parallel else 1,
        workspace=2 * lanes * 8,
        workspace_dtype="int64",
        flags=(),
        parallel=parallel,
    )


def _goes_once(attr: HVarAttr) -> bool:
    return attr.remain == 1 and attr.n * dtypes.named(attr.dtype).size >= ONCE


def variance_variants(attr: HVarAttr) -> Sequence[Variant]:
    return widths_and_threads(attr.rows // _rows(attr)) if _goes_once(attr) else from_reference.variants(attr)


@implements(HVarAttr, variants=variance_variants)
def hvar(attr: HVarAttr, **variant: Any) -> LoopNest:
    if not _goes_once(attr):
        return _of_reference(attr, **variant)
    squares_of, number = row_squares(attr.dtype), np.dtype(attr.dtype).type

    def body(x: Any, y: Any, rows: int, n: int, remain: int, ddof: Any, begin: int, end: int) -> None:
        left = max(np.float64(n) - ddof[0], 0.0)
        for row in range(begin, end):
            y[row] = number(np.float64(squares_of(offset(x, row * n), n)) / left)

    signature = attr.signature()
    return LoopNest(
        f"hvar_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
