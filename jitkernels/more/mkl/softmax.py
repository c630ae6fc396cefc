"""SOFTMAX around MKL's exponential."""

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.loops.softmax_by_exp import of_rows, softmax_nest, softmax_threads
from jitkernels.more.mkl.library import one_thread, set_threads, usable
from jitkernels.more.mkl.mathematics import exponential
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


def usable_of_rows(attr: SoftmaxAttr) -> bool | str:
    """Whether MKL is here, and the axis is the last one."""
    can = of_rows(attr)
    return usable(attr) if can is True else can


@implements(SoftmaxAttr, can_be_used=usable_of_rows, variants=softmax_threads)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> LoopNest:
    return softmax_nest(attr, exponential(attr.dtype), one_thread, set_threads, parallel)
