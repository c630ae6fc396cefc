"""Generated LAYER_NORM, written by hand: mean, variance about the mean, and the result, row by row.

The compiled reference takes two to three times as long, as it computes in the next wider type, which float64 lacks.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.maths.strict_arithmetic import distance, times, times_plus
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.mean_variance import careful_moments, mean_of_infinite, moments
from jitkernels.microkernels.reduction.streaming_normalize import (
    ARRAYS,
    FIRST_ROW,
    LAST_ROW,
    MAX_PREFETCHED_ROW_BYTES,
    store_fence,
    streaming_results,
    streams,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

NORM_THREAD_ELEMENTS = 8192
"""Least number of elements per thread."""
MAX_NARROW_ROW_BYTES = 96
"""Rows of up to so many bytes use vectors of 32 bytes, whose horizontal sums are shorter."""


class LayerNormArrays(NamedTuple):
    """The arrays; scale and bias, mean and var may be None."""

    x: Any
    scale: Any
    bias: Any
    y: Any
    mean: Any
    var: Any


class NormalizedRows(NamedTuple):
    """Rows of n elements."""

    n: int
    begin: int
    end: int


def variants(attr: LayerNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // grain(attr.n, NORM_THREAD_ELEMENTS)), attr.signature().outputs[0])


def rows_in_vectors(attr: LayerNormAttr, width: int, stream: bool, with_care: Any, infinite: Any) -> Any:
    """Return the loop over rows in vectors of so many bytes."""
    lanes = cpu_target.target().masked_lanes(attr.dtype, width)
    ahead = MAX_PREFETCHED_ROW_BYTES // np.dtype(attr.dtype).itemsize
    measures = moments(attr.dtype, width, with_care)
    # Without streaming, the name is bound to a small function, as the object includes it all the same.
    stream_row = streaming_results(attr.dtype, width, ARRAYS if attr.affine else "") if stream else store_fence

    # By `times`, as LLVM would divide every element by the root if it saw that the factor is its reciprocal.
    @inlined()
    def normalise(arrays: LayerNormArrays, rows: NormalizedRows, eps: Any, line: Any) -> None:
        n, scale, bias = rows.n, arrays.scale, arrays.bias
        for row in range(rows.begin, rows.end):
            xs, ys = offset(arrays.x, row * n), offset(arrays.y, row * n)
            unit, mean, variance, factor = measures(xs, n, eps)
            if arrays.mean is not None:
                arrays.mean[row] = mean / unit if mean == mean else infinite(arrays.x, row * n, n)
                arrays.var[row] = variance / unit / unit
            sides = (FIRST_ROW if row == rows.begin else 0) + (LAST_ROW if row == rows.end - 1 else 0)
            if stream and scale is not None:
                stream_row(xs, offset(xs, n if n <= ahead else 0), scale, bias, ys, n, line, sides, unit, mean, factor)
            elif stream:
                stream_row(xs, offset(xs, n if n <= ahead else 0), ys, n, line, sides, unit, mean, factor)
            elif scale is not None:
                for i in vectors(0, n, lanes):
                    ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), scale[i], bias[i])
            else:
                for i in vectors(0, n, lanes):
                    ys[i] = times(distance(xs[i], unit, mean), factor)
        if stream:
            store_fence()

    return normalise


@implements(LayerNormAttr, variants=variants)
def layer_norm(attr: LayerNormAttr, stream: bool = False, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    cold = careful_moments(attr.dtype), mean_of_infinite(attr.dtype)  # one function each for both
    wide, narrow = (rows_in_vectors(attr, size, stream, *cold) for size in (width, min(width, 32)))
    is_narrow, short = width <= 32, MAX_NARROW_ROW_BYTES // number(0).itemsize

    def body(arrays: LayerNormArrays, rows: NormalizedRows, eps: Any, workspace: Any) -> None:
        if not stream and (is_narrow or rows.n <= short):
            narrow(arrays, rows, number(eps[0]), workspace)
        else:
            wide(arrays, rows, number(eps[0]), workspace)

    return range_kernel_of(
        attr,
        f"layer_norm_{attr.dtype}",
        body,
        extent="rows",
        block=grain(attr.n, NORM_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        workspace=CACHE_LINE_BYTES,
        workspace_dtype=attr.dtype,
        reads_first=True,
        **variant,
    )
