"""Generated TRANSPOSE, GATHER and SCATTER_ADD."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.transpose_gather_scatter import GatherAttr, ScatterAddAttr, TransposeAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.gemm.packed_panels import is_same_address
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.streaming_normalize import (
    COPIES,
    FIRST_ROW,
    LAST_ROW,
    elements_before_line,
    store_fence,
    streaming_results,
    streams,
)
from jitkernels.microkernels.transpose_tile import transpose_cache_lines, transpose_tiles
from jitkernels.microkernels.tuning_space import widths_and_threads

WORK = 1 << 15
"""Least number of elements per thread."""
MIN_STREAMED_ROW_BYTES = 16 * CACHE_LINE_BYTES
"""Least bytes of rows that are mostly whole cache lines."""
SQUARE = 8
"""Rows and columns transposed in registers: a part has at least so many."""
BAND_ROWS = 64
"""Rows per band of columns: cache lines read in part stay in the caches."""
L2_RESULT_BYTES = 1 << 18
"""Bytes of a result that the second-level cache holds: for flat matrices many lines of a row come before the next row.
"""
MIN_THREAD_SCATTER_COLUMNS = 64
"""Least number of columns of a table per thread of SCATTER_ADD."""


def _along(attr: TransposeAttr) -> tuple[str, int]:
    """Return what threads split, and the least of it per thread: matrices, or columns of one."""
    if attr.batch > 1:
        return "batch", grain(attr.rows * attr.n, WORK)
    return "n", max(CACHE_LINE_BYTES, grain(attr.rows, WORK))


def _thin(count: int) -> Callable[..., None]:
    """Transpose a part of a skinny matrix: LLVM vectorizes constant strides."""

    @inlined()
    def thin(x: Any, y: Any, length: int, begin: int, end: int, is_rows: bool) -> None:
        for j in range(begin, end):
            for i in range(count):
                if is_rows:
                    y[count * j + i] = x[length * i + j]
                else:
                    y[length * i + j] = x[count * j + i]

    return thin


def _few_of(counts: Sequence[int]) -> Callable[..., None]:
    """Transpose a skinny matrix, fast if it has one of these numbers of rows or columns.

    LLVM takes a tenth of a second for each, so that a kernel has those of its size class alone.
    """
    function = _thin_any
    for count in counts:
        function = _or_thin(count, function)
    return function


@inlined()
def _thin_any(x: Any, y: Any, count: int, length: int, begin: int, end: int, is_rows: bool) -> None:
    for j in range(begin, end):
        for i in range(count):
            if is_rows:
                y[count * j + i] = x[length * i + j]
            else:
                y[length * i + j] = x[count * j + i]


def _or_thin(known: int, others: Callable[..., None]) -> Callable[..., None]:
    thin = _thin(known)

    @inlined()
    def either(x: Any, y: Any, count: int, length: int, begin: int, end: int, is_rows: bool) -> None:
        if count == known:
            thin(x, y, length, begin, end, is_rows)
        else:
            others(x, y, count, length, begin, end, is_rows)

    return either


def _thin_counts(attr: TransposeAttr) -> list[int]:
    """The numbers of rows or columns, of which there are few, in the size class of a kernel."""
    found = {
        count for size in (attr.rows, attr.n) if size <= SQUARE for count in range(size // 2 + 1, min(size + 1, SQUARE))
    }
    return sorted(found - {1})


def transpose_variants(attr: TransposeAttr) -> list[Variant]:
    along, block = _along(attr)
    variants, result = widths_and_threads(attr.fields()[along] // block), attr.signature().outputs[0]
    is_long = min(attr.rows, attr.n) * result.numpy.itemsize >= MIN_STREAMED_ROW_BYTES and result.numpy.itemsize >= 4
    return streams(variants, result) if is_long else variants


class Matrices(NamedTuple):
    """A matrix of rows x n, and its transpose."""

    x: Any
    y: Any
    rows: int
    n: int


def turning_of(dtype: str, counts: Sequence[int]) -> Any:
    """Return the function that transposes some columns of a matrix, of some rows; `counts`: as for `_few_of`."""
    few = _few_of(counts)
    side, tiles = CACHE_LINE_BYTES // np.dtype(dtype).itemsize, transpose_tiles(dtype)

    @inlined()
    def turn_thin(matrix: Matrices, columns: Range) -> bool:
        """Transpose columns of all rows if there are few of either; return whether that is so."""
        x, y, rows, n, begin, end = matrix.x, matrix.y, matrix.rows, matrix.n, columns.begin, columns.end
        if (rows < 2) | (n < 2):
            for i in range(begin * rows, end * rows):
                y[i] = x[i]
            return True
        if rows < SQUARE:
            few(x, y, rows, n, begin, end, True)
            return True
        if (n < SQUARE) & (end - begin == n):
            few(x, y, n, rows, 0, rows, False)
            return True
        return False

    @inlined()
    def turn(matrix: Matrices, columns: Range, part: Range) -> None:
        x, y, rows, n = matrix.x, matrix.y, matrix.rows, matrix.n
        begin, end, top, bottom = columns.begin, columns.end, part.begin, part.end
        if bottom - top == rows and turn_thin(matrix, columns):
            return
        if (bottom - top < SQUARE) | (end - begin < SQUARE):
            for j in range(begin, end):
                for i in range(top, bottom):
                    y[j * rows + i] = x[i * n + j]
            return
        band = max(L2_RESULT_BYTES // (rows * CACHE_LINE_BYTES), 1) * side
        first_column = begin
        while first_column < end:
            last = first_column + band if end - first_column >= band + SQUARE else end
            first = top
            while first < bottom:
                height = side if bottom - first >= side + SQUARE else bottom - first
                column = first_column
                while column < last:
                    width = side if last - column >= side + SQUARE else last - column
                    tiles(offset(y, column * rows + first), rows, offset(x, first * n + column), n, height, width)
                    column += width
                first += height
            first_column = last

    return turn


def streaming_turn(dtype: str, turn: Any) -> Any:
    """Return the function that transposes with streaming stores of whole lines, where rows share their alignment."""
    side = CACHE_LINE_BYTES // np.dtype(dtype).itemsize
    before_line, transposed_lines = elements_before_line(dtype), transpose_cache_lines(dtype)

    @inlined()
    def turn_in_lines(matrix: Matrices, columns: Range) -> None:
        x, y, rows, n, begin, end = matrix.x, matrix.y, matrix.rows, matrix.n, columns.begin, columns.end
        before = before_line(y, rows)
        if before < 0:
            turn(matrix, columns, Range(0, rows))
            return
        before = min(before, rows)
        below = before + (rows - before) // side * side
        first_column = min(begin + max(before_line(offset(x, begin), n), 0), end)  # the first cache line boundary of x
        last = first_column + (end - first_column) // side * side
        for top in range(before, below, BAND_ROWS):
            bottom = min(top + BAND_ROWS, below)
            for column in range(first_column, last, side):
                for first in range(top, bottom, side):
                    transposed_lines(offset(y, column * rows + first), rows, offset(x, first * n + column), n)
        turn(matrix, Range(begin, first_column), Range(before, below))
        turn(matrix, Range(last, end), Range(before, below))
        turn(matrix, columns, Range(0, before))
        turn(matrix, columns, Range(below, rows))
        store_fence()

    return turn_in_lines


@implements(TransposeAttr, variants=transpose_variants)
def transpose(attr: TransposeAttr, stream: bool = False, **variant: Any) -> RangeKernel:
    along, block = _along(attr)
    block = 1 << (block.bit_length() - 1) // 3 * 3  # powers of 8, so that a graph needs few objects
    is_batch, turn = along == "batch", turning_of(attr.dtype, _thin_counts(attr))
    # Without streaming, the name is bound to a small function, as the object includes it all the same.
    turn_in_lines = streaming_turn(attr.dtype, turn) if stream else store_fence

    @inlined()
    def turn_matrix(matrix: Matrices, columns: Range) -> None:
        if stream:
            turn_in_lines(matrix, columns)
        else:
            turn(matrix, columns, Range(0, matrix.rows))

    def body(all_matrices: Matrices, batch: int, part: Range) -> None:
        rows, n = all_matrices.rows, all_matrices.n
        for i in range(part.begin if is_batch else 0, part.end if is_batch else batch):
            at = i * rows * n
            matrix = Matrices(offset(all_matrices.x, at), offset(all_matrices.y, at), rows, n)
            turn_matrix(matrix, Range(0, n) if is_batch else part)

    # All but thin matrices are transposed by tiles in LLVM IR; the class of 8 begins with 5.
    is_straight = min(attr.rows, attr.n) > SQUARE
    return range_kernel_of(
        attr, f"transpose_{attr.dtype}", body, extent=along, block=block, reads_first=True, straight=is_straight,
        **variant,
    )  # fmt: skip


def check_ids(ids: Any, table_rows: int, count: int) -> int:
    """Count the ids outside the table; branch-free, so that LLVM vectorizes it."""
    wrong = 0
    for i in range(count):
        wrong += (ids[i] < 0) | (ids[i] >= table_rows)
    return wrong


def gather_variants(attr: GatherAttr) -> list[Variant]:
    variants, result = widths_and_threads(attr.count // grain(attr.n, WORK)), attr.signature().outputs[0]
    return streams(variants, result) if attr.n * result.numpy.itemsize >= MIN_STREAMED_ROW_BYTES else variants


@implements(GatherAttr, variants=gather_variants)
def gather(attr: GatherAttr, stream: bool = False, **variant: Any) -> RangeKernel:
    # Without streaming, the name is bound to a small function, as the object includes it all the same.
    stream_row = streaming_results(attr.dtype, variant.get("vector_bytes", 64), COPIES) if stream else store_fence

    def body(table: Any, ids: Any, y: Any, n: int, workspace: Any, part: Range) -> None:
        begin, end = part.begin, part.end
        if n == 1:
            for i in range(begin, end):
                y[i] = table[ids[i]]
            return
        for i in range(begin, end):
            row, to = offset(table, ids[i] * n), offset(y, i * n)
            if stream:
                sides = (FIRST_ROW if i == begin else 0) + (LAST_ROW if i == end - 1 else 0)
                stream_row(row, offset(table, ids[min(i + 1, end - 1)] * n), to, n, workspace, sides)
            else:
                for j in range(n):
                    to[j] = row[j]
        if stream:
            store_fence()

    return range_kernel_of(
        attr,
        f"gather_{attr.dtype}",
        body,
        extent="count",
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        workspace=CACHE_LINE_BYTES,
        workspace_dtype=attr.dtype,
        reads_first=True,
        check=check_ids,
        **variant,
    )


def scatter_variants(attr: ScatterAddAttr) -> list[Variant]:
    """List the variants: threads split columns, so that rows are added in the order of ids."""
    large = (attr.table_rows + attr.count) * attr.n >= 4 * WORK
    return widths_and_threads(attr.n // MIN_THREAD_SCATTER_COLUMNS if large else 0)


class Scattered(NamedTuple):
    """The arrays of SCATTER_ADD."""

    table: Any
    ids: Any
    x: Any
    y: Any


@implements(ScatterAddAttr, variants=scatter_variants)
def scatter_add(attr: ScatterAddAttr, **variant: Any) -> RangeKernel:
    def body(arrays: Scattered, table_rows: int, n: int, count: int, part: Range) -> None:
        table, ids, x, y, begin, end = arrays.table, arrays.ids, arrays.x, arrays.y, part.begin, part.end
        if not is_same_address(table, y):
            if end - begin == n:
                for i in range(table_rows * n):
                    y[i] = table[i]
            else:
                for i in range(table_rows):
                    for j in range(i * n + begin, i * n + end):
                        y[j] = table[j]
        if n == 1:
            for i in range(count):
                y[ids[i]] += x[i]
            return
        for i in range(count):
            row, added = offset(y, ids[i] * n), offset(x, i * n)
            for j in range(begin, end):
                row[j] += added[j]

    return range_kernel_of(
        attr,
        f"scatter_add_{attr.dtype}",
        body,
        extent="n",
        block=MIN_THREAD_SCATTER_COLUMNS,
        flags=(),
        reads_first=True,  # of the table, which is not read where it is the result
        check=check_ids,
        **variant,
    )
