"""Generated SEQ_POOL: eight rows at a time are combined in a tree and joined to those that eights leave.

Rows not wider than `NARROW` are taken as fewer long ones, which are folded at the end.
"""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.loops.pooling import COLUMNS, ROWS, block_joining, joining, workspace_of
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_COLUMNS = 64
BLOCK_ELEMENTS = 16384
"""Elements that a thread gets at least."""
NARROW = 64
"""The width up to which rows are worth taking together, by eight at least."""
LONG = 8 * NARROW
"""Elements that rows taken together have at most: eight of the widest, or more in long sequences."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    if 0 < attr.w < NARROW and attr.h >= 64 and attr.h * attr.w >= 256:
        lanes = machine.target().lanes(attr.dtype)
        # Sums of rows that fill vectors are as quick as they can be; a maximum waits longer for the one before it.
        is_quick = attr.pool != "max" and attr.w >= lanes and attr.w % (lanes // 2) == 0
        return [{"folded": not is_quick}, {"folded": is_quick}]
    return widths_and_threads(min(attr.w // BLOCK_COLUMNS, attr.h * attr.w // BLOCK_ELEMENTS))


@implements(SeqPoolAttr, variants=variants)
def seq_pool(attr: SeqPoolAttr, folded: bool = False, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    join, join_block = joining(attr.pool), block_joining(attr.dtype)
    columns = COLUMNS[attr.dtype]
    is_max = attr.pool == "max"
    divides = attr.pool in ("mean", "sqrt")
    roots = attr.pool == "sqrt"

    @inlined()
    def eight(x: Any, at: int, w: int) -> Any:
        """Eight elements one below the other."""
        low = join(join(x[at], x[at + w]), join(x[at + 2 * w], x[at + 3 * w]))
        at += 4 * w
        return join(low, join(join(x[at], x[at + w]), join(x[at + 2 * w], x[at + 3 * w])))

    @inlined()
    def pool_few(x: Any, y: Any, w: int, top: int, bottom: int, left: int, right: int) -> None:
        """Less than eight rows, and at least one, one by one."""
        for j in range(left, right):
            y[j] = x[top * w + j]
        for i in range(top + 1, bottom):
            for j in range(left, right):
                y[j] = join(y[j], x[i * w + j])

    @inlined()
    def pool_block(x: Any, y: Any, w: int, top: int, bottom: int, left: int, right: int) -> None:
        rest = (bottom - top) % 8
        i = top + rest
        if rest:
            pool_few(x, y, w, top, i, left, right)
        else:
            for j in range(left, right):
                y[j] = eight(x, top * w + j, w)
            i = top + 8
        if not is_max and right - left <= NARROW:  # a maximum takes more registers
            while i + 16 <= bottom:
                for j in range(left, right):
                    y[j] = join(y[j], join(eight(x, i * w + j, w), eight(x, (i + 8) * w + j, w)))
                i += 16
        while i < bottom:
            for j in range(left, right):
                y[j] = join(y[j], eight(x, i * w + j, w))
            i += 8

    @inlined()
    def pool_columns(x: Any, y: Any, h: int, w: int, sums: Any, begin: int, end: int) -> None:
        if h < 8:  # what blocks need would take longer than these
            pool_few(x, y, w, 0, h, begin, end)
            return
        is_one_block = is_max or h <= ROWS
        height, width = (h, end - begin) if is_one_block else (ROWS, columns)
        left = begin
        while left < end:
            right, top = min(left + width, end), 0
            while top < h:
                bottom = min(top + height, h)
                pool_block(x, y, w, top, bottom, left, right)
                if not is_one_block:
                    join_block(y, left, right - left, sums, top == 0, bottom == h)
                top = bottom
            left = right

    def body(x: Any, y: Any, h: int, w: int, workspace: Any, begin: int, end: int) -> None:
        if h == 0:
            for j in range(begin, end):
                y[j] = number(0)
            return
        together = 1
        if folded and h >= 8 and w <= NARROW and end - begin >= w:
            together = 8
            longest = LONG if h >= ROWS * LONG else LONG // 4
            while 2 * together * w <= longest and h >= 16 * together:
                together *= 2
        if not folded or together == 1:
            left, right, result = begin, end, y
        else:
            left, right, result = 0, together * w, offset(workspace, 2 * columns)
        pool_columns(x, result, h // together, together * w, workspace, left, right)
        if folded and together > 1:
            done = h // together * together * w
            for j in range(h * w - done):
                result[j] = join(result[j], x[done + j])
            while together > 1:
                together //= 2
                for j in range(together * w):
                    result[j] = join(result[j], result[together * w + j])
            for j in range(w):
                y[j] = result[j]
        if divides:
            divisor = np.sqrt(number(h)) if roots else number(h)
            for j in range(begin, end):
                y[j] = y[j] / divisor

    signature = attr.signature()
    return LoopNest(
        f"seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("w"),
        block=BLOCK_COLUMNS,
        workspace=workspace_of(attr.dtype) + (LONG * np.dtype(attr.dtype).itemsize if folded else 0),
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays are apart: callers see to it
        **variant,
    )
