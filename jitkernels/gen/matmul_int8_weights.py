"""Generated MATMUL_INT8_WEIGHTS: weights used in place for few rows, dequantized panels for many."""

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.core import cpu_target
from jitkernels.gen.matmul_int4 import variants
from jitkernels.microkernels.weight_only_quant.dequant_dot import columns_nest
from jitkernels.microkernels.weight_only_quant.dequant_packed import panels_nest
from jitkernels.microkernels.weight_only_quant.skinny_s8 import rows_nest


@implements(MatMulInt8WeightsAttr, variants=variants)
def matmul_int8_weights(attr: MatMulInt8WeightsAttr, algorithm: str = "rows", parallel: bool = False) -> LoopNest:
    if algorithm == "rows" and attr.dtype == "float64":
        return columns_nest(attr, cpu_target.target(), parallel, per_byte=1)
    if algorithm == "rows":
        return rows_nest(attr, cpu_target.target(), parallel)
    return panels_nest(attr, cpu_target.target(), parallel, per_byte=1)
