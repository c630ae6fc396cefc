"""Pairwise distances of the rows of two matrices: a GEMM-like register tile, then an epilogue that finishes them.

The kernel transposes a panel of rows of y, so that vectors run along them, and reads all rows of x in place. Few rows
of x or y do not pay for the transpose: dot products along the rows of the other matrix read that once.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.cdist import CDistAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel

DEPTH_BYTES = 2048
"""Bytes of each row of y in a panel: the block size along d."""
EPILOGUE_ROWS = 96
"""Rows of x per epilogue call, while their distances are in the cache; a multiple of the rows of a tile."""
MAX_UNTRANSPOSED_ROWS = 4
"""Up to so many rows of x, nothing is transposed."""
ROWS_READ_TOGETHER = 8
"""Rows of y read together for few rows of x, and of x for few of y."""
MIN_PANEL_RATIO = 4
"""Least ratio of the panel's width to a row of results that selects dot products without a transpose."""


@frozen_dataclass
class DistanceBlocking:
    """Blocking: a tile of ``rows x vectors`` registers, whose columns are a panel, and the panels per thread."""

    rows: int
    vectors: int
    share: int


@frozen_dataclass
class DistanceTiles:
    """What determines the code of the tiles for a metric and a dtype, and the panels that they read."""

    metric: str
    dtype: str
    lanes: int
    panels: DistanceBlocking

    @property
    def squares(self) -> bool:
        """Whether differences are squared and added up, in place of products."""
        return self.metric in ("euclidean", "sqeuclidean")

    @property
    def width(self) -> int:
        """Rows of y in a panel."""
        return self.panels.vectors * self.lanes

    @property
    def depth(self) -> int:
        """Elements of each row of y in a panel."""
        return DEPTH_BYTES // element_size(self.dtype)

    @property
    def lengths(self) -> int:
        """Where the inverse lengths of rows of y begin in the workspace, in elements."""
        return self.depth * self.width + packing_slack(self.lanes, self.width)

    def along(self, rows: int, columns: int) -> Any:
        """Make the dot-product tile of `rows` rows of x and `columns` rows of y."""
        symbol = f"cdist_along_{rows}x{columns}"
        tile = DotTile(symbol, self.dtype, self.lanes, rows, columns, 0.0, streams_a=False, squares=self.squares)
        return ir_function(symbol, self.dtype, TILE_ARGUMENTS, written_by(DotTile.text, tile))

    @property
    def transpose(self) -> Any:
        """Make the function that transposes rows of y into a panel."""
        text = written_by(transpose_panel, "cdist_transpose", self.dtype, self.lanes, self.width)
        return ir_function("cdist_transpose", self.dtype, PACK_ARGUMENTS, text)

    def tile(self, *, is_edge: bool) -> Any:
        """Make the tile of rows of x, read in place, and a panel; an edge masks missing rows and columns."""
        symbol = f"cdist_{'edge' if is_edge else 'whole'}"
        tile = Tile(
            symbol, self.dtype, self.lanes, self.panels.rows, self.panels.vectors, 0.0, a_by_column=False,
            b_stride=self.width, mask_c=is_edge, guard_rows=is_edge, clamp_rows=is_edge, prefetch=not is_edge,
            squares=self.squares,
        )  # fmt: skip
        return ir_function(symbol, self.dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))


class RowPairs(NamedTuple):
    """Rows of x and of y, and their distances."""

    x: Any
    y: Any
    z: Any


class RowExtents(NamedTuple):
    """x has m rows, y has n; all have d elements."""

    m: int
    n: int
    d: int


def panels_of(target: Target, *, squares: bool = False) -> DistanceBlocking:
    """Return tiles whose sums, a row of the panel and the differences of squared distances fit in the registers.

    With twelve rows LLVM keeps the differences of several steps alive, and spills the sums.
    """
    rows = (8 if squares else 12) if target.registers == 32 else 4
    return DistanceBlocking(rows=rows, vectors=2, share=2)


def distance_kernel(attr: CDistAttr, target: Target, *, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(x, y, z, m, n, d)``; threads split the rows of y."""
    lanes, size, signature = target.lanes(attr.dtype), element_size(attr.dtype), attr.signature()
    panels = panels_of(target, squares=attr.metric in ("euclidean", "sqeuclidean"))
    distance = DistanceTiles(attr.metric, attr.dtype, lanes, panels)
    width = distance.width
    few, many, narrow = _few_of_x(distance), _panels_of_y(distance), _few_of_y(distance)

    def body(rows: RowPairs, extents: RowExtents, workspace: Any, part: Range) -> None:
        if extents.m == 0:
            return
        if extents.n <= width // MIN_PANEL_RATIO and 2 * extents.n <= extents.d:
            narrow(rows, extents, workspace, part)  # horizontal sums cost more than short rows save
        elif extents.m <= MAX_UNTRANSPOSED_ROWS:
            few(rows, extents, workspace, part)
        else:
            many(rows, extents, workspace, part)

    return RangeKernel(
        f"cdist_{attr.metric}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=panels.share * width,
        parallel=parallel,
        workspace=(distance.lengths + width) * size,
        workspace_dtype=attr.dtype,
        vector_bytes=lanes * size,
        flags=("contract",),
        names=signature.names,
    )


def _few_of_x(distance: DistanceTiles) -> Any:
    """Make the function for few rows of x: nothing is transposed."""
    number, is_cosine = np.dtype(distance.dtype).type, distance.metric == "cosine"
    along, one_along = distance.along(1, ROWS_READ_TOGETHER), distance.along(1, 1)
    finish, inverse_length = _finish(distance), _inverse_length(number)

    @inlined()
    def few(rows: RowPairs, extents: RowExtents, inverses: Any, part: Range) -> None:
        x, y, z, n, d = rows.x, rows.y, rows.z, extents.n, extents.d
        j = part.begin
        while j < part.end:
            rows_of_tile = ROWS_READ_TOGETHER if part.end - j >= ROWS_READ_TOGETHER else 1
            if is_cosine:
                for c in range(rows_of_tile):
                    inverses[c] = inverse_length(offset(y, (j + c) * d), d)
            for i in range(extents.m):
                if rows_of_tile > 1:
                    along(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, 1, rows_of_tile)
                else:
                    one_along(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, 1, 1)
                finish(offset(z, i * n + j), inverses, offset(x, i * d), d, rows_of_tile)
            j += rows_of_tile

    return few


def _panels_of_y(distance: DistanceTiles) -> Any:
    """Make the function that transposes panels of rows of y."""
    number, is_cosine = np.dtype(distance.dtype).type, distance.metric == "cosine"
    has_end, width, depth, lengths, height = (
        distance.metric in ("cosine", "euclidean"), distance.width, distance.depth, distance.lengths,
        distance.panels.rows,
    )  # fmt: skip
    whole, edge = distance.tile(is_edge=False), distance.tile(is_edge=True)
    transpose = distance.transpose
    finish, inverse_length = _finish(distance), _inverse_length(number)

    @inlined()
    def many(rows: RowPairs, extents: RowExtents, panel: Any, part: Range) -> None:
        x, y, z, m, n, d = rows.x, rows.y, rows.z, extents.m, extents.n, extents.d
        inverses = offset(panel, lengths)
        for j in range(part.begin, part.end, width):
            columns = min(width, part.end - j)
            if is_cosine:
                for c in range(columns):
                    inverses[c] = inverse_length(offset(y, (j + c) * d), d)
            for p in range(0, max(d, 1), depth):
                deep, first = min(depth, d - p), 1 if p == 0 else 0
                transpose(y, j * d + p, d, panel, 0, columns, deep)
                for top in range(0, m, EPILOGUE_ROWS):
                    bottom = min(top + EPILOGUE_ROWS, m)
                    for i in range(top, bottom, height):
                        if columns == width and bottom - i >= height:
                            whole(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, height, width)
                        else:
                            edge(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, bottom - i, columns)
                    if has_end and p + deep == d:
                        for i in range(top, bottom):
                            finish(offset(z, i * n + j), inverses, offset(x, i * d), d, columns)

    return many


def _few_of_y(distance: DistanceTiles) -> Any:
    """Make the function for few rows of y: dot products without a transpose."""
    number, is_cosine = np.dtype(distance.dtype).type, distance.metric == "cosine"
    has_end = distance.metric in ("cosine", "euclidean")
    down, one_along = distance.along(ROWS_READ_TOGETHER, 1), distance.along(1, 1)
    finish, inverse_length = _finish(distance), _inverse_length(number)

    @inlined()
    def narrow(rows: RowPairs, extents: RowExtents, inverses: Any, part: Range) -> None:
        x, y, z, m, n, d = rows.x, rows.y, rows.z, extents.m, extents.n, extents.d
        if is_cosine:
            for j in range(part.begin, part.end):
                inverses[j - part.begin] = inverse_length(offset(y, j * d), d)
        for i in range(0, m, ROWS_READ_TOGETHER):
            rows_of_tile = ROWS_READ_TOGETHER if m - i >= ROWS_READ_TOGETHER else 1
            for j in range(part.begin, part.end):
                if rows_of_tile > 1:
                    down(x, i * d, d, y, j * d, d, z, i * n + j, n, d, 1, rows_of_tile, 1)
                else:
                    for r in range(i, m):
                        one_along(x, r * d, d, y, j * d, d, z, r * n + j, n, d, 1, 1, 1)
            if has_end:
                for r in range(i, min(i + ROWS_READ_TOGETHER, m)):
                    finish(offset(z, r * n + part.begin), inverses, offset(x, r * d), d, part.end - part.begin)

    return narrow


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


def _finish(distance: DistanceTiles) -> Any:
    """Make the epilogue that turns the sums in a part of a row of z into distances."""
    number: Any = np.dtype(distance.dtype).type
    is_cosine, is_root = distance.metric == "cosine", distance.metric == "euclidean"
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
