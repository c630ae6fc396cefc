"""Generated MATMUL_INT4: weights used as they are packed for few rows, or panels of them as floats for many."""

from jitkernels import machine
from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.loops.int4_panels import panels_nest
from jitkernels.loops.int4_rows import BLOCK, rows_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

FEW = 16
"""Rows up to which weights are used as they are packed, in double up to two."""


def variants(attr: MatMulInt4Attr) -> list[Variant]:
    """Both, the likelier one first; in parallel where there is work for two threads."""
    shares = (True, False) if attr.m * attr.n * attr.k >= PARALLEL_WORK and attr.n >= 4 * BLOCK else (False,)
    few = FEW if attr.dtype == "float32" else 2
    names = ("rows", "panels") if attr.m <= few else ("panels", "rows")
    return [{"algorithm": name, "parallel": parallel} for name in names for parallel in shares]


@implements(MatMulInt4Attr, variants=variants)
def matmul_int4(attr: MatMulInt4Attr, algorithm: str = "rows", parallel: bool = False) -> LoopNest:
    return (rows_nest if algorithm == "rows" else panels_nest)(attr, machine.target(), parallel)
