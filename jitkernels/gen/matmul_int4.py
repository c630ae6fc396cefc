"""Generated MATMUL_INT4: weights used as they are packed for few rows, or panels of them as floats for many."""

from jitkernels import machine
from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.loops.int4_rows import BLOCK, rows_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.loops.weight_columns import columns_nest
from jitkernels.loops.weight_panels import panels_nest
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

FEW, FEW_NARROW = 64, 16
"""Rows up to which weights are used as they are packed, with vectors of 64 bytes and shorter ones; in double two."""


def variants(attr: QuantizedWeightsAttr) -> list[Variant]:
    """Both, the likelier one first; in parallel where there is work for two threads."""
    shares = (True, False) if attr.m * attr.n * attr.k >= PARALLEL_WORK and attr.n >= 4 * BLOCK else (False,)
    few = 2 if attr.dtype == "float64" else FEW if machine.target().vector_bytes == 64 else FEW_NARROW
    names = ("rows", "panels") if attr.m <= few else ("panels", "rows")
    return [{"algorithm": name, "parallel": parallel} for name in names for parallel in shares]


@implements(MatMulInt4Attr, variants=variants)
def matmul_int4(attr: MatMulInt4Attr, algorithm: str = "rows", parallel: bool = False) -> LoopNest:
    if algorithm == "rows" and attr.dtype == "float64":
        return columns_nest(attr, machine.target(), parallel, per_byte=2)
    if algorithm == "rows":
        return rows_nest(attr, machine.target(), parallel)
    return panels_nest(attr, machine.target(), parallel, per_byte=2)
