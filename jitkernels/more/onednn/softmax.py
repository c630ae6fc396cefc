"""SOFTMAX along the last axis by primitives of oneDNN.

Along another axis they add up one by one, and their logarithm of a softmax is ``x - (maximum + log(sum))``, which loses
the digits that all of a row have in common: neither is near enough to the truth, so that LOG_SOFTMAX is not here.
"""

from typing import Any

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.loops.pieces import BLOCK, threads
from jitkernels.more.onednn.primitives import SOFTMAX, primitives, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements

LONGEST = 4096
"""Terms that oneDNN adds up exactly enough: sums of some ten thousand equal ones are off by several times the bound."""


def usable_of_rows(attr: SoftmaxAttr) -> bool | str:
    """Whether oneDNN is here, and the axis is the last one."""
    if attr.remain != 1:
        return "along an axis that is not the last oneDNN adds up one by one, which is not exact enough"
    if attr.n > LONGEST:
        return f"sums of more than {LONGEST} exponentials lose more than the kernel may"
    return usable(attr)


def variants(attr: SoftmaxAttr) -> list[Variant]:
    return threads(attr.rows // _block(attr))


def _block(attr: SoftmaxAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK // max(attr.n, 1)).bit_length() - 1)


@implements(SoftmaxAttr, can_be_used=usable_of_rows, variants=variants)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> LoopNest:
    def body(x: Any, y: Any, rows: int, n: int, remain: int, begin: int, end: int) -> Any:
        first = offset(x, begin * n)
        return primitives(SOFTMAX, first, first, first, offset(y, begin * n), end - begin, n, 0.0)

    signature = attr.signature()
    return LoopNest(
        "softmax_onednn",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_block(attr) if parallel else 1,
        parallel=parallel,
    )
