"""Depthwise convolution: vectors of channels, each of which has one filter."""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.convolution.extents import (
    ONCE,
    TILE_VECTORS,
    Band,
    Convolution,
    ConvolutionExtents,
    Images,
    finisher_of,
    tile_of,
)
from jitkernels.microkernels.convolution.tile_text import ROW_PIXELS

DEPTHWISE_PIXELS = 8
"""Pixels of a depthwise tile: two vectors for each leave registers for the weights."""


def depthwise_of(kind: Convolution) -> Any:
    """Make the function that computes a band where each channel has one filter."""
    most, width, lanes = DEPTHWISE_PIXELS, kind.width, kind.lanes
    whole = tile_of(kind, "depthwise_wide", most, TILE_VECTORS, depthwise=True)
    part_of = tile_of(kind, "depthwise_part", most, 1, depthwise=True, masked=True)
    finish_pixels = finisher_of(kind)

    @inlined()
    def depthwise(arrays: Images, e: ConvolutionExtents, band: Band) -> None:
        w, y = arrays.w, arrays.y
        bias = y if arrays.bias is None else arrays.bias
        residual = y if arrays.residual is None else arrays.residual
        c, image = e.channels, band.image
        count = (band.pixels + most - 1) // most
        pixel, down, right = e.stride_width * c, e.dilation_height * band.pitch, e.dilation_width * c
        lead, gap = ROW_PIXELS * pixel, band.apart * band.y_pitch
        for i in range(band.rows):
            row, done = band.at + i * e.stride_height * band.pitch, 0
            for part in range(count):
                n = (band.pixels - done + count - part - 1) // (count - part)
                at, x = (band.first + i * band.down + done * band.apart) * band.y_pitch, row + done * pixel
                first = 0
                while first < c:
                    live = min(c - first, width)
                    if live == width:
                        whole(image, x + first, pixel, lead, e.kernel_height, down, e.kernel_width, right, 1, w, first,
                              c, 0, 0, bias, first, residual, y, at + first, gap, live, n, ONCE, 0, 0, y, 0,
                              0)  # fmt: skip
                    else:
                        live = min(live, lanes)
                        part_of(image, x + first, pixel, lead, e.kernel_height, down, e.kernel_width, right, 1, w,
                                first, c, 0, 0, bias, first, residual, y, at + first, gap, live, n, ONCE, 0, 0, y,
                                0, 0)  # fmt: skip
                    first += live
                finish_pixels(y, at, gap, c, n)
                done += n

    return depthwise
