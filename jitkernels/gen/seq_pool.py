"""Generated SEQ_POOL, written by hand: rows are reduced in registers, those of narrow matrices as fewer long rows.

The compiled reference takes as long for a hundred columns and more, 1.2 times as long for sixteen, and two to four
times for one.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, noinline, offset
from jitkernels.core import cpu_target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.blocked_sums import COLUMNS, ROWS, block_joining, block_settling, workspace_of
from jitkernels.microkernels.reduction.embedding_bag_lanes import pool_lanes
from jitkernels.microkernels.reduction.embedding_bag_rows import pool_rows
from jitkernels.microkernels.reduction.embedding_bag_strip import ACROSS, rows_of
from jitkernels.microkernels.tuning_space import widths_and_threads

MIN_THREAD_COLUMNS = 64
"""Least number of columns per thread: a strip, or two."""
POOL_THREAD_ELEMENTS = 16384
"""Least number of elements per thread."""
MAX_DIRECT_ROWS = 8
"""Up to so many rows are reduced directly."""
MAX_PACKED_WIDTH = 40
"""Largest width for which packing several rows into one pays."""
MAX_PACKED_ELEMENTS = 256
"""Most elements of a packed row."""
WORTH = 48
"""Vectors that packing rows must save to pay."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    return widths_and_threads(min(attr.w // MIN_THREAD_COLUMNS, attr.h * attr.w // POOL_THREAD_ELEMENTS))


class PooledRows(NamedTuple):
    """Some rows of a matrix, which are `w` elements apart."""

    x: Any
    w: int
    h: int


@frozen_dataclass
class Pool:
    """Pooling of rows of a dtype, in vectors of some bytes."""

    pool: str
    dtype: str
    vector_bytes: int

    @property
    def lanes(self) -> int:
        return self.vector_bytes // np.dtype(self.dtype).itemsize

    @property
    def columns(self) -> int:
        return COLUMNS[self.dtype]

    @property
    def is_max(self) -> bool:
        return self.pool == "max"

    @property
    def is_scaled(self) -> bool:
        return self.pool in ("mean", "sqrt")


def rows_pooling(kind: Pool) -> tuple[Any, Any]:
    """Return the function for some columns of rows, and that for any number of rows and columns."""
    number: Any = np.dtype(kind.dtype).type
    zero, one, columns, wide = number(0), number(1), kind.columns, ACROSS * kind.lanes
    join_block, settle_blocks = block_joining(kind.dtype), block_settling(kind.dtype)
    rows_to_one = pool_rows(kind.pool, kind.dtype, kind.vector_bytes)

    @inlined()
    def pool_part(rows: PooledRows, y: Any, width: int, is_more: int, factor: Any) -> None:
        if kind.is_scaled:
            rows_to_one(rows.x, rows.w, rows.h, y, width, is_more, factor)
        else:
            rows_to_one(rows.x, rows.w, rows.h, y, width, is_more)

    @inlined()
    def pool_runs(rows: PooledRows, y: Any, width: int, factor: Any) -> None:
        """Rows of more than a strip are read in blocks of eight that stay in the cache from strip to strip."""
        x, w, h = rows.x, rows.w, rows.h
        step = h if width <= wide else max(8, 2 * columns // width // 8 * 8)
        i = 0
        while i + step < h:
            pool_part(PooledRows(offset(x, i * w), w, step), y, width, i, one)
            i += step
        pool_part(PooledRows(offset(x, i * w), w, h - i), y, width, i, factor)

    @inlined()
    def pool_blocks(rows: PooledRows, y: Any, width: int, sums: Any, factor: Any) -> None:
        x, w, h, first = rows.x, rows.w, rows.h, 0
        while first < width:
            count, top = min(columns, width - first), ROWS
            pool_runs(PooledRows(offset(x, first), w, ROWS), sums, count, one)
            for j in range(count):
                sums[columns + j] = zero
            while top < h:
                block = PooledRows(offset(x, top * w + first), w, min(ROWS, h - top))
                pool_runs(block, offset(y, first), count, one)
                join_block(offset(y, first), count, sums)
                top += ROWS
            settle_blocks(offset(y, first), count, sums, factor)
            first += columns

    @noinline()
    def pool(rows: PooledRows, y: Any, width: int, sums: Any, factor: Any) -> None:
        if kind.is_max or rows.h <= ROWS:
            pool_runs(rows, y, width, factor)
        else:
            pool_blocks(rows, y, width, sums, factor)

    return pool_part, pool


def narrow_pooling(kind: Pool, pool_part: Any, pool: Any) -> tuple[Any, Any]:
    """Return the functions for narrow rows, of which a power of two fill a vector, or of any width."""
    one, lanes, columns = np.dtype(kind.dtype).type(1), kind.lanes, kind.columns
    lanes_to_row = pool_lanes(kind.pool, kind.dtype, kind.vector_bytes)

    @noinline()
    def pool_narrowest(rows: PooledRows, y: Any, workspace: Any, factor: Any) -> None:
        x, w, elements = rows.x, rows.w, rows.h * rows.w
        whole = elements // lanes
        if kind.is_max or whole <= ROWS:
            lanes_to_row(x, elements, y, w, factor)
            return
        result, rest = offset(workspace, 2 * columns), elements - whole * lanes
        pool(PooledRows(x, lanes, whole), result, lanes, workspace, one)
        for j in range(rest):
            result[lanes + j] = x[whole * lanes + j]
        lanes_to_row(result, lanes + rest, y, w, factor)

    @noinline()
    def pool_together(rows: PooledRows, y: Any, workspace: Any, factor: Any) -> None:
        """Narrow rows, as fewer long ones."""
        x, w, h, together = rows.x, rows.w, rows.h, 4
        while 2 * together * w <= MAX_PACKED_ELEMENTS and h >= 16 * together:
            together *= 2
        result, done = offset(workspace, 2 * columns), h // together * together
        pool(PooledRows(x, together * w, h // together), result, together * w, workspace, one)
        pool_part(PooledRows(result, w, together), y, w, 0, factor if done == h else one)
        if done < h:
            pool_part(PooledRows(offset(x, done * w), w, h - done), y, w, 1, factor)

    return pool_narrowest, pool_together


def shape_dispatch(kind: Pool, part: Any, pool: Any) -> Any:
    """Return the function for all but a few rows, which dispatches by their shape."""
    zero, lanes, wide = np.dtype(kind.dtype).type(0), kind.lanes, ACROSS * kind.lanes
    has_masks = rows_of(kind.pool, kind.dtype, kind.vector_bytes).has_masks
    pool_narrowest, pool_together = narrow_pooling(kind, part, pool)

    @noinline()
    def pool_all(rows: PooledRows, y: Any, columns: Range, workspace: Any, factor: Any) -> None:
        x, w, h, width = rows.x, rows.w, rows.h, columns.end - columns.begin
        # Masked-off lanes of a row: of its last vector, or beside each scalar element.
        off = (w + lanes - 1) // lanes * lanes - w if has_masks else w % lanes * (lanes - 1)
        if h <= 1:
            for j in range(columns.begin, columns.end):
                y[j] = x[j] if h == 1 else zero
            return
        is_whole = (off == 0) | (width < w)
        own, to = PooledRows(offset(x, columns.begin), w, h), offset(y, columns.begin)
        if has_masks and not is_whole and (h * w >= lanes) & (w & (w - 1) == 0):
            pool_narrowest(rows, y, workspace, factor)
        elif not is_whole and (h * off >= WORTH * lanes) & (off * 5 > w) & (w <= MAX_PACKED_WIDTH):
            pool_together(rows, y, workspace, factor)
        elif ((h <= ROWS) | kind.is_max) & (width <= wide):
            part(own, to, width, 0, factor)
        else:
            pool(own, to, width, workspace, factor)

    return pool_all


@implements(SeqPoolAttr, variants=variants)
def seq_pool(attr: SeqPoolAttr, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    one, is_root = number(1), attr.pool == "sqrt"
    kind = Pool(attr.pool, attr.dtype, min(variant.get("vector_bytes", 64), cpu_target.target().vector_bytes))
    pool_part, pool = rows_pooling(kind)
    pool_all = shape_dispatch(kind, pool_part, pool)

    def body(x: Any, y: Any, h: int, w: int, workspace: Any, part: Range) -> None:
        factor = one
        if kind.is_scaled:
            factor = one / (np.sqrt(number(h)) if is_root else number(h))
        if (h >= 2) & (h < MAX_DIRECT_ROWS):  # which takes no longer than the dispatch itself
            rows = PooledRows(offset(x, part.begin), w, h)
            pool_part(rows, offset(y, part.begin), part.end - part.begin, 0, factor)
        else:
            pool_all(PooledRows(x, w, h), y, part, workspace, factor)

    return range_kernel_of(
        attr,
        f"seq_pool_{attr.pool}_{attr.dtype}",
        body,
        extent="w",
        block=MIN_THREAD_COLUMNS,
        workspace=workspace_of(attr.dtype) + MAX_PACKED_ELEMENTS * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays do not alias: callers guarantee it
        **variant,
    )
