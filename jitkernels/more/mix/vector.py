"""VSIGMOID around the kernel VEXP."""

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.vector import VExpAttr, VSigmoidAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import PIECE, vector_threads
from jitkernels.microkernels.reduction.sigmoid_from_vector_exp import sigmoid_kernel
from jitkernels.more.mix.component import component


@implements(VSigmoidAttr, variants=vector_threads)
def vsigmoid(attr: VSigmoidAttr, parallel: bool = False) -> RangeKernel:
    return sigmoid_kernel(attr, component(VExpAttr(n=PIECE, dtype=attr.dtype)), parallel=parallel)
