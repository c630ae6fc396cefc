"""Generated CONV2D_WINOGRAD: transforms of tiles in vectors of channels, and register tiles between them."""

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.winograd import Conv2DWinogradAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.convolution.extents import MIN_PARALLEL_CONVOLUTION_OPERATIONS
from jitkernels.microkernels.convolution.winograd import MIN_THREAD_TILES, winograd_kernel


def variants(attr: Conv2DWinogradAttr) -> list[Variant]:
    """Serial, and with threads where tiles and work are enough for two of them."""
    tiles = attr.batch * attr.tile_rows * attr.tile_columns
    is_large = attr.operations() >= MIN_PARALLEL_CONVOLUTION_OPERATIONS and tiles >= 2 * MIN_THREAD_TILES
    return [{"parallel": parallel} for parallel in ((False, True) if is_large else (False,))]


@implements(Conv2DWinogradAttr, variants=variants)
def conv2d_winograd(attr: Conv2DWinogradAttr, parallel: bool = False) -> RangeKernel:
    return winograd_kernel(attr, parallel=parallel)
