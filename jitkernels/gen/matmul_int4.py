"""Generated MATMUL_INT4: packed weights used directly for few rows, dequantized panels for many."""

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS
from jitkernels.microkernels.weight_only_quant.dequant_dot import columns_kernel
from jitkernels.microkernels.weight_only_quant.dequant_packed import panels_kernel
from jitkernels.microkernels.weight_only_quant.quantized import HALF_MIN_THREAD_COLUMNS
from jitkernels.microkernels.weight_only_quant.skinny_s4 import rows_kernel

MAX_PACKED_ROWS, MAX_PACKED_ROWS_NARROW = 64, 16
"""Most rows for which packed weights are used directly, with 64-byte vectors and shorter ones; two for double."""


def variants(attr: QuantizedWeightsAttr) -> list[Variant]:
    """List both algorithms, the likelier one first; parallel where there is work for two threads."""
    shares = (
        (True, False)
        if attr.m * attr.n * attr.k >= MIN_PARALLEL_STATIC_MULTIPLY_ADDS and attr.n >= 4 * HALF_MIN_THREAD_COLUMNS
        else (False,)
    )
    few = (
        2
        if attr.dtype == "float64"
        else MAX_PACKED_ROWS
        if cpu_target.target().vector_bytes == 64
        else MAX_PACKED_ROWS_NARROW
    )
    names = ("rows", "panels") if attr.m <= few else ("panels", "rows")
    return [{"algorithm": name, "parallel": parallel} for name in names for parallel in shares]


@implements(MatMulInt4Attr, variants=variants)
def matmul_int4(attr: MatMulInt4Attr, algorithm: str = "rows", parallel: bool = False) -> RangeKernel:
    if algorithm == "rows" and attr.dtype == "float64":
        return columns_kernel(attr, cpu_target.target(), parallel, per_byte=2)
    if algorithm == "rows":
        return rows_kernel(attr, cpu_target.target(), parallel)
    return panels_kernel(attr, cpu_target.target(), parallel, per_byte=2)
