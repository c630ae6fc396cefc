"""The arguments of convolutions as records, what follows from them, and the tiles of a kind of convolution."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.tile import ConvolutionTile
from jitkernels.microkernels.convolution.tile_text import FIRST_CHUNK, LAST_CHUNK, TILE_ARGUMENTS
from jitkernels.microkernels.epilogue.bias_activation import row_epilogue
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size

TILE_VECTORS = 2
"""Vectors of filters in a tile."""
BAND_SHARE = 2
"""The share of the L2 cache, as a divisor, that the rows of the image in a band take."""
CHUNK_SHARE = 8
"""The share that those rows of a panel of filters take that pass over a band at once."""
MIN_PARALLEL_CONVOLUTION_OPERATIONS = 1 << 20
"""Least operations of a convolution with threads: 10 us of one core at 100 GFLOP/s."""
MIN_SKIPPED_CHANNELS = 32
"""Channels of a tap whose products with padding take longer to compute than it takes to begin a run for each tap."""
ONCE = FIRST_CHUNK + LAST_CHUNK
"""Of a tile that has all rows of the filter."""


class Images(NamedTuple):
    """The arrays; bias and residual are None where there is none."""

    x: Any
    w: Any
    bias: Any
    residual: Any
    y: Any


class ConvolutionExtents(NamedTuple):
    """The integers of the row."""

    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    filters: int
    groups: int
    group_channels: int
    out_height: int
    out_width: int
    stride_height: int
    stride_width: int
    pad_top: int
    pad_left: int
    dilation_height: int
    dilation_width: int


class Band(NamedTuple):
    """Rows of the result whose tiles are computed together, and where the image begins for them.

    `pixels` of the result in each of `rows` rows, the first of them the pixel `first`; the next one in its row is
    `apart` pixels further on, and the one below `down`. A pixel begins `y_pitch` elements behind the one before. The
    element of their first tap is `at` of `image`, which may be a copy; a row of taps below is `pitch` elements further
    on. That tap lies in row `top` and column `left` of the image itself, outside of it where they are negative. The
    band after it reads `ahead` elements of the images from `next` on.
    """

    image: Any
    at: int
    pitch: int
    rows: int
    pixels: int
    first: int
    apart: int
    down: int
    y_pitch: int
    top: int
    left: int
    next: int
    ahead: int


class Chunk(NamedTuple):
    """Some rows of a panel of filters, from the row `first` on; `state`: the argument `chunk` of tiles.

    The last one of a band, `ends`, prefetches what the next band reads.
    """

    first: int
    rows: int
    state: int
    ends: bool


class TapRuns(NamedTuple):
    """What a tile reads of the filters in each row of them: how many runs of which length, and which pixels skip some.

    The first pixel skips the first `skip_first` runs, the last one the last `skip_last`.
    """

    runs: int
    run: int
    skip_first: int
    skip_last: int


class Columns(NamedTuple):
    """Filters of a tile: the first of all, how many, where their panel begins, and their group's first channel."""

    first: int
    live: int
    panel: int
    channel: int


@frozen_dataclass
class Convolution:
    """What determines the code."""

    dtype: str
    lanes: int
    pixels: int
    biased: bool
    has_residual: bool
    activation: str
    band_elements: int
    chunk_elements: int
    is_packed: bool

    @property
    def width(self) -> int:
        """Filters of a tile."""
        return TILE_VECTORS * self.lanes


def convolution_of(attr: Any, target: Target, *, is_packed: bool, has_residual: bool = False) -> Convolution:
    """Choose the tile by the registers: sums, the vectors of weights, and one broadcast."""
    pixels = (target.registers - TILE_VECTORS - 1) // TILE_VECTORS
    elements = cpu_target.l2_cache_bytes() // element_size(attr.dtype)
    return Convolution(
        attr.dtype, target.lanes(attr.dtype), pixels, attr.biased, has_residual, attr.activation,
        elements // BAND_SHARE, elements // CHUNK_SHARE, is_packed,
    )  # fmt: skip


@inlined()
def covered(extent: int, dilation: int) -> int:
    """Return how many pixels a filter of some extent covers."""
    return (extent - 1) * dilation + 1


@inlined()
def needed_width(e: ConvolutionExtents) -> int:
    """Return the pixels of an image's row, padding included, that a row of the result needs."""
    return (e.out_width - 1) * e.stride_width + covered(e.kernel_width, e.dilation_width)


@inlined()
def needed_height(e: ConvolutionExtents, rows: int) -> int:
    """Return the rows of an image, padding included, that some rows of the result need."""
    return (rows - 1) * e.stride_height + covered(e.kernel_height, e.dilation_height)


@inlined()
def is_padded(e: ConvolutionExtents) -> bool:
    """Return whether some window reaches beyond the image."""
    return (
        e.pad_top > 0 or e.pad_left > 0 or needed_height(e, e.out_height) > e.height or needed_width(e) > e.width
    )  # fmt: skip


@inlined()
def columns_left(e: ConvolutionExtents, column: int) -> int:
    """Return how many columns of a filter lie left of the image, where the first of all lies in its column `column`."""
    return max(min((e.dilation_width - 1 - column) // e.dilation_width, e.kernel_width), 0)


@inlined()
def columns_right(e: ConvolutionExtents, column: int) -> int:
    """Return how many columns of a filter lie right of the image."""
    return max(min(e.kernel_width - 1 - (e.width - 1 - column) // e.dilation_width, e.kernel_width), 0)


@inlined()
def skips_columns(e: ConvolutionExtents) -> bool:
    """Return whether tiles skip columns of filters beside the image."""
    return e.kernel_width > 1 and e.group_channels >= MIN_SKIPPED_CHANNELS


@inlined()
def is_depthwise(e: ConvolutionExtents) -> bool:
    """Return whether each channel has one filter, so that lanes are channels."""
    return e.group_channels == 1 and e.filters == e.channels


@inlined()
def is_pointwise(e: ConvolutionExtents) -> bool:
    """Return whether each pixel of the result depends on the pixel at its place alone, in images without padding."""
    is_one = e.kernel_height == 1 and e.kernel_width == 1 and e.stride_height == 1 and e.stride_width == 1
    return is_one and e.out_height == e.height and e.out_width == e.width and e.pad_top == 0 and e.pad_left == 0


def tile_of(kind: Convolution, symbol: str, pixels: int, vectors: int, **more: Any) -> Any:
    relu = kind.activation == "relu"
    parameters = kind.dtype, kind.lanes, pixels, vectors, kind.biased, relu, kind.has_residual
    tile = ConvolutionTile(symbol, *parameters, **more)
    return ir_function(symbol, kind.dtype, TILE_ARGUMENTS, written_by(ConvolutionTile.text, tile))


def finisher_of(kind: Convolution) -> Any:
    """Make the function that applies activations that tiles do not, to the results of a tile."""
    has_rest = kind.activation not in ("identity", "relu")
    finish = row_epilogue(kind.activation, kind.dtype, biased=False)

    @inlined()
    def finish_pixels(y: Any, at: int, stride: int, live: int, pixels: int) -> None:
        if has_rest:
            for i in range(pixels):
                finish(offset(y, at + i * stride), y, live)

    return finish_pixels
