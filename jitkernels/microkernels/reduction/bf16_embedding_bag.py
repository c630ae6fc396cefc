"""EMB_SEQ_POOL of bfloat16 (embedding bag): sums in float32, blocked and compensated so that long sums lose little."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.maths.strict_arithmetic import compensated, plus, two_sum_error
from jitkernels.microkernels.narrow_int import round_to_bfloat16, widen_bfloat16
from jitkernels.microkernels.range_kernel_of import range_kernel_of

BLOCK_SUM_COLUMNS = 1024
"""Columns per block of float32 sums."""
BLOCK_ROWS = 64
"""Rows per block; the sum of a block is added to a compensated total."""
ZERO = np.float32(0)


class BagExtents(NamedTuple):
    """Columns of the table, and the extents of the ids."""

    table_w: int
    idx_h: int
    idx_w: int


class SelectedRows(NamedTuple):
    """The rows of a table, of a width, that ids a step apart select."""

    table: Any
    width: int
    ids: Any
    step: int


@inlined()
def row_of(rows: SelectedRows, i: int) -> Any:
    """Return the row that an id selects."""
    return offset(rows.table, rows.ids[i * rows.step] * rows.width)


@inlined("reassoc", "contract")
def add_up(rows: SelectedRows, first: int, last: int, sums: Any, count: int) -> None:
    """Set ``sums[j]`` to the sum of the rows that ids `first` to `last` select."""
    for j in range(count):
        sums[j] = ZERO
    h = first
    while h + 4 <= last:
        row0, row1 = row_of(rows, h), row_of(rows, h + 1)
        row2, row3 = row_of(rows, h + 2), row_of(rows, h + 3)
        for j in range(count):
            sums[j] += (widen_bfloat16(row0[j]) + widen_bfloat16(row1[j])) + (
                widen_bfloat16(row2[j]) + widen_bfloat16(row3[j])
            )
        h += 4
    while h < last:
        row = row_of(rows, h)
        for j in range(count):
            sums[j] += widen_bfloat16(row[j])
        h += 1


@inlined()
def join(sums: Any, totals: Any, losses: Any, count: int) -> None:
    """Add sums to totals, and the rounding errors to losses."""
    for j in range(count):
        losses[j] += two_sum_error(totals[j], sums[j])
        totals[j] = plus(totals[j], sums[j])


@inlined()
def larger(a: Any, b: Any) -> Any:
    """Return the larger of two numbers; NaN where either is."""
    return b if (b > a) | (b != b) else a


@inlined()
def pool_largest(rows: SelectedRows, h: int, y: Any, largest: Any, count: int) -> None:
    """Compute the elementwise maximum of the rows; NaN where there is one."""
    row = row_of(rows, 0)
    for j in range(count):
        largest[j] = widen_bfloat16(row[j])
    i = 1
    while i + 4 <= h:
        row0, row1 = row_of(rows, i), row_of(rows, i + 1)
        row2, row3 = row_of(rows, i + 2), row_of(rows, i + 3)
        for j in range(count):
            left, right = (
                larger(widen_bfloat16(row0[j]), widen_bfloat16(row1[j])),
                larger(widen_bfloat16(row2[j]), widen_bfloat16(row3[j])),
            )
            largest[j] = larger(largest[j], larger(left, right))
        i += 4
    while i < h:
        row = row_of(rows, i)
        for j in range(count):
            largest[j] = larger(largest[j], widen_bfloat16(row[j]))
        i += 1
    for j in range(count):
        y[j] = round_to_bfloat16(largest[j])


def pool_kernel(attr: EmbSeqPoolAttr, check: Any, block: int, variant: dict[str, Any]) -> RangeKernel:
    """Make the range kernel ``(table, ids, out, table_h, table_w, idx_h, idx_w)``."""
    is_mean, is_max = attr.pool == "mean", attr.pool == "max"

    @inlined()
    def pool_added(rows: SelectedRows, h: int, y: Any, sums: Any, count: int) -> None:
        factor = np.float32(1) / np.float32(h) if is_mean else np.float32(1)
        if h <= BLOCK_ROWS:
            add_up(rows, 0, h, sums, count)
        else:
            totals, losses = offset(sums, BLOCK_SUM_COLUMNS), offset(sums, 2 * BLOCK_SUM_COLUMNS)
            for j in range(count):
                totals[j] = ZERO
                losses[j] = ZERO
            for first in range(0, h, BLOCK_ROWS):
                add_up(rows, first, min(first + BLOCK_ROWS, h), sums, count)
                join(sums, totals, losses, count)
            for j in range(count):
                sums[j] = compensated(totals[j], losses[j])
        for j in range(count):
            y[j] = round_to_bfloat16(sums[j] * factor)

    pool = pool_largest if is_max else pool_added

    def body(table: Any, ids: Any, out: Any, extents: BagExtents, workspace: Any, part: Range) -> None:
        table_w, idx_h = extents.table_w, extents.idx_h
        if idx_h == 0:
            for j in range(part.begin * table_w, part.end * table_w):
                out[j] = 0
            return
        for sequence in range(part.begin, part.end):
            y, column = offset(out, sequence * table_w), offset(ids, sequence)
            for left in range(0, table_w, BLOCK_SUM_COLUMNS):
                count = min(BLOCK_SUM_COLUMNS, table_w - left)
                rows = SelectedRows(offset(table, left), table_w, column, extents.idx_w)
                pool(rows, idx_h, offset(y, left), workspace, count)

    return range_kernel_of(
        attr,
        f"emb_seq_pool_{attr.pool}_bfloat16",
        body,
        extent="idx_w",
        block=block if variant.get("parallel") else 1,
        workspace=3 * 4 * BLOCK_SUM_COLUMNS,
        workspace_dtype="float32",
        flags=(),
        reads_first=True,  # its arrays do not alias: callers guarantee it
        check=check,
        **variant,
    )
