"""VSIGMOID around the kernel VEXP."""

from jitkernels.attrs.vector import VExpAttr, VSigmoidAttr
from jitkernels.more.mix.component import component
from jitkernels.more.pieces import PIECE, vector_threads
from jitkernels.more.sigmoid_by_exp import sigmoid_nest
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(VSigmoidAttr, variants=vector_threads)
def vsigmoid(attr: VSigmoidAttr, parallel: bool = False) -> LoopNest:
    return sigmoid_nest(attr, component(VExpAttr(n=PIECE, dtype=attr.dtype)), parallel=parallel)
