"""Generated GROUP_NORM, written by hand: the moments of a group as those of a LAYER_NORM row, then its channels."""

from typing import Any

import numpy as np

from jitkernels.attrs.group_norm import GroupNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core import cpu_target
from jitkernels.microkernels.maths.strict_arithmetic import distance, times, times_plus
from jitkernels.microkernels.reduction.mean_variance import careful_moments, moments
from jitkernels.microkernels.reduction.streaming_normalize import (
    AHEAD,
    ARRAYS,
    FIRST,
    LAST,
    LINE,
    NUMBERS,
    streaming_results,
    streams,
    visible,
)
from jitkernels.microkernels.tuning_space import widths_and_threads

BLOCK_ELEMENTS = 8192
"""Least number of elements per thread."""


def check_plain(x: Any, y: Any, rows: int, channels: int, inner: int, groups: int, eps: Any) -> int:
    """Return channels % groups: one object serves all numbers of groups, invalid ones as well."""
    return channels % groups


def check_affine(
    x: Any, scale: Any, bias: Any, y: Any, rows: int, channels: int, inner: int, groups: int, eps: Any
) -> int:
    """Return the same with scale and bias."""
    return channels % groups


def variants(attr: GroupNormAttr) -> list[Variant]:
    return streams(widths_and_threads(attr.rows // _block(attr)), attr.signature().outputs[0])


def _block(attr: GroupNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.channels * attr.inner, 1)).bit_length() - 1)


@implements(GroupNormAttr, variants=variants)
def group_norm(attr: GroupNormAttr, stream: bool = False, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    ahead = AHEAD // number(0).itemsize
    width = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    lanes = cpu_target.target().masked_lanes(attr.dtype, width)
    measures = moments(attr.dtype, width, careful_moments(attr.dtype))
    # Without streaming, the names are bound to a small function, as the object includes it all the same.
    plain_past, arrays_past, numbers_past = (
        streaming_results(attr.dtype, width, affine) if stream else visible for affine in ("", ARRAYS, NUMBERS)
    )

    @inlined()
    def plain_group(xs: Any, ys: Any, n: int, eps: Any, line: Any, sides: int) -> None:
        unit, mean, _, factor = measures(xs, n, eps)
        if stream:
            plain_past(xs, offset(xs, n if n <= ahead else 0), ys, n, line, sides, unit, mean, factor)
        else:
            for i in vectors(0, n, lanes):
                ys[i] = times(distance(xs[i], unit, mean), factor)

    @inlined()
    def affine_group(
        xs: Any, scale: Any, bias: Any, ys: Any, group_channels: int, inner: int, eps: Any, line: Any, sides: int
    ) -> None:
        n = group_channels * inner
        unit, mean, _, factor = measures(xs, n, eps)
        if stream and inner == 1:
            arrays_past(xs, offset(xs, n if n <= ahead else 0), scale, bias, ys, n, line, sides, unit, mean, factor)
        elif stream:
            for channel in range(group_channels):
                at = channel * inner
                numbers_past(
                    offset(xs, at),
                    offset(xs, at + (n if n <= ahead else 0)),
                    scale[channel],
                    bias[channel],
                    offset(ys, at),
                    inner,
                    line,
                    (sides & FIRST if channel == 0 else 0) + (sides & LAST if channel == group_channels - 1 else 0),
                    unit,
                    mean,
                    factor,
                )
        elif inner == 1:
            for i in vectors(0, group_channels, lanes):
                ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), scale[i], bias[i])
        else:
            for channel in range(group_channels):
                own, shift = scale[channel], bias[channel]
                for i in vectors(channel * inner, (channel + 1) * inner, lanes):
                    ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), own, shift)

    def plain(
        x: Any, y: Any, rows: int, channels: int, inner: int, groups: int, eps: Any, line: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        n = channels // groups * inner
        for group in range(begin * groups, end * groups):
            if n > 0:
                sides = (FIRST if group == begin * groups else 0) + (LAST if group == end * groups - 1 else 0)
                plain_group(offset(x, group * n), offset(y, group * n), n, number(eps[0]), line, sides)
        if stream:
            visible()

    def affine(
        x: Any, scale: Any, bias: Any, y: Any, rows: int, channels: int, inner: int, groups: int, eps: Any,
        line: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        group_channels = channels // groups
        n = group_channels * inner
        if n > 0:
            for row in range(begin, end):
                for group in range(groups):
                    at, first = (row * groups + group) * n, group * group_channels
                    sides = (FIRST if at == begin * groups * n else 0) + (LAST if at == (end * groups - 1) * n else 0)
                    affine_group(
                        offset(x, at), offset(scale, first), offset(bias, first), offset(y, at), group_channels, inner,
                        number(eps[0]), line, sides,
                    )  # fmt: skip
        if stream:
            visible()

    signature = attr.signature()
    return LoopNest(
        f"group_norm_{attr.dtype}",
        signature.c_arguments,
        affine if attr.affine else plain,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        check=check_affine if attr.affine else check_plain,
        flags=(),
        workspace=LINE,
        workspace_dtype=attr.dtype,
        reads_first=True,
        **variant,
    )
