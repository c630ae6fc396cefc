"""Generated MATMUL_INT8_WEIGHTS: weights used as they lie for few rows, or panels of them as floats for many."""

from jitkernels import machine
from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.gen.matmul_int4 import variants
from jitkernels.loops.int8_rows import rows_nest
from jitkernels.loops.weight_panels import panels_nest
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(MatMulInt8WeightsAttr, variants=variants)
def matmul_int8_weights(
    attr: MatMulInt8WeightsAttr, algorithm: str = "rows", parallel: bool = False
) -> LoopNest:
    if algorithm == "rows":
        return rows_nest(attr, machine.target(), parallel)
    return panels_nest(attr, machine.target(), parallel, per_byte=1)
