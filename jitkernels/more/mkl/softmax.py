"""SOFTMAX around MKL's exponential."""

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.reduction.softmax_from_vector_exp import of_rows, softmax_kernel, softmax_threads
from jitkernels.more.mkl.library import one_thread, set_threads, usable
from jitkernels.more.mkl.mathematics import exponential


def usable_of_rows(attr: SoftmaxAttr) -> bool | str:
    """Return whether MKL is here, and the axis is the last one."""
    can = of_rows(attr)
    return usable(attr) if can is True else can


@implements(SoftmaxAttr, can_be_used=usable_of_rows, variants=softmax_threads)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> RangeKernel:
    return softmax_kernel(attr, exponential(attr.dtype), one_thread, set_threads, parallel)
