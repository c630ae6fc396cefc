"""Generated MATMUL_INT8_WEIGHTS: weights used in place for few rows, dequantized panels for many."""

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.gen.matmul_int4 import variants
from jitkernels.microkernels.weight_only_quant.dequant_dot import columns_kernel
from jitkernels.microkernels.weight_only_quant.dequant_packed import panels_kernel
from jitkernels.microkernels.weight_only_quant.skinny_s8 import rows_kernel


@implements(MatMulInt8WeightsAttr, variants=variants)
def matmul_int8_weights(attr: MatMulInt8WeightsAttr, algorithm: str = "rows", parallel: bool = False) -> RangeKernel:
    if algorithm == "rows" and attr.dtype == "float64":
        return columns_kernel(attr, cpu_target.target(), parallel, per_byte=1)
    if algorithm == "rows":
        return rows_kernel(attr, cpu_target.target(), parallel)
    return panels_kernel(attr, cpu_target.target(), parallel, per_byte=1)
