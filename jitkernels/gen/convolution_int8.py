"""Generated CONV2D_INT8 and CONV2D_INT8_PACKED: register tiles of dot products of words, over images channels last."""

from jitkernels.attrs.convolution_int8 import Conv2DInt8Attr, Conv2DInt8PackedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.convolution.extents import MIN_PARALLEL_CONVOLUTION_OPERATIONS
from jitkernels.microkernels.convolution.int8_direct import int8_convolution_kernel


def variants(attr: Conv2DInt8Attr) -> list[Variant]:
    """Serial, and with threads where the work is enough for two of them."""
    is_large = attr.operations() >= MIN_PARALLEL_CONVOLUTION_OPERATIONS and attr.batch * attr.out_height > 1
    return [{"parallel": parallel} for parallel in ((False, True) if is_large else (False,))]


@implements(Conv2DInt8Attr, variants=variants)
def conv2d_int8(attr: Conv2DInt8Attr, parallel: bool = False) -> RangeKernel:
    return int8_convolution_kernel(attr, is_packed=False, parallel=parallel)


@implements(Conv2DInt8PackedAttr, variants=variants)
def conv2d_int8_packed(attr: Conv2DInt8PackedAttr, parallel: bool = False) -> RangeKernel:
    return int8_convolution_kernel(attr, is_packed=True, parallel=parallel)
