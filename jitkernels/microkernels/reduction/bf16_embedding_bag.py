"""EMB_SEQ_POOL of bfloat16 (embedding bag): sums in float32, blocked and compensated so that long sums lose little."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.maths.strict_arithmetic import plus, settled, two_sum_error
from jitkernels.microkernels.narrow_int import narrowed, widened

COLUMNS = 1024
"""Columns per block of float32 sums."""
PART = 64
"""Rows per block; the sum of a block is added to a compensated total."""
ZERO = np.float32(0)


@inlined("reassoc", "contract")
def add_up(table: Any, width: int, ids: Any, step: int, first: int, last: int, sums: Any, count: int) -> None:
    """Set ``sums[j]`` to the sum of the rows that ids `first` to `last` select."""
    for j in range(count):
        sums[j] = ZERO
    h = first
    while h + 4 <= last:
        row0, row1 = offset(table, ids[h * step] * width), offset(table, ids[(h + 1) * step] * width)
        three, four = offset(table, ids[(h + 2) * step] * width), offset(table, ids[(h + 3) * step] * width)
        for j in range(count):
            sums[j] += (widened(row0[j]) + widened(row1[j])) + (widened(three[j]) + widened(four[j]))
        h += 4
    while h < last:
        row = offset(table, ids[h * step] * width)
        for j in range(count):
            sums[j] += widened(row[j])
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
def pool_largest(table: Any, width: int, ids: Any, step: int, h: int, y: Any, largest: Any, count: int) -> None:
    """Compute the elementwise maximum of the rows; NaN where there is one."""
    row = offset(table, ids[0] * width)
    for j in range(count):
        largest[j] = widened(row[j])
    i = 1
    while i + 4 <= h:
        row0, row1 = offset(table, ids[i * step] * width), offset(table, ids[(i + 1) * step] * width)
        three, four = offset(table, ids[(i + 2) * step] * width), offset(table, ids[(i + 3) * step] * width)
        for j in range(count):
            left, right = (larger(widened(row0[j]), widened(row1[j])), larger(widened(three[j]), widened(four[j])))
            largest[j] = larger(largest[j], larger(left, right))
        i += 4
    while i < h:
        row = offset(table, ids[i * step] * width)
        for j in range(count):
            largest[j] = larger(largest[j], widened(row[j]))
        i += 1
    for j in range(count):
        y[j] = narrowed(largest[j])


class BagSizes(NamedTuple):
    """The extents but for the rows of the table."""

    table_w: int
    idx_h: int
    idx_w: int


def pool_nest(attr: EmbSeqPoolAttr, check: Any, block: int, variant: dict[str, Any]) -> LoopNest:
    """Make the loop nest ``(table, ids, out, table_h, table_w, idx_h, idx_w)``."""
    is_mean, is_max = attr.pool == "mean", attr.pool == "max"

    @inlined()
    def pool_added(table: Any, width: int, ids: Any, step: int, h: int, y: Any, sums: Any, count: int) -> None:
        factor = np.float32(1) / np.float32(h) if is_mean else np.float32(1)
        if h <= PART:
            add_up(table, width, ids, step, 0, h, sums, count)
        else:
            totals, losses = offset(sums, COLUMNS), offset(sums, 2 * COLUMNS)
            for j in range(count):
                totals[j] = ZERO
                losses[j] = ZERO
            for first in range(0, h, PART):
                add_up(table, width, ids, step, first, min(first + PART, h), sums, count)
                join(sums, totals, losses, count)
            for j in range(count):
                sums[j] = settled(totals[j], losses[j])
        for j in range(count):
            y[j] = narrowed(sums[j] * factor)

    pool = pool_largest if is_max else pool_added

    def body(table: Any, ids: Any, out: Any, sizes: BagSizes, workspace: Any, part: Range) -> None:
        table_w, idx_h, idx_w = sizes.table_w, sizes.idx_h, sizes.idx_w
        if idx_h == 0:
            for j in range(part.begin * table_w, part.end * table_w):
                out[j] = 0
            return
        for sequence in range(part.begin, part.end):
            y, column = offset(out, sequence * table_w), offset(ids, sequence)
            for left in range(0, table_w, COLUMNS):
                count = min(COLUMNS, table_w - left)
                pool(offset(table, left), table_w, column, idx_w, idx_h, offset(y, left), workspace, count)

    signature = attr.signature()
    return LoopNest(
        f"emb_seq_pool_{attr.pool}_bfloat16",
        signature.c_arguments,
        body,
        extent=signature.index("idx_w"),
        block=block if variant.get("parallel") else 1,
        workspace=3 * 4 * COLUMNS,
        workspace_dtype="float32",
        flags=(),
        reads_first=True,  # its arrays do not alias: callers guarantee it
        check=check,
        names=signature.names,
        **variant,
    )
