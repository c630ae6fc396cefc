"""Generated CONV2D_BACKWARD_WEIGHTS: register tiles that sum over pixels."""

from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.convolution.backward_weights import MIN_THREAD_FILTERS, backward_weights_kernel
from jitkernels.microkernels.convolution.extents import MIN_PARALLEL_CONVOLUTION_OPERATIONS


def variants(attr: Conv2DBackwardWeightsAttr) -> list[Variant]:
    """Serial, and with threads where filters and work are enough for two of them."""
    is_large = attr.operations() >= MIN_PARALLEL_CONVOLUTION_OPERATIONS and attr.filters >= 2 * MIN_THREAD_FILTERS
    return [{"parallel": parallel} for parallel in ((False, True) if is_large else (False,))]


@implements(Conv2DBackwardWeightsAttr, variants=variants)
def conv2d_backward_weights(attr: Conv2DBackwardWeightsAttr, parallel: bool = False) -> RangeKernel:
    return backward_weights_kernel(attr, parallel=parallel)
