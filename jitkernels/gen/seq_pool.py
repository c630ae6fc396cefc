"""Generated SEQ_POOL: eight rows at a time are combined in a tree and joined to the result.

Rows narrower than a vector are taken as one long row of `FOLD` elements, which is folded at the end.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.loops.pooling import larger, plus
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.sqrt import sqrt_float32, sqrt_float64
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

BLOCK_COLUMNS = 64
BLOCK_ELEMENTS = 16384
"""Elements that a thread gets at least."""


FOLD = 64
"""Elements that narrow rows are taken together to, and the width up to which a row is narrow."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    if _is_narrow(attr):
        return [{"folded": True}, {"folded": False}]
    return widths_and_threads(min(attr.w // BLOCK_COLUMNS, attr.h * attr.w // BLOCK_ELEMENTS))


def _is_narrow(attr: SeqPoolAttr) -> bool:
    return 0 < attr.w < FOLD and FOLD % attr.w == 0 and attr.h * attr.w >= 2 * FOLD


@implements(SeqPoolAttr, variants=variants)
def seq_pool(attr: SeqPoolAttr, folded: bool = False, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    sqrt = sqrt_float32 if attr.dtype == "float32" else sqrt_float64
    join = larger if attr.pool == "max" else plus
    divides = attr.pool in ("mean", "sqrt")
    roots = attr.pool == "sqrt"

    def body(x: Any, y: Any, h: int, w: int, begin: int, end: int) -> None:
        if h == 0:
            for j in range(begin, end):
                y[j] = number(0)
            return
        for j in range(begin, end):
            y[j] = x[j]
        i = 1
        while i + 8 <= h:
            r0 = i * w
            r1, r2, r3 = r0 + w, r0 + 2 * w, r0 + 3 * w
            r4, r5, r6, r7 = r0 + 4 * w, r0 + 5 * w, r0 + 6 * w, r0 + 7 * w
            for j in range(begin, end):
                low = join(join(x[r0 + j], x[r1 + j]), join(x[r2 + j], x[r3 + j]))
                high = join(join(x[r4 + j], x[r5 + j]), join(x[r6 + j], x[r7 + j]))
                y[j] = join(y[j], join(low, high))
            i += 8
        while i < h:
            for j in range(begin, end):
                y[j] = join(y[j], x[i * w + j])
            i += 1
        if divides:
            divisor = sqrt(number(h)) if roots else number(h)
            for j in range(begin, end):
                y[j] = y[j] / divisor

    def narrow(x: Any, y: Any, h: int, w: int, longs: Any, begin: int, end: int) -> None:
        blocks = h * w // FOLD
        for j in range(FOLD):
            longs[j] = x[j]
        i = 1
        while i + 4 <= blocks:
            first = i * FOLD
            for j in range(first, first + FOLD):
                low, high = join(x[j], x[j + FOLD]), join(x[j + 2 * FOLD], x[j + 3 * FOLD])
                longs[j - first] = join(longs[j - first], join(low, high))
            i += 4
        while i < blocks:
            for j in range(FOLD):
                longs[j] = join(longs[j], x[i * FOLD + j])
            i += 1
        for j in range(w):
            result = longs[j]
            for k in range(j + w, FOLD, w):
                result = join(result, longs[k])
            for k in range(blocks * FOLD + j, h * w, w):
                result = join(result, x[k])
            y[j] = result
        if divides:
            divisor = sqrt(number(h)) if roots else number(h)
            for j in range(w):
                y[j] = y[j] / divisor

    signature = attr.signature()
    if folded and _is_narrow(attr):  # the tuned variant of a class comes to attrs of other widths too
        scratch = FOLD * np.dtype(attr.dtype).itemsize
        name = f"seq_pool_{attr.pool}_{attr.dtype}"
        return LoopNest(
            name,
            signature.c_arguments,
            narrow,
            extent=signature.index("w"),
            block=attr.w,
            workspace=scratch,
            workspace_dtype=attr.dtype,
        )
    name = f"seq_pool_{attr.pool}_{attr.dtype}"
    return LoopNest(
        name, signature.c_arguments, body, extent=signature.index("w"), block=BLOCK_COLUMNS, **variant
    )
