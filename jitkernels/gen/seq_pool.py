"""Generated SEQ_POOL, written by hand: rows are reduced in registers, those of narrow matrices as fewer long rows.

The compiled reference takes as long for a hundred columns and more, 1.2 times as long for sixteen, and two to four
times for one.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import apart, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.reduction.blocked_sums import COLUMNS, ROWS, block_joining, block_settling, workspace_of
from jitkernels.microkernels.reduction.embedding_bag_lanes import pool_lanes
from jitkernels.microkernels.reduction.embedding_bag_rows import pool_rows
from jitkernels.microkernels.reduction.embedding_bag_strip import ACROSS, rows_of
from jitkernels.microkernels.tuning_space import widths_and_threads

BLOCK_COLUMNS = 64
"""Least number of columns per thread: a strip, or two."""
BLOCK_ELEMENTS = 16384
"""Least number of elements per thread."""
FEW = 8
"""Up to so many rows are reduced directly."""
NARROW = 40
"""Largest width for which packing several rows into one pays."""
LONG = 256
"""Most elements of a packed row."""
WORTH = 48
"""Vectors that packing rows must save to pay."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    return widths_and_threads(min(attr.w // BLOCK_COLUMNS, attr.h * attr.w // BLOCK_ELEMENTS))


@implements(SeqPoolAttr, variants=variants)
def seq_pool(attr: SeqPoolAttr, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    join_block, settle_blocks = block_joining(attr.dtype), block_settling(attr.dtype)
    columns, is_max = COLUMNS[attr.dtype], attr.pool == "max"
    is_scaled, is_root = attr.pool in ("mean", "sqrt"), attr.pool == "sqrt"
    vector_bytes = min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes)
    lanes = vector_bytes // number(0).itemsize
    wide = ACROSS * lanes
    rows_to_one = pool_rows(attr.pool, attr.dtype, vector_bytes)
    lanes_to_row = pool_lanes(attr.pool, attr.dtype, vector_bytes)
    has_masks = rows_of(attr.pool, attr.dtype, vector_bytes).has_masks

    @inlined()
    def pool_part(x: Any, w: int, h: int, y: Any, width: int, is_more: int, factor: Any) -> None:
        if is_scaled:
            rows_to_one(x, w, h, y, width, is_more, factor)
        else:
            rows_to_one(x, w, h, y, width, is_more)

    @inlined()
    def pool_runs(x: Any, w: int, h: int, y: Any, width: int, factor: Any) -> None:
        """Rows of more than a strip are read in blocks of eight that stay in the cache from strip to strip."""
        step = h if width <= wide else max(8, 2 * columns // width // 8 * 8)
        i = 0
        while i + step < h:
            pool_part(offset(x, i * w), w, step, y, width, i, one)
            i += step
        pool_part(offset(x, i * w), w, h - i, y, width, i, factor)

    @inlined()
    def pool_blocks(x: Any, w: int, h: int, y: Any, width: int, sums: Any, factor: Any) -> None:
        left = 0
        while left < width:
            count, top = min(columns, width - left), ROWS
            pool_runs(offset(x, left), w, ROWS, sums, count, one)
            for j in range(count):
                sums[columns + j] = zero
            while top < h:
                pool_runs(offset(x, top * w + left), w, min(ROWS, h - top), offset(y, left), count, one)
                join_block(offset(y, left), count, sums)
                top += ROWS
            settle_blocks(offset(y, left), count, sums, factor)
            left += columns

    @apart()
    def pool(x: Any, w: int, h: int, y: Any, width: int, sums: Any, factor: Any) -> None:
        if is_max or h <= ROWS:
            pool_runs(x, w, h, y, width, factor)
        else:
            pool_blocks(x, w, h, y, width, sums, factor)

    @apart()
    def pool_narrowest(x: Any, w: int, h: int, y: Any, workspace: Any, factor: Any) -> None:
        """Rows of which a power of two fill a vector."""
        whole, elements = h * w // lanes, h * w
        if is_max or whole <= ROWS:
            lanes_to_row(x, elements, y, w, factor)
            return
        result, rest = offset(workspace, 2 * columns), elements - whole * lanes
        pool(x, lanes, whole, result, lanes, workspace, one)
        for j in range(rest):
            result[lanes + j] = x[whole * lanes + j]
        lanes_to_row(result, lanes + rest, y, w, factor)

    @apart()
    def pool_together(x: Any, w: int, h: int, y: Any, workspace: Any, factor: Any) -> None:
        """Narrow rows, as fewer long ones."""
        together = 4
        while 2 * together * w <= LONG and h >= 16 * together:
            together *= 2
        result, done = offset(workspace, 2 * columns), h // together * together
        pool(x, together * w, h // together, result, together * w, workspace, one)
        pool_part(result, w, together, y, w, 0, factor if done == h else one)
        if done < h:
            pool_part(offset(x, done * w), w, h - done, y, w, 1, factor)

    @apart()
    def pool_all(x: Any, y: Any, h: int, w: int, workspace: Any, begin: int, end: int, factor: Any) -> None:
        """Dispatch of all but a few rows by their shape."""
        width = end - begin
        # Masked-off lanes of a row: of its last vector, or beside each scalar element.
        off = (w + lanes - 1) // lanes * lanes - w if has_masks else w % lanes * (lanes - 1)
        if h <= 1:
            for j in range(begin, end):
                y[j] = x[j] if h == 1 else zero
            return
        is_whole = (off == 0) | (width < w)
        if has_masks and not is_whole and (h * w >= lanes) & (w & (w - 1) == 0):
            pool_narrowest(x, w, h, y, workspace, factor)
        elif not is_whole and (h * off >= WORTH * lanes) & (off * 5 > w) & (w <= NARROW):
            pool_together(x, w, h, y, workspace, factor)
        elif ((h <= ROWS) | is_max) & (width <= wide):
            pool_part(offset(x, begin), w, h, offset(y, begin), width, 0, factor)
        else:
            pool(offset(x, begin), w, h, offset(y, begin), width, workspace, factor)

    def body(x: Any, y: Any, h: int, w: int, workspace: Any, begin: int, end: int) -> None:
        factor = one
        if is_scaled:
            factor = one / (np.sqrt(number(h)) if is_root else number(h))
        if (h >= 2) & (h < FEW):  # which takes no longer than the dispatch itself
            pool_part(offset(x, begin), w, h, offset(y, begin), end - begin, 0, factor)
        else:
            pool_all(x, y, h, w, workspace, begin, end, factor)

    signature = attr.signature()
    return LoopNest(
        f"seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("w"),
        block=BLOCK_COLUMNS,
        workspace=workspace_of(attr.dtype) + LONG * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays do not alias: callers guarantee it
        **variant,
    )
