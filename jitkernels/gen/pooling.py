"""Generated MAX_POOL2D, MAX_POOL2D_BACKWARD and AVG_POOL2D: channels in lanes."""

from jitkernels.attrs.pooling import AvgPool2DAttr, MaxPool2DAttr, MaxPool2DBackwardAttr, PoolAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import threads
from jitkernels.microkernels.convolution.pool import pool_kernel
from jitkernels.microkernels.convolution.pool_backward import max_pool_backward_kernel

MIN_THREAD_OPERATIONS = 1 << 16
"""Operations that a thread gets at least."""


def variants(attr: PoolAttr) -> list[Variant]:
    """Serial, and with threads where there are rows and work for two of them."""
    return threads(min(int(attr.operations()) // MIN_THREAD_OPERATIONS, attr.batch * attr.out_height))


@implements(MaxPool2DAttr, variants=variants)
def max_pool2d(attr: MaxPool2DAttr, parallel: bool = False) -> RangeKernel:
    return pool_kernel(attr, mean=False, counts_padding=False, parallel=parallel)


@implements(AvgPool2DAttr, variants=variants)
def avg_pool2d(attr: AvgPool2DAttr, parallel: bool = False) -> RangeKernel:
    return pool_kernel(attr, mean=True, counts_padding=attr.count_include_pad, parallel=parallel)


def backward_variants(attr: MaxPool2DBackwardAttr) -> list[Variant]:
    """Serial, and with threads where there are images and work for two of them: windows of an image overlap."""
    return threads(min(int(attr.operations()) // MIN_THREAD_OPERATIONS, attr.batch))


@implements(MaxPool2DBackwardAttr, variants=backward_variants)
def max_pool2d_backward(attr: MaxPool2DBackwardAttr, parallel: bool = False) -> RangeKernel:
    return max_pool_backward_kernel(attr, parallel=parallel)
