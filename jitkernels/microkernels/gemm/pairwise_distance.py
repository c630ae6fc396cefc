"""Pairwise distances of the rows of two matrices: a GEMM-like register tile, then an epilogue that finishes them.

The nest transposes a panel of rows of y, so that vectors run along them, and reads all rows of x in place. Few rows of
x or y do not pay for the transpose: dot products along the rows of the other matrix read that once.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.cdist import CDistAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import record
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packed_panels import ir_function
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel

DEPTH_BYTES = 2048
"""Bytes of each row of y in a panel: the block size along d."""
BAND = 96
"""Rows of x per epilogue call, while their distances are in the cache; a multiple of the rows of a tile."""
FEW = 4
"""Up to so many rows of x, nothing is transposed."""
TOGETHER = 8
"""Rows of y read together for few rows of x, and of x for few of y."""
NARROW = 4
"""Least ratio of the panel's width to a row of results that selects dot products without a transpose."""


@record
class Panels:
    """Blocking: a tile of ``rows x vectors`` registers, whose columns are a panel, and the panels per thread."""

    rows: int
    vectors: int
    share: int


def panels_of(target: Target, *, squares: bool = False) -> Panels:
    """Return tiles whose sums, a row of the panel and the differences of squared distances fit in the registers.

    With twelve rows LLVM keeps the differences of several steps alive, and spills the sums.
    """
    rows = (8 if squares else 12) if target.registers == 32 else 4
    return Panels(rows=rows, vectors=2, share=2)


def distance_nest(attr: CDistAttr, target: Target, *, parallel: bool) -> LoopNest:
    """Make the loop nest ``(x, y, z, m, n, d)``; threads split the rows of y."""
    dtype, lanes, size = attr.dtype, target.lanes(attr.dtype), element_size(attr.dtype)
    squares, number = attr.metric in ("euclidean", "sqeuclidean"), np.dtype(dtype).type
    panels = panels_of(target, squares=squares)
    width, depth, rows = panels.vectors * lanes, DEPTH_BYTES // size, panels.rows
    lengths = depth * width + packing_slack(lanes, width)
    whole, edge = (_tile(dtype, lanes, panels, squares, is_edge) for is_edge in (False, True))
    turn = ir_function(
        "cdist_turn", dtype, PACK_ARGUMENTS, written_by(transpose_panel, "cdist_turn", dtype, lanes, width)
    )
    along, down, one_along = (
        _along(dtype, lanes, rows, columns, squares) for rows, columns in ((1, TOGETHER), (TOGETHER, 1), (1, 1))
    )
    is_cosine, is_root = attr.metric == "cosine", attr.metric == "euclidean"
    finish = _finish(number, is_cosine=is_cosine, is_root=is_root)
    inverse_length = _inverse_length(number)

    @inlined()
    def few(x: Any, y: Any, z: Any, m: int, n: int, d: int, inverses: Any, begin: int, end: int) -> None:
        j = begin
        while j < end:
            rows_of_tile = TOGETHER if end - j >= TOGETHER else 1
            if is_cosine:
                for c in range(rows_of_tile):
                    inverses[c] = inverse_length(offset(y, (j + c) * d), d)
            for i in range(m):
                if rows_of_tile > 1:
                    along(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, 1, rows_of_tile)
                else:
                    one_along(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, 1, 1)
                finish(offset(z, i * n + j), inverses, offset(x, i * d), d, rows_of_tile)
            j += rows_of_tile

    @inlined()
    def many(x: Any, y: Any, z: Any, m: int, n: int, d: int, panel: Any, begin: int, end: int) -> None:
        inverses = offset(panel, lengths)
        for j in range(begin, end, width):
            columns_of_panel = min(width, end - j)
            if is_cosine:
                for c in range(columns_of_panel):
                    inverses[c] = inverse_length(offset(y, (j + c) * d), d)
            for p in range(0, max(d, 1), depth):
                deep, first = min(depth, d - p), 1 if p == 0 else 0
                turn(y, j * d + p, d, panel, 0, columns_of_panel, deep)
                for top in range(0, m, BAND):
                    bottom = min(top + BAND, m)
                    for i in range(top, bottom, rows):
                        if columns_of_panel == width and bottom - i >= rows:
                            whole(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, rows, width)
                        else:
                            edge(
                                x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, bottom - i, columns_of_panel
                            )
                    if (is_cosine or is_root) and p + deep == d:
                        for i in range(top, bottom):
                            finish(offset(z, i * n + j), inverses, offset(x, i * d), d, columns_of_panel)

    @inlined()
    def narrow(x: Any, y: Any, z: Any, m: int, n: int, d: int, inverses: Any, begin: int, end: int) -> None:
        if is_cosine:
            for j in range(begin, end):
                inverses[j - begin] = inverse_length(offset(y, j * d), d)
        for i in range(0, m, TOGETHER):
            rows_of_tile = TOGETHER if m - i >= TOGETHER else 1
            for j in range(begin, end):
                if rows_of_tile > 1:
                    down(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, rows_of_tile, 1)
                else:
                    for r in range(i, m):
                        one_along(x, r * d, d, y, j * d, d, z, r * n + j, n, d, 1, 1, 1)
            if is_cosine or is_root:
                for r in range(i, min(i + TOGETHER, m)):
                    finish(offset(z, r * n + begin), inverses, offset(x, r * d), d, end - begin)

    def body(x: Any, y: Any, z: Any, m: int, n: int, d: int, workspace: Any, begin: int, end: int) -> None:
        if m == 0:
            return
        if n <= width // NARROW and 2 * n <= d:  # horizontal sums cost more than short rows save
            narrow(x, y, z, m, n, d, workspace, begin, end)
        elif m <= FEW:
            few(x, y, z, m, n, d, workspace, begin, end)
        else:
            many(x, y, z, m, n, d, workspace, begin, end)

    signature = attr.signature()
    return LoopNest(
        f"cdist_{attr.metric}_{dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=panels.share * width,
        parallel=parallel,
        workspace=(lengths + width) * size,
        workspace_dtype=dtype,
        vector_bytes=lanes * size,
        flags=("contract",),
    )


def _tile(dtype: str, lanes: int, panels: Panels, squares: bool, is_edge: bool) -> Any:
    """Make the tile of rows of x, read in place, and a panel; an `edge` tile masks missing rows and columns."""
    symbol = f"cdist_{'edge' if is_edge else 'whole'}"
    tile = Tile(
        symbol, dtype, lanes, panels.rows, panels.vectors, 0.0, a_by_column=False,
        b_stride=panels.vectors * lanes, mask_c=is_edge, guard_rows=is_edge, clamp_rows=is_edge, prefetch=not is_edge,
        squares=squares,
    )  # fmt: skip
    return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))


def _along(dtype: str, lanes: int, rows: int, columns: int, squares: bool) -> Any:
    """Make the dot-product tile of `rows` rows of x and `columns` rows of y."""
    symbol = f"cdist_along_{rows}x{columns}"
    tile = DotTile(symbol, dtype, lanes, rows, columns, 0.0, streams_a=False, squares=squares)
    return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(DotTile.text, tile))


def _inverse_length(number: Any) -> Any:
    """Make the function that returns one over the length of a row."""
    one = number(1)

    @inlined("reassoc", "contract")
    def squares_of(row: Any, d: int) -> Any:
        total = number(0)
        for p in range(d):
            total += row[p] * row[p]
        return total

    @inlined()
    def inverse_length(row: Any, d: int) -> Any:
        return one / np.sqrt(squares_of(row, d))

    return inverse_length


def _finish(number: Any, *, is_cosine: bool, is_root: bool) -> Any:
    """Make the epilogue that turns the sums in a part of a row of z into distances."""
    zero, one = number(0), number(1)
    inverse_length = _inverse_length(number)

    @inlined()
    def angle(product: Any, left: Any, right: Any) -> Any:
        result = one - product * left * right
        return zero if result < zero else result

    @inlined()
    def finish(z: Any, inverses: Any, row: Any, d: int, count: int) -> None:
        if is_cosine:
            inverse = inverse_length(row, d)
            for c in range(count):
                z[c] = angle(z[c], inverse, inverses[c])
        elif is_root:
            for c in range(count):
                z[c] = np.sqrt(z[c])

    return finish
