"""Generated LAYER_NORM, written by hand: mean, variance about the mean, and the result, row by row.

The compiled reference takes two to three times as long, as it computes in the next wider type, which float64 lacks.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.microkernels.maths.strict_arithmetic import distance, times, times_plus
from jitkernels.microkernels.reduction.mean_variance import careful_moments, mean_of_infinite, moments
from jitkernels.microkernels.reduction.streaming_normalize import (
    AHEAD,
    ARRAYS,
    FIRST,
    LAST,
    LINE,
    streaming_results,
    streams,
    visible,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

BLOCK_ELEMENTS = 8192
"""Least number of elements per thread."""
SHORT_BYTES = 96
"""Rows of up to so many bytes use vectors of 32 bytes, whose horizontal sums are shorter."""


def variants(attr: LayerNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // _block(attr)), attr.signature().outputs[0])


def _block(attr: LayerNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(LayerNormAttr, variants=variants)
def layer_norm(attr: LayerNormAttr, stream: bool = False, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    is_affine, stats = attr.affine, attr.stats
    ahead = AHEAD // number(0).itemsize
    infinite = mean_of_infinite(attr.dtype)
    with_care = careful_moments(attr.dtype)

    def rows_in_vectors(width: int) -> Any:
        """The loop over rows in vectors of so many bytes."""
        lanes = cpu_target.target().masked_lanes(attr.dtype, width)
        measures = moments(attr.dtype, width, with_care)
        # Without streaming, the name is bound to a small function, as the object includes it all the same.
        past = streaming_results(attr.dtype, width, ARRAYS if attr.affine else "") if stream else visible

        # By `times`, as LLVM would divide every element by the root if it saw that the factor is its reciprocal.
        @inlined()
        def normalised(
            x: Any, scale: Any, bias: Any, y: Any, means: Any, variances: Any, n: int, eps: Any, line: Any,
            begin: int, end: int,
        ) -> None:  # fmt: skip
            for row in range(begin, end):
                xs, ys = offset(x, row * n), offset(y, row * n)
                unit, mean, variance, factor = measures(xs, n, eps)
                if stats:
                    means[row] = mean / unit if mean == mean else infinite(x, row * n, n)
                    variances[row] = variance / unit / unit
                sides = (FIRST if row == begin else 0) + (LAST if row == end - 1 else 0)
                if stream and is_affine:
                    following = offset(xs, n if n <= ahead else 0)
                    past(xs, following, scale, bias, ys, n, line, sides, unit, mean, factor)
                elif stream:
                    past(xs, offset(xs, n if n <= ahead else 0), ys, n, line, sides, unit, mean, factor)
                elif is_affine:
                    for i in vectors(0, n, lanes):
                        ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), scale[i], bias[i])
                else:
                    for i in vectors(0, n, lanes):
                        ys[i] = times(distance(xs[i], unit, mean), factor)
            if stream:
                visible()

        return normalised

    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    wide, narrow = rows_in_vectors(width), rows_in_vectors(min(width, 32))
    is_narrow, short = width <= 32, SHORT_BYTES // number(0).itemsize

    @inlined()
    def done(
        x: Any, scale: Any, bias: Any, y: Any, means: Any, variances: Any, n: int, eps: Any, line: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        if not stream and (is_narrow or n <= short):
            narrow(x, scale, bias, y, means, variances, n, number(eps[0]), line, begin, end)
        else:
            wide(x, scale, bias, y, means, variances, n, number(eps[0]), line, begin, end)

    def plain(x: Any, y: Any, rows: int, n: int, eps: Any, line: Any, begin: int, end: int) -> None:
        done(x, x, x, y, y, y, n, eps, line, begin, end)

    def affine(
        x: Any, scale: Any, bias: Any, y: Any, rows: int, n: int, eps: Any, line: Any, begin: int, end: int
    ) -> None:
        done(x, scale, bias, y, y, y, n, eps, line, begin, end)

    def plain_stats(
        x: Any, y: Any, mean: Any, var: Any, rows: int, n: int, eps: Any, line: Any, begin: int, end: int
    ) -> None:
        done(x, x, x, y, mean, var, n, eps, line, begin, end)

    def affine_stats(
        x: Any, scale: Any, bias: Any, y: Any, mean: Any, var: Any, rows: int, n: int, eps: Any, line: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        done(x, scale, bias, y, mean, var, n, eps, line, begin, end)

    signature = attr.signature()
    return LoopNest(
        f"layer_norm_{attr.dtype}",
        signature.c_arguments,
        ((plain, plain_stats), (affine, affine_stats))[is_affine][stats],
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        workspace=LINE,
        workspace_dtype=attr.dtype,
        reads_first=True,
        **variant,
    )
