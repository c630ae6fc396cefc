"""SOFTMAX around the kernel VEXP."""

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.attrs.vector import VExpAttr
from jitkernels.loops.pieces import PIECE
from jitkernels.loops.softmax_by_exp import of_rows, softmax_nest, softmax_threads
from jitkernels.more.mix.component import component
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(SoftmaxAttr, can_be_used=of_rows, variants=softmax_threads)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> LoopNest:
    return softmax_nest(attr, component(VExpAttr(n=PIECE, dtype=attr.dtype)), parallel=parallel)
