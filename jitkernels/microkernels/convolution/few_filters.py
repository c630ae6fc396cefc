"""Convolution with few filters: the loops around tiles in which several pixels share a vector.

A tile with the filters in its lanes would leave most of them unused. The rows of a band are written to scratch memory
with each element repeated, a row for each channel, so that neighbouring pixels of the result read neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.attrs.schema.fields import power_of_two
from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.convolution.extents import (
    Band,
    Convolution,
    ConvolutionExtents,
    Images,
    finisher_of,
    needed_height,
    needed_width,
)
from jitkernels.microkernels.convolution.shared_vector_tile import (
    REPETITION_ARGUMENTS,
    SHARED_TILE_ARGUMENTS,
    SharedVectorTile,
    repetition,
)
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size

MOST_VECTORS = 12
"""Vectors of a tile: sums for as many multiply-adds as are computed at once, and registers left on all processors."""
MIN_TAPS = 4
"""Least taps of a filter: repeating an element costs as much as some multiply-adds."""


class FewFilters(NamedTuple):
    """The code for at most `segment` filters: elements of scratch memory, rows of a band, and what it does."""

    segment: int
    elements: Any
    band_rows: Any
    prepare: Any
    compute: Any


@inlined()
def _unused() -> int:
    return 0


NO_FEW_FILTERS = FewFilters(0, _unused, _unused, _unused, _unused)
"""What takes its place where a vector has room for one pixel alone."""


def segment_of(attr: Any, lanes: int) -> int:
    """Return the lanes for a pixel in vectors that pixels share; 0 where a vector has room for one alone."""
    is_plain = attr.groups == 1 and attr.stride[1] == 1 and attr.dilation == (1, 1) and not attr.has_residual
    segment = power_of_two(attr.filters)
    return segment if is_plain and 2 * segment <= lanes and attr.kernel_height * attr.kernel_width >= MIN_TAPS else 0


def _sizes(kind: Convolution, segment: int) -> tuple[Any, Any, Any, Any]:
    """Make the functions for elements of a repeated row, and of the weights, rows of a band, and all elements."""
    lanes, per = kind.lanes, kind.lanes // segment
    cache_elements = cpu_target.l2_cache_bytes() // element_size(kind.dtype) // 2

    @inlined()
    def pitch_of(e: ConvolutionExtents) -> int:
        """Return the elements of a row of repeated elements: the last vector may reach beyond the pixels."""
        return (needed_width(e) + per) * segment

    @inlined()
    def weights_of(e: ConvolutionExtents) -> int:
        """Return the elements of repeated weights, the biases in front of them."""
        return (e.kernel_height * e.kernel_width * e.channels + 1) * lanes

    @inlined()
    def band_rows(e: ConvolutionExtents) -> int:
        most = cache_elements // max(e.channels * pitch_of(e) * e.stride_height, 1) - e.kernel_height
        return min(max(most, 1), e.out_height)

    @inlined()
    def elements(e: ConvolutionExtents) -> int:
        return weights_of(e) + needed_height(e, band_rows(e)) * e.channels * pitch_of(e)

    return pitch_of, weights_of, band_rows, elements


def _copier(kind: Convolution, name: str, elements: int, lanes: int) -> Any:
    """Make the function that repeats groups of so many elements to so many lanes."""
    text = written_by(repetition, name, kind.dtype, elements, lanes)
    return ir_function(name, kind.dtype, REPETITION_ARGUMENTS, text)


def _tile(kind: Convolution, segment: int, vectors: int, results: int) -> Any:
    """Make the tile of some rows of the result at once."""
    symbol = f"convolution_shared_{results}"
    tile = SharedVectorTile(symbol, kind.dtype, kind.lanes, segment, vectors, kind.activation == "relu", results)
    return ir_function(symbol, kind.dtype, SHARED_TILE_ARGUMENTS, written_by(SharedVectorTile.text, tile))


def _copies(kind: Convolution, segment: int) -> tuple[Any, Any]:
    """Make the functions that repeat biases and weights, and the rows of an image that a band reads."""
    lanes, zero = kind.lanes, np.dtype(kind.dtype).type(0)
    repeat_elements = _copier(kind, "convolution_repeat_elements", 1, segment)
    repeat_weights = _copier(kind, "convolution_repeat_weights", segment, lanes)
    pitch_of, weights_of, _, _ = _sizes(kind, segment)

    @inlined()
    def prepare(arrays: Images, e: ConvolutionExtents, packed: Any, scratch: Any) -> None:
        """Repeat biases and weights, which are in the order of rows of repeated elements then."""
        for lane in range(lanes):
            f = lane % segment
            scratch[lane] = zero
            if arrays.bias is not None and f < e.filters:
                scratch[lane] = arrays.bias[f]
        at = lanes
        for a in range(e.kernel_height):
            for c in range(e.channels):
                source = (a * e.kernel_width * e.channels + c) * PANEL
                repeat_weights(packed, source, e.channels * PANEL, scratch, at, e.kernel_width)
                at += e.kernel_width * lanes

    @inlined()
    def repeat(e: ConvolutionExtents, band: Band, scratch: Any) -> None:
        """Write the rows that a band reads, each element once for each lane of a segment."""
        wide, at = needed_width(e), weights_of(e)
        for row in range(needed_height(e, band.rows)):
            for c in range(e.channels):
                repeat_elements(band.image, band.at + row * band.pitch + c, e.channels, scratch, at, wide)
                for lane in range(lanes):
                    scratch[at + wide * segment + lane] = zero
                at += pitch_of(e)

    return prepare, repeat


def few_filters(kind: Convolution, segment: int) -> FewFilters:
    """Make the code for convolutions of at most `segment` filters, with strides along the height alone."""
    lanes = kind.lanes
    per, finish_pixels = lanes // segment, finisher_of(kind)
    most = min(MOST_VECTORS, kind.pixels)
    multiply, multiply_two = _tile(kind, segment, MOST_VECTORS, 1), _tile(kind, segment, most, 2)
    prepare, repeat = _copies(kind, segment)
    pitch_of, weights_of, band_rows, elements = _sizes(kind, segment)

    @inlined()
    def compute(arrays: Images, e: ConvolutionExtents, band: Band, scratch: Any) -> None:
        repeat(e, band, scratch)
        pitch, first = pitch_of(e), weights_of(e)
        vectors = (e.out_width + per - 1) // per
        results = 2 if e.stride_height == 1 and e.kernel_height > 1 and band.rows > 1 else 1
        at_once = most if results == 2 else MOST_VECTORS
        tiles = (vectors + at_once - 1) // at_once
        step = (vectors + tiles - 1) // max(tiles, 1) * per
        below = band.down * e.filters
        for i in range(0, band.rows, results):
            x, y = first + i * e.stride_height * e.channels * pitch, band.first * e.filters + i * below
            for j in range(0, e.out_width, step):
                pixels, is_pair = min(step, e.out_width - j), results == 2 and band.rows - i > 1
                if is_pair:
                    multiply_two(
                        scratch, x + j * segment, e.kernel_height * e.channels, pitch, e.kernel_width, scratch, lanes,
                        scratch, 0, arrays.y, y + j * e.filters, e.filters, pixels, e.channels, below,
                    )  # fmt: skip
                    finish_pixels(arrays.y, y + below + j * e.filters, e.filters, e.filters, pixels)
                else:
                    multiply(
                        scratch, x + j * segment, e.kernel_height * e.channels, pitch, e.kernel_width, scratch, lanes,
                        scratch, 0, arrays.y, y + j * e.filters, e.filters, pixels, 0, 0,
                    )  # fmt: skip
                finish_pixels(arrays.y, y + j * e.filters, e.filters, e.filters, pixels)

    return FewFilters(segment, elements, band_rows, prepare, compute)
