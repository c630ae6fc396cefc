"""Generated BATCH_NORM, and RMS_NORM of bfloat16, written by hand: the factors of some channels, then all their rows.

The compiled reference is two loop nests, as it materializes factors that serve all rows.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.normalization import BatchNormAttr, RmsNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.gemv.bf16_sums import WIDENED, algorithms
from jitkernels.microkernels.maths.strict_arithmetic import times_plus
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.bf16_rms_norm import rms_norm_kernel
from jitkernels.microkernels.reduction.streaming_normalize import (
    CHANNELS,
    FIRST_ROW,
    LAST_ROW,
    NUMBERS,
    PLAIN_CHANNELS,
    elements_before_line,
    prefetch_line,
    store_fence,
    streaming_results,
    streams,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

BATCH_NORM_THREAD_ELEMENTS = 16384
"""Least number of elements per thread."""
STRIP_BYTES, STREAMED_STRIP_BYTES = 1 << 14, 1 << 13
"""Bytes of a row per strip; all rows of one strip come before the next strip.

With streaming stores the factors of all channels of a strip must stay in the first-level cache, beside the rows:
stores wait for loads from further away.
"""


class BatchNormArrays(NamedTuple):
    """The arrays; scale and bias may be None."""

    x: Any
    mean: Any
    var: Any
    scale: Any
    bias: Any
    y: Any


def _block(attr: BatchNormAttr) -> int:
    return grain(attr.channels * attr.inner, BATCH_NORM_THREAD_ELEMENTS)


def variants(attr: BatchNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // _block(attr)), attr.signature().outputs[0])


def _rms_norm_block(attr: RmsNormAttr) -> int:
    return grain(attr.n * attr.remain, BATCH_NORM_THREAD_ELEMENTS)


def rms_norm_variants(attr: RmsNormAttr) -> list[Variant]:
    names = algorithms() if attr.remain == 1 else (WIDENED,)
    shares = (False, True) if attr.rows // _rms_norm_block(attr) >= 4 else (False,)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]


@implements(RmsNormAttr, variants=rms_norm_variants, dtypes=("bfloat16",))
def rms_norm(attr: RmsNormAttr, algorithm: str = WIDENED, parallel: bool = False) -> RangeKernel:
    return rms_norm_kernel(attr, algorithm, _rms_norm_block(attr), parallel)


def factors_of(dtype: str) -> Any:
    """Return the function that gives the factor of a channel."""
    one = np.dtype(dtype).type(1)

    @inlined()
    def factor_of(arrays: BatchNormArrays, channel: int, eps: Any) -> Any:
        scale = one if arrays.scale is None else arrays.scale[channel]
        return scale / np.sqrt(arrays.var[channel] + eps)

    return factor_of


def strips_of(dtype: str, width: int, stream: bool) -> Any:
    """Return the function for rows of channels, strip by strip."""
    size, both = np.dtype(dtype).itemsize, FIRST_ROW + LAST_ROW
    together, line = (STREAMED_STRIP_BYTES if stream else STRIP_BYTES) // size, CACHE_LINE_BYTES // size
    lanes, factor_of = cpu_target.target().masked_lanes(dtype, width), factors_of(dtype)
    # Without streaming, the names are bound to a small function, as the object includes it all the same.
    stream_channels, stream_plain_channels = (
        streaming_results(dtype, width, kind) if stream else store_fence for kind in (CHANNELS, PLAIN_CHANNELS)
    )
    before_line = elements_before_line(dtype) if stream else store_fence

    @inlined()
    def normalise(arrays: BatchNormArrays, channels: int, eps: Any, factors: Any, part: Range) -> None:
        first, last = 0, together
        if stream and before_line(arrays.y, channels) > 0:  # the next strip begins at a cache line boundary
            last += before_line(arrays.y, channels) - line
        while first < channels:
            count = min(last, channels) - first
            means, bias = offset(arrays.mean, first), offset(arrays.bias, first)
            for j in vectors(0, count, lanes):
                factors[j] = factor_of(arrays, first + j, eps)
            for row in range(part.begin, part.end):
                xs, ys = offset(arrays.x, row * channels + first), offset(arrays.y, row * channels + first)
                following = offset(xs, channels)
                if stream and last >= channels:
                    prefetch_line(offset(ys, count))
                if stream and bias is not None:
                    stream_channels(xs, following, means, factors, bias, ys, count, factors, both)
                elif stream:
                    stream_plain_channels(xs, following, means, factors, ys, count, factors, both)
                elif bias is not None:
                    for j in vectors(0, count, lanes):
                        ys[j] = times_plus(xs[j] - means[j], factors[j], bias[j])
                else:
                    for j in vectors(0, count, lanes):
                        ys[j] = (xs[j] - means[j]) * factors[j]
            first, last = last, last + together

    return normalise


def planes_of(dtype: str, width: int, stream: bool) -> Any:
    """Return the function for channels of several elements."""
    one, factor_of = np.dtype(dtype).type(1), factors_of(dtype)
    lanes = cpu_target.target().masked_lanes(dtype, width)
    stream_affine, stream_plain = (
        streaming_results(dtype, width, kind) if stream else store_fence for kind in (NUMBERS, "")
    )

    @inlined()
    def normalise(arrays: BatchNormArrays, channels: int, inner: int, eps: Any, line: Any, part: Range) -> None:
        for row in range(part.begin, part.end):
            for channel in range(channels):
                at = (row * channels + channel) * inner
                xs, ys, middle = offset(arrays.x, at), offset(arrays.y, at), arrays.mean[channel]
                factor = factor_of(arrays, channel, eps)
                sides = FIRST_ROW if at == part.begin * channels * inner else 0
                sides += LAST_ROW if at == (part.end * channels - 1) * inner else 0
                if stream and arrays.bias is not None:
                    shift = arrays.bias[channel]
                    stream_affine(xs, xs, factor, shift, ys, inner, line, sides, one, middle, one)
                elif stream:
                    stream_plain(xs, xs, ys, inner, line, sides, one, middle, factor)
                elif arrays.bias is not None:
                    shift = arrays.bias[channel]
                    for k in vectors(0, inner, lanes):
                        ys[k] = times_plus(xs[k] - middle, factor, shift)
                else:
                    for k in vectors(0, inner, lanes):
                        ys[k] = (xs[k] - middle) * factor

    return normalise


@implements(BatchNormAttr, variants=variants)
def batch_norm(attr: BatchNormAttr, stream: bool = False, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    in_strips, in_planes = strips_of(attr.dtype, width, stream), planes_of(attr.dtype, width, stream)

    def body(arrays: BatchNormArrays, channels: int, inner: int, eps: Any, workspace: Any, part: Range) -> None:
        if inner == 1:
            in_strips(arrays, channels, number(eps[0]), workspace, part)
        else:
            in_planes(arrays, channels, inner, number(eps[0]), workspace, part)
        if stream:
            store_fence()

    return range_kernel_of(
        attr,
        f"batch_norm_{attr.dtype}",
        body,
        extent="rows",
        block=_block(attr) if variant.get("parallel") else 1,
        workspace=STRIP_BYTES,
        workspace_dtype=attr.dtype,
        flags=(),
        reads_first=True,
        **variant,
    )
