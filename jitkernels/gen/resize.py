"""Generated RESIZE2D: rows of the image are resized once each, and rows of the result are sums of these."""

from jitkernels.attrs.resize import Resize2DAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import threads
from jitkernels.microkernels.convolution.resize import resize_kernel

MIN_THREAD_OPERATIONS = 1 << 16
"""Operations that a thread gets at least."""


def variants(attr: Resize2DAttr) -> list[Variant]:
    """Serial, and with threads where there are rows and work for two of them."""
    return threads(min(int(attr.operations()) // MIN_THREAD_OPERATIONS, attr.batch * attr.out_height))


@implements(Resize2DAttr, variants=variants)
def resize2d(attr: Resize2DAttr, parallel: bool = False) -> RangeKernel:
    return resize_kernel(attr, parallel=parallel)
