"""Generated BATCH_NORM, and RMS_NORM of bfloat16, written by hand: the factors of some channels, then all their rows.

The compiled reference is two loop nests, as it materializes factors that serve all rows.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.normalization import BatchNormAttr, RmsNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemv.bf16_sums import WIDENED, algorithms
from jitkernels.microkernels.maths.strict_arithmetic import times_plus
from jitkernels.microkernels.reduction.bf16_rms_norm import rms_norm_nest
from jitkernels.microkernels.reduction.streaming_normalize import (
    CHANNELS,
    FIRST,
    LAST,
    LINE,
    NUMBERS,
    PLAIN_CHANNELS,
    asked_for,
    lines_before,
    streaming_results,
    streams,
    visible,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

BLOCK_ELEMENTS = 16384
"""Least number of elements per thread."""
STRIP, STRIP_PAST = 1 << 14, 1 << 13
"""Bytes of a row per strip; all rows of one strip come before the next strip.

With non-temporal stores the factors of all channels of a strip must stay in the first-level cache, beside the rows:
stores wait for loads from further away.
"""


def variants(attr: BatchNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // _block(attr)), attr.signature().outputs[0])


def _block(attr: BatchNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.channels * attr.inner, 1)).bit_length() - 1)


def rms_norm_variants(attr: RmsNormAttr) -> list[Variant]:
    names = algorithms() if attr.remain == 1 else (WIDENED,)
    shares = (False, True) if attr.rows // _rms_norm_block(attr) >= 4 else (False,)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]


def _rms_norm_block(attr: RmsNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n * attr.remain, 1)).bit_length() - 1)


@implements(RmsNormAttr, variants=rms_norm_variants, dtypes=("bfloat16",))
def rms_norm(attr: RmsNormAttr, algorithm: str = WIDENED, parallel: bool = False) -> LoopNest:
    return rms_norm_nest(attr, algorithm, _rms_norm_block(attr), parallel)


@implements(BatchNormAttr, variants=variants)
def batch_norm(attr: BatchNormAttr, stream: bool = False, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    lanes = cpu_target.target().masked_lanes(attr.dtype, width)
    is_affine = attr.affine
    size = np.dtype(attr.dtype).itemsize
    together, line = (STRIP_PAST if stream else STRIP) // size, LINE // size
    # Without streaming, the names are bound to a small function, as the object includes it all the same.
    channels_past, plain_channels_past, affine_past, plain_past = (
        streaming_results(attr.dtype, width, kind) if stream else visible
        for kind in (CHANNELS, PLAIN_CHANNELS, NUMBERS, "")
    )
    before_line = lines_before(attr.dtype) if stream else visible

    @inlined()
    def factor_of(var: Any, scale: Any, eps: Any) -> Any:
        return scale / np.sqrt(var + eps) if is_affine else one / np.sqrt(var + eps)

    @inlined()
    def scaled(x: Any, mean: Any, factor: Any, bias: Any) -> Any:
        return times_plus(x - mean, factor, bias) if is_affine else (x - mean) * factor

    @inlined()
    def alone(
        x: Any, mean: Any, var: Any, scale: Any, bias: Any, y: Any, channels: int, eps: Any, factors: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        first, last, both = 0, together, FIRST + LAST
        if stream and before_line(y, channels) > 0:  # the next strip begins at a cache line boundary
            last += before_line(y, channels) - line
        while first < channels:
            count = min(last, channels) - first
            for j in vectors(0, count, lanes):
                factors[j] = factor_of(var[first + j], scale[first + j], eps)
            for row in range(begin, end):
                xs, ys = offset(x, row * channels + first), offset(y, row * channels + first)
                following = offset(xs, channels)
                if stream and last >= channels:
                    asked_for(offset(ys, count))
                if stream and is_affine:
                    channels_past(
                        xs, following, offset(mean, first), factors, offset(bias, first), ys, count, factors, both
                    )
                elif stream:
                    plain_channels_past(xs, following, offset(mean, first), factors, ys, count, factors, both)
                else:
                    for j in vectors(0, count, lanes):
                        ys[j] = scaled(xs[j], mean[first + j], factors[j], bias[first + j])
            first, last = last, last + together

    @inlined()
    def in_planes(
        x: Any, mean: Any, var: Any, scale: Any, bias: Any, y: Any, channels: int, inner: int, eps: Any,
        line: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        for row in range(begin, end):
            for channel in range(channels):
                at = (row * channels + channel) * inner
                xs, ys, middle = offset(x, at), offset(y, at), mean[channel]
                factor = factor_of(var[channel], scale[channel], eps)
                shift = bias[channel] if is_affine else zero
                sides = (FIRST if at == begin * channels * inner else 0) + (
                    LAST if at == (end * channels - 1) * inner else 0
                )
                if stream and is_affine:
                    affine_past(xs, xs, factor, shift, ys, inner, line, sides, one, middle, one)
                elif stream:
                    plain_past(xs, xs, ys, inner, line, sides, one, middle, factor)
                else:
                    for k in vectors(0, inner, lanes):
                        ys[k] = scaled(xs[k], middle, factor, shift)

    def affine(
        x: Any, mean: Any, var: Any, scale: Any, bias: Any, y: Any, rows: int, channels: int, inner: int,
        eps: Any, factors: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        if inner == 1:
            alone(x, mean, var, scale, bias, y, channels, number(eps[0]), factors, begin, end)
        else:
            in_planes(x, mean, var, scale, bias, y, channels, inner, number(eps[0]), factors, begin, end)
        if stream:
            visible()

    def plain(
        x: Any, mean: Any, var: Any, y: Any, rows: int, channels: int, inner: int, eps: Any, factors: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        if inner == 1:
            alone(x, mean, var, var, mean, y, channels, number(eps[0]), factors, begin, end)
        else:
            in_planes(x, mean, var, var, mean, y, channels, inner, number(eps[0]), factors, begin, end)
        if stream:
            visible()

    signature = attr.signature()
    return LoopNest(
        f"batch_norm_{attr.dtype}",
        signature.c_arguments,
        affine if is_affine else plain,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        workspace=STRIP,
        workspace_dtype=attr.dtype,
        flags=(),
        reads_first=True,
        **variant,
    )
