"""Generated CONV2D and CONV2D_PACKED: register tiles over images with channels last."""

from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.convolution.direct import convolution_kernel
from jitkernels.microkernels.convolution.extents import MIN_PARALLEL_CONVOLUTION_OPERATIONS
from jitkernels.microkernels.convolution.few_filters import segment_of


def variants(attr: Conv2DAttr) -> list[Variant]:
    """Serial, and with threads where the work is enough for two of them; first with pixels that share vectors."""
    is_large = attr.operations() >= MIN_PARALLEL_CONVOLUTION_OPERATIONS and attr.batch * attr.out_height > 1
    segment = segment_of(attr, cpu_target.target().lanes(attr.dtype))
    shared: list[Variant] = [{"segment": segment}] if segment else []
    return [
        {"parallel": parallel, **one} for parallel in ((False, True) if is_large else (False,)) for one in (*shared, {})
    ]


@implements(Conv2DAttr, variants=variants)
def conv2d(attr: Conv2DAttr, parallel: bool = False, segment: int = 0) -> RangeKernel:
    return convolution_kernel(attr, is_packed=False, parallel=parallel, segment=segment)


@implements(Conv2DPackedAttr, variants=variants)
def conv2d_packed(attr: Conv2DPackedAttr, parallel: bool = False, segment: int = 0) -> RangeKernel:
    return convolution_kernel(attr, is_packed=True, parallel=parallel, segment=segment)
