"""Generated GROUP_NORM, written by hand: the moments of a group as those of a LAYER_NORM row, then its channels."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.group_norm import GroupNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.maths.strict_arithmetic import distance, times, times_plus
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.mean_variance import careful_moments, moments
from jitkernels.microkernels.reduction.streaming_normalize import (
    ARRAYS,
    FIRST_ROW,
    LAST_ROW,
    MAX_PREFETCHED_ROW_BYTES,
    NUMBERS,
    store_fence,
    streaming_results,
    streams,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

NORM_THREAD_ELEMENTS = 8192
"""Least number of elements per thread."""


class GroupNormArrays(NamedTuple):
    """The arrays; scale and bias may be None."""

    x: Any
    scale: Any
    bias: Any
    y: Any


class ChannelGroup(NamedTuple):
    """The channels of a group, of `inner` elements each, and which of FIRST_ROW and LAST_ROW it is."""

    channels: int
    inner: int
    sides: int


class GroupNormExtents(NamedTuple):
    """The extents of a row."""

    channels: int
    inner: int
    groups: int


def check(channels: int, groups: int) -> int:
    """Return channels % groups: one object serves all numbers of groups, invalid ones as well."""
    return channels % groups


def _block(attr: GroupNormAttr) -> int:
    return grain(attr.channels * attr.inner, NORM_THREAD_ELEMENTS)


def variants(attr: GroupNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // _block(attr)), attr.signature().outputs[0])


def normalising_of(dtype: str, width: int, stream: bool) -> Any:
    """Return the function that normalizes a group."""
    number: Any = np.dtype(dtype).type
    ahead, lanes = MAX_PREFETCHED_ROW_BYTES // number(0).itemsize, cpu_target.target().masked_lanes(dtype, width)
    measures = moments(dtype, width, careful_moments(dtype))
    # Without streaming, the names are bound to a small function, as the object includes it all the same.
    stream_plain, stream_arrays, stream_numbers = (
        streaming_results(dtype, width, affine) if stream else store_fence for affine in ("", ARRAYS, NUMBERS)
    )

    @inlined()
    def normalise(arrays: GroupNormArrays, group: ChannelGroup, eps: Any, line: Any) -> None:
        xs, ys, scale, bias = arrays.x, arrays.y, arrays.scale, arrays.bias
        channels, inner, sides = group.channels, group.inner, group.sides
        n = channels * inner
        unit, mean, _, factor = measures(xs, n, eps)
        following = n if n <= ahead else 0
        if stream and scale is None:
            stream_plain(xs, offset(xs, following), ys, n, line, sides, unit, mean, factor)
        elif stream and inner == 1:
            stream_arrays(xs, offset(xs, following), scale, bias, ys, n, line, sides, unit, mean, factor)
        elif stream:
            for channel in range(channels):
                at = channel * inner
                own_sides = (sides & FIRST_ROW if channel == 0 else 0) + (
                    sides & LAST_ROW if channel == channels - 1 else 0
                )
                stream_numbers(
                    offset(xs, at), offset(xs, at + following), scale[channel], bias[channel], offset(ys, at), inner,
                    line, own_sides, unit, mean, factor,
                )  # fmt: skip
        elif scale is None:
            for i in vectors(0, n, lanes):
                ys[i] = times(distance(xs[i], unit, mean), factor)
        elif inner == 1:
            for i in vectors(0, channels, lanes):
                ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), scale[i], bias[i])
        else:
            for channel in range(channels):
                own, shift = scale[channel], bias[channel]
                for i in vectors(channel * inner, (channel + 1) * inner, lanes):
                    ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), own, shift)

    return normalise


@implements(GroupNormAttr, variants=variants)
def group_norm(attr: GroupNormAttr, stream: bool = False, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    normalise = normalising_of(attr.dtype, width, stream)

    def body(arrays: GroupNormArrays, extents: GroupNormExtents, eps: Any, workspace: Any, part: Range) -> None:
        groups, inner = extents.groups, extents.inner
        channels = extents.channels // groups
        n = channels * inner
        if n > 0:
            for row in range(part.begin, part.end):
                for number_in_row in range(groups):
                    at, first = (row * groups + number_in_row) * n, number_in_row * channels
                    sides = FIRST_ROW if at == part.begin * groups * n else 0
                    sides += LAST_ROW if at == (part.end * groups - 1) * n else 0
                    own = GroupNormArrays(
                        offset(arrays.x, at), offset(arrays.scale, first), offset(arrays.bias, first),
                        offset(arrays.y, at),
                    )  # fmt: skip
                    normalise(own, ChannelGroup(channels, inner, sides), number(eps[0]), workspace)
        if stream:
            store_fence()

    return range_kernel_of(
        attr,
        f"group_norm_{attr.dtype}",
        body,
        extent="rows",
        block=_block(attr) if variant.get("parallel") else 1,
        check=check,
        flags=(),
        workspace=CACHE_LINE_BYTES,
        workspace_dtype=attr.dtype,
        reads_first=True,
        **variant,
    )
