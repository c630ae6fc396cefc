"""Generated CONV2D and CONV2D_PACKED: register tiles over images with channels last."""

from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.convolution.direct import convolution_kernel
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS


def variants(attr: Conv2DAttr) -> list[Variant]:
    """Serial, and with threads where the work is enough for two of them."""
    is_large = attr.operations() >= 2 * MIN_PARALLEL_STATIC_MULTIPLY_ADDS and attr.batch * attr.out_height > 1
    return [{"parallel": parallel} for parallel in ((False, True) if is_large else (False,))]


@implements(Conv2DAttr, variants=variants)
def conv2d(attr: Conv2DAttr, parallel: bool = False) -> RangeKernel:
    return convolution_kernel(attr, is_packed=False, parallel=parallel)


@implements(Conv2DPackedAttr, variants=variants)
def conv2d_packed(attr: Conv2DPackedAttr, parallel: bool = False) -> RangeKernel:
    return convolution_kernel(attr, is_packed=True, parallel=parallel)
