"""Euclidean distances of the rows of two matrices, or of one with itself: the half below the diagonal is a copy.

By products, after ``|x - y|^2 = |x|^2 - 2 x . y + |y|^2``, an element takes one instruction where a squared difference
takes two. That cancels for near rows, so it is for double precision, as in scikit-learn; CDIST, whose register tiles
these are, takes differences.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.pairwise_distance import DistanceTiles, RowExtents, RowPairs, panels_of

ROWS_PER_EPILOGUE = 96
"""Rows of products that are finished while they are in the first-level cache; a multiple of the rows of a tile."""
MIRROR_ROWS = 8
"""Columns of distances copied together to the rows below the diagonal: a cache line of double precision."""
PANELS_PER_BLOCK = 4
"""Panels of rows of y per thread at least: fewer take less time than to wake it."""


@frozen_dataclass
class EuclideanOptions:
    """What determines the code: symmetric if y is x, and the distance of a row to itself is 0."""

    is_root: bool
    is_symmetric: bool
    by_products: bool


class SquaredNorms(NamedTuple):
    """The squared norms of the rows of x and of y."""

    xx: Any
    yy: Any


def euclidean_kernel(dtype: str, target: Target, options: EuclideanOptions, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(x, y, xx, yy, z, m, n, d)``: z[i, j] = |x[i] - y[j]|, or its square.

    xx and yy are the squared norms of rows; only products need them.
    """
    is_symmetric, by_products = options.is_symmetric, options.by_products
    panels = panels_of(target, squares=not by_products)
    tiles = DistanceTiles("dot" if by_products else "sqeuclidean", dtype, target.lanes(dtype), panels)
    width, panel_of_y, mirror = tiles.width, _panel_of_y(tiles, options), _mirror(tiles)

    def body(rows: RowPairs, norms: SquaredNorms, extents: RowExtents, workspace: Any, part: Range) -> None:
        count = (extents.n + width - 1) // width
        for q in range(part.begin // width, (part.end + width - 1) // width):
            # Panels further right are longer where only those above the diagonal are computed: take one of each end.
            number_of_panel = (q // 2 if q % 2 == 0 else count - 1 - q // 2) if is_symmetric else q
            j = number_of_panel * width
            panel_of_y(rows, norms, extents, workspace, j)
            if is_symmetric:
                mirror(rows.z, extents.n, j, min(width, extents.n - j))

    size = element_size(dtype)
    words = ("euclidean" if options.is_root else "sqeuclidean", "symmetric" * is_symmetric, "products" * by_products)
    return RangeKernel(
        "_".join(filter(None, (*words, dtype))),
        (*[f"{dtype}*"] * 5, "int64", "int64", "int64"),
        body,
        extent=6,
        block=PANELS_PER_BLOCK * width,
        parallel=parallel,
        workspace=tiles.lengths * size,
        workspace_dtype=dtype,
        vector_bytes=tiles.lanes * size,
        flags=("contract",),
        names=("x", "y", "xx", "yy", "z", "m", "n", "d"),
    )


def _panel_of_y(tiles: DistanceTiles, options: EuclideanOptions) -> Any:
    """Make the function for the distances of all rows of x, or those above the diagonal, to a panel of rows of y."""
    width, depth, height, is_symmetric = tiles.width, tiles.depth, tiles.panels.rows, options.is_symmetric
    whole, edge, transpose = tiles.tile(is_edge=False), tiles.tile(is_edge=True), tiles.transpose
    finish = _finish(tiles.dtype, options)

    @inlined()
    def panel_of_y(rows: RowPairs, norms: SquaredNorms, extents: RowExtents, panel: Any, j: int) -> None:
        x, z, n, d = rows.x, rows.z, extents.n, extents.d
        columns = min(width, n - j)
        last_row = j + columns if is_symmetric else extents.m
        for p in range(0, max(d, 1), depth):
            deep, first = min(depth, d - p), 1 if p == 0 else 0
            transpose(rows.y, j * d + p, d, panel, 0, columns, deep)
            for top in range(0, last_row, ROWS_PER_EPILOGUE):
                bottom = min(top + ROWS_PER_EPILOGUE, last_row)
                for i in range(top, bottom, height):
                    if columns == width and bottom - i >= height:
                        whole(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, height, width)
                    else:
                        edge(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, bottom - i, columns)
                if p + deep == d:
                    for i in range(top, bottom):
                        finish(offset(z, i * n + j), norms.xx, offset(norms.yy, j), i, columns)

    return panel_of_y


def _finish(dtype: str, options: EuclideanOptions) -> Any:
    """Make the epilogue that turns the sums in a part of a row of z into distances."""
    number: Any = np.dtype(dtype).type
    zero, two, is_root, by_products = number(0), number(2), options.is_root, options.by_products

    @inlined()
    def finish(z: Any, xx: Any, yy: Any, i: int, count: int) -> None:
        if by_products:
            length = xx[i]
            for c in range(count):
                square = (yy[c] - two * z[c]) + length
                square = zero if square < zero else square
                z[c] = np.sqrt(square) if is_root else square
        elif is_root:
            for c in range(count):
                z[c] = np.sqrt(z[c])

    return finish


def _mirror(tiles: DistanceTiles) -> Any:
    """Make the function that copies the columns of a panel to the rows below the diagonal, and clears that."""
    zero = np.dtype(tiles.dtype).type(0)

    @inlined()
    def mirror(z: Any, n: int, j: int, columns: int) -> None:
        for c in range(columns):
            for r in range(c):
                z[(j + c) * n + j + r] = z[(j + r) * n + j + c]
            z[(j + c) * n + j + c] = zero
        for i in range(0, j, MIRROR_ROWS):
            bottom = min(i + MIRROR_ROWS, j)
            for c in range(columns):
                for r in range(i, bottom):
                    z[(j + c) * n + r] = z[r * n + j + c]

    return mirror
