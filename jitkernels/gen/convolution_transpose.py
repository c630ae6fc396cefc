"""Generated CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED: register tiles of CONV2D, for each phase of the strides."""

from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr, Conv2DTransposePackedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.convolution.extents import MIN_PARALLEL_CONVOLUTION_OPERATIONS
from jitkernels.microkernels.convolution.transposed import transposed_kernel


def variants(attr: Conv2DTransposeAttr) -> list[Variant]:
    """Serial, and with threads where the work is enough for two of them."""
    is_large = attr.operations() >= MIN_PARALLEL_CONVOLUTION_OPERATIONS and attr.batch * attr.out_height > 1
    return [{"parallel": parallel} for parallel in ((False, True) if is_large else (False,))]


@implements(Conv2DTransposeAttr, variants=variants)
def conv2d_transpose(attr: Conv2DTransposeAttr, parallel: bool = False) -> RangeKernel:
    return transposed_kernel(attr, is_packed=False, parallel=parallel)


@implements(Conv2DTransposePackedAttr, variants=variants)
def conv2d_transpose_packed(attr: Conv2DTransposePackedAttr, parallel: bool = False) -> RangeKernel:
    return transposed_kernel(attr, is_packed=True, parallel=parallel)
