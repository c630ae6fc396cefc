"""The register tile of a convolution, as LLVM IR text: some pixels of one row of the result by some vectors of filters.

With channels last, the taps of a pixel in one row of the filter are one run of ``kernel_width * channels`` neighbours
of the image, and the next pixel's run begins ``stride * channels`` further on.  So the tile is that of a matrix product
(`jitkernels.microkernels.gemm.microkernel`) with overlapping rows of A, and loops over the rows of the filter inside,
which keep all sums in registers: per step it loads ``vectors`` vectors of packed weights, broadcasts one element for
each pixel and issues ``pixels * vectors`` fused multiply-adds.  A depthwise tile has channels in its lanes instead.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.tile_text import TILE_ARGUMENTS, ConvolutionTileText, by_pixels
from jitkernels.microkernels.gemm.microkernel import declarations


@frozen_dataclass
class ConvolutionTile:
    """Compile-time parameters of the functions for 1 to `pixels` pixels, and of `symbol`, which calls the right one.

    For each of `rows` rows of the filter and `runs` runs in it, `run` neighbours of the image meet packed weights. A
    tile that is `depthwise` meets each run with one vector of weights per vector of channels, `w_stride` apart. In one
    of `strided_runs`, the elements of a run lie `pixel_stride` apart, and the next pixel's are their neighbours; the
    weights of runs begin `w_stride` apart, those of rows `lead`, and earlier sums are added behind the loops. With
    `masked`, loads and stores are limited to `live` columns; a tile that is not masks stores only where `live` is less
    than its width. `biased`: the first sums begin with the bias. `has_residual`: the elements of `residual`
    at the places of those of y are added to the last sums. `panel`: the elements of a step of packed weights, if
    these are more than the tile's. Steps prefetch weights, from `ahead_offset` on, `ahead_stride` elements each, and
    `next` in the same way.
    `bordered`: in each row, the first `skip_first` runs skip the first pixel and the last `skip_last` ones the last
    pixel, whose neighbours there are zeros outside of the image; fewer pixels than half of the most ignore that.
    """

    symbol: str
    dtype: str
    lanes: int
    pixels: int
    vectors: int
    biased: bool
    relu: bool
    has_residual: bool = False
    depthwise: bool = False
    strided_runs: bool = False
    masked: bool = False
    panel: int = 0
    bordered: bool = False

    def text(self) -> str:
        """Write the IR of `symbol`, and the declarations that it needs."""
        tiles = [ConvolutionTileText(self, count).build() for count in range(1, self.pixels + 1)]
        return declarations(self.dtype, self.lanes) + by_pixels(self.symbol, tiles, TILE_ARGUMENTS)
