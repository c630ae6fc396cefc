"""VSIGMOID around the kernel VEXP."""

from jitkernels.attrs.vector import VExpAttr, VSigmoidAttr
from jitkernels.loops.pieces import PIECE, vector_threads
from jitkernels.loops.sigmoid_by_exp import sigmoid_nest
from jitkernels.more.mix.component import component
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(VSigmoidAttr, variants=vector_threads)
def vsigmoid(attr: VSigmoidAttr, parallel: bool = False) -> LoopNest:
    return sigmoid_nest(attr, component(VExpAttr(n=PIECE, dtype=attr.dtype)), parallel=parallel)
