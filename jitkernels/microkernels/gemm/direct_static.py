"""GEMM of one small or skinny static shape: extents are compile-time constants, operands are read in place.

With every extent a constant the tiles cover C exactly (heights differ by at most one row, columns end in one masked
panel), all address arithmetic folds into the instructions, and nothing is copied: B's rows are vectors already, A's
elements are broadcast from memory.  Only a transposed B is first packed into panels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import written_by
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.gemm_arguments import NAMES, ir_function, matmul_arguments
from jitkernels.microkernels.gemm.microkernel import Tile, element_size
from jitkernels.microkernels.gemm.microkernel_column import COLUMN_ARGUMENTS, TileColumn
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.thresholds import ROW_BLOCK_BYTES


@frozen_dataclass
class SmallShape:
    """The parameters that determine the code of one static shape.

    Tiles have at most ``rows x (vectors * lanes)`` elements; k is cut into blocks of ``depth``.  ``swapped``: the
    caller's first array is the right operand.  ``split`` is the side of C that threads split, or "".
    """

    dtype: str
    lanes: int
    m: int
    n: int
    k: int
    rows: int
    vectors: int
    depth: int
    trans_a: bool
    trans_b: bool
    beta: float
    swapped: bool = False
    split: str = ""

    @property
    def width(self) -> int:
        """Columns of a whole panel."""
        return self.vectors * self.lanes

    def heights(self) -> tuple[int, int, int]:
        """Return ``(tall, tall_rows, short)``: tiles of ``tall`` rows down to ``tall_rows``, ``short`` ones below.

        Even heights keep every tile efficient, but blocks and the parts of threads begin at multiples of ``tall``:
        where there are several, all tiles are tall but the last.
        """
        pieces = -(-self.m // self.rows)
        tall = -(-self.m // pieces)
        if self.split == "rows" or self.row_block() < self.m:
            return tall, self.m - self.m % tall, self.m % tall
        return tall, tall * (pieces - (tall * pieces - self.m)), tall - 1

    def block(self) -> int:
        """Granularity of the split in rows or columns of C; the whole extent where nothing is split."""
        if self.split == "":
            return max(self.n if self.swapped else self.m, 1)
        return self.heights()[0] if self.split == "rows" else self.width

    def row_block(self) -> int:
        """Rows (whole tall tiles) per row block, which stay in the cache for all panels of B."""
        tall = -(-self.m // -(-self.m // self.rows))
        fitting = ROW_BLOCK_BYTES // element_size(self.dtype) // (self.k + self.n) // tall * tall
        return max(fitting, 4 * tall)


def direct_static_kernel(shape: SmallShape) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)`` of one shape."""
    size = element_size(shape.dtype)
    panels = -(-shape.n // shape.width)
    workspace = (panels * shape.width * shape.k + packing_slack(shape.lanes, shape.width)) * size
    extent = {"rows": 3, "columns": 4, "": 3}[shape.split]
    return RangeKernel(
        exact=True,
        name="matmul_small",
        arguments=matmul_arguments(shape.dtype),
        body=_packing_body(shape) if shape.trans_b else _direct_body(shape),
        extent=3 if shape.swapped and extent == 4 else extent,
        block=shape.block(),
        parallel=shape.split != "",
        workspace=workspace if shape.trans_b else 0,
        workspace_dtype=shape.dtype,
        vector_bytes=shape.lanes * size,
        names=NAMES,
    )


def _direct_body(shape: SmallShape) -> Callable[..., None]:
    inner, border = tile_columns(shape)
    by_rows, by_columns, swapped = shape.split == "rows", shape.split == "columns", shape.swapped
    width, rows_of_c, columns_of_c, steps, depth = shape.width, shape.m, shape.n, shape.k, shape.depth
    whole = columns_of_c - columns_of_c % width
    along = rows_of_c if shape.trans_a else 1
    has_tail, last, block = whole < columns_of_c, max(steps, 1), shape.row_block()

    def body(a: Any, b: Any, c: Any, begin: int, end: int) -> None:
        left_operand, right_operand = (b, a) if swapped else (a, b)
        top, bottom = (begin, end) if by_rows else (0, rows_of_c)
        left, right = (begin, end) if by_columns else (0, columns_of_c)
        for p in range(0, last, depth):
            deep = min(depth, steps - p)
            first = 1 if p == 0 else 0
            in_a, in_b = p * along, p * columns_of_c
            for high in range(top, bottom, block):
                low = min(high + block, bottom)
                for j in range(left, min(right, whole), width):
                    inner(left_operand, in_a, right_operand, in_b + j, c, j, deep, first, high, low)
                if has_tail and right > whole:
                    border(left_operand, in_a, right_operand, in_b + whole, c, whole, deep, first, high, low)

    return body


def _packing_body(shape: SmallShape) -> Callable[..., None]:
    """Make the kernel that packs B first: element (p, j) of a panel lies at ``(j // width * k + p) * width``."""
    inner, border = tile_columns(shape)
    by_rows, by_columns = shape.split == "rows", shape.split == "columns"
    width, rows_of_c, columns_of_c, steps = shape.width, shape.m, shape.n, shape.k
    whole = columns_of_c - columns_of_c % width
    has_tail, block = whole < columns_of_c, shape.row_block()
    text = written_by(transpose_panel, "matmul_pack_b", shape.dtype, shape.lanes, width)
    pack = ir_function("matmul_pack_b", shape.dtype, PACK_ARGUMENTS, text)

    def body(a: Any, b: Any, c: Any, workspace: Any, begin: int, end: int) -> None:
        top, bottom = (begin, end) if by_rows else (0, rows_of_c)
        left, right = (begin, end) if by_columns else (0, columns_of_c)
        for j in range(left, right, width):
            pack(b, j * steps, steps, workspace, j * steps, columns_of_c - j, steps)
        for high in range(top, bottom, block):
            low = min(high + block, bottom)
            for j in range(left, min(right, whole), width):
                inner(a, 0, workspace, j * steps, c, j, steps, 1, high, low)
            if has_tail and right > whole:
                border(a, 0, workspace, whole * steps, c, whole, steps, 1, high, low)

    return body


def tile_columns(shape: SmallShape) -> tuple[Any, Any]:
    """Return the tile columns of a whole panel and of the narrower panel at the right border."""
    functions = []
    tall, tall_rows, short = shape.heights()
    for name, columns in (("inner", shape.width), ("border", shape.n % shape.width)):
        lanes = narrowest_lanes(shape.lanes, columns)
        masked = columns % lanes != 0
        tiles = [
            Tile(
                f"matmul_{name}_{height}", shape.dtype, lanes, height,
                max(-(-columns // lanes), 1), shape.beta, shape.trans_a,
                mask_b=masked and not shape.trans_b, mask_c=masked, inline=True,
            )
            for height in (tall, max(short, 1))
        ]  # fmt: skip
        column = TileColumn(
            f"matmul_{name}", tiles[0], tiles[1], tall_rows,
            a_row=1 if shape.trans_a else shape.k,
            a_stride=shape.m if shape.trans_a else shape.k,
            b_stride=shape.width if shape.trans_b else shape.n,
            c_stride=shape.n,
            columns=columns,
        )  # fmt: skip
        functions.append(ir_function(column.symbol, shape.dtype, COLUMN_ARGUMENTS, written_by(TileColumn.text, column)))
    return functions[0], functions[1]


def narrowest_lanes(lanes: int, columns: int) -> int:
    """Return the lanes of the narrowest vector that holds `columns`, if any: masked tiles cost far more (measured)."""
    while lanes > 1 and columns <= lanes // 2:
        lanes //= 2
    return lanes
