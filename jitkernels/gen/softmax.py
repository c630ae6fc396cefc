"""Generated CROSS_ENTROPY, by hand: labels are checked in one pass, then one element of each row is looked up.

What the reference makes is three loop nests, as none may look up elements while it goes along rows.
"""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.softmax import CrossEntropyAttr
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.exact import lost_in, plus, settled
from jitkernels.maths.exp import exp_float32, exp_float64
from jitkernels.maths.log import log_float32, log_float64
from jitkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset, vectors
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 4096
"""Elements that a thread gets at least."""
SUMMED = 2048
"""Exponentials that are added up before they are joined to the sum, with what that loses."""


def check(logits: Any, labels: Any, loss: Any, rows: int, n: int) -> int:
    """How many labels are no class; without a branch per label, so that LLVM vectorises it."""
    wrong = 0
    for i in range(rows):
        wrong += (labels[i] < 0) | (labels[i] >= n)
    return wrong


def variants(attr: CrossEntropyAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _block(attr))


def _block(attr: CrossEntropyAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(CrossEntropyAttr, variants=variants)
def cross_entropy(attr: CrossEntropyAttr, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    single = attr.dtype == "float32"
    row_maximum = row_maximum_float32 if single else row_maximum_float64
    exp, log = (exp_float32, log_float32) if single else (exp_float64, log_float64)
    width = min(variant.get("vector_bytes", 64), machine.target().vector_bytes)
    lanes = machine.target().masked_lanes(attr.dtype, width)

    @inlined("reassoc")
    def sum_of_exponentials(x: Any, n: int, largest: Any) -> Any:
        total = number(0)
        for i in vectors(0, n, lanes):
            total += exp(x[i] - largest)
        return total

    @inlined()
    def sum_of_row(x: Any, n: int, largest: Any) -> Any:
        if n <= SUMMED:
            return sum_of_exponentials(x, n, largest)
        total, lost = number(0), number(0)
        for begin in range(0, n, SUMMED):
            part = sum_of_exponentials(offset(x, begin), min(SUMMED, n - begin), largest)
            lost += lost_in(total, part)
            total = plus(total, part)
        return settled(total, lost)

    def body(logits: Any, labels: Any, loss: Any, rows: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            first = row * n
            largest = row_maximum(logits, first, first + n)
            mine = logits[first + labels[row]] - largest
            loss[row] = log(sum_of_row(offset(logits, first), n, largest)) - mine

    signature = attr.signature()
    return LoopNest(
        f"cross_entropy_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        check=check,
        flags=(),
        **variant,
    )
