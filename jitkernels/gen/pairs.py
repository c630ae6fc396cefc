"""Generated DOT of bfloat16: the processor's dot products of pairs, or float32 made of the bits and fused products."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.pairs import DotAttr
from jitkernels.loops.bfloat16_dot import dot as of_pairs
from jitkernels.loops.matmul_grouped import has_instruction
from jitkernels.loops.narrow import narrowed, widened
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 32768
"""Elements that a thread gets at least."""
PART = 512
"""Products that are added up in float32 before they are joined in double."""


def variants(attr: DotAttr) -> list[Variant]:
    shares = (False, True) if attr.rows // _block(attr) >= 4 else (False,)
    algorithms = ("pairs", "widened") if has_instruction("bfloat16", machine.target()) else ("widened",)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in algorithms]


def _block(attr: DotAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(DotAttr, variants=variants, dtypes=("bfloat16",))
def dot(attr: DotAttr, algorithm: str = "widened", parallel: bool = False) -> LoopNest:
    of_row = of_pairs() if algorithm == "pairs" else widened_dot

    def body(x: Any, y: Any, z: Any, rows: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            z[row] = narrowed(of_row(offset(x, row * n), offset(y, row * n), n))

    signature = attr.signature()
    return LoopNest(
        f"dot_bfloat16_{algorithm}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_block(attr) if parallel else 1,
        parallel=parallel,
    )


@inlined("reassoc", "contract")
def widened_dot(x: Any, y: Any, n: int) -> Any:
    """The sum over i < n of x[i] * y[i], without an instruction for it."""
    total = np.float64(0)
    for first in range(0, n, PART):
        part = np.float32(0)
        for i in range(first, min(first + PART, n)):
            part += widened(x[i]) * widened(y[i])
        total += np.float64(part)
    return np.float32(total)
