"""SOFTMAX around the kernel VEXP."""

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.attrs.vector import VExpAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import PIECE
from jitkernels.microkernels.reduction.softmax_from_vector_exp import of_rows, softmax_kernel, softmax_threads
from jitkernels.more.mix.component import component


@implements(SoftmaxAttr, can_be_used=of_rows, variants=softmax_threads)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> RangeKernel:
    return softmax_kernel(attr, component(VExpAttr(n=PIECE, dtype=attr.dtype)), parallel=parallel)
