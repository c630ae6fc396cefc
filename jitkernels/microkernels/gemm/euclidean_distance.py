"""Euclidean distances of the rows of two matrices, or of one with itself: the half below the diagonal is a copy.

By products, after ``|x - y|^2 = |x|^2 - 2 x . y + |y|^2``, an element takes one instruction where a squared difference
takes two. That cancels for near rows, so it is for double precision, as in scikit-learn; CDIST, whose register tiles these
are, takes differences.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.pairwise_distance import DistanceTiles, panels_of

ROWS_PER_EPILOGUE = 96
"""Rows of products that are finished while they are in the first-level cache; a multiple of the rows of a tile."""
MIRROR_ROWS = 8
"""Columns of distances copied together to the rows below the diagonal: a cache line of double precision."""
MIN_PARALLEL_PANELS = 4
"""Panels of rows of y per thread: fewer take less time than to wake it."""


@frozen_dataclass
class EuclideanOptions:
    """What determines the code: symmetric if y is x, and the distance of a row to itself is 0."""

    is_root: bool
    is_symmetric: bool
    by_products: bool


def euclidean_kernel(dtype: str, target: Target, options: EuclideanOptions, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(x, y, xx, yy, z, m, n, d)``: z[i, j] = |x[i] - y[j]|, or its square.

    xx and yy are the squared norms of rows; only products need them.
    """
    is_root, is_symmetric, by_products = options.is_root, options.is_symmetric, options.by_products
    panels = panels_of(target, squares=not by_products)
    tiles = DistanceTiles("dot" if by_products else "sqeuclidean", dtype, target.lanes(dtype), panels)
    number: Any = np.dtype(dtype).type
    zero, two = number(0), number(2)
    width, depth, height = tiles.width, tiles.depth, tiles.panels.rows
    whole, edge, transpose = tiles.tile(is_edge=False), tiles.tile(is_edge=True), tiles.transpose

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

    @inlined()
    def mirror(z: Any, n: int, j: int, columns: int) -> None:
        for c in range(columns):
            z[(j + c) * n + j + c] = zero
        for i in range(0, j, MIRROR_ROWS):
            bottom = min(i + MIRROR_ROWS, j)
            for c in range(columns):
                for r in range(i, bottom):
                    z[(j + c) * n + r] = z[r * n + j + c]

    def body(
        x: Any, y: Any, xx: Any, yy: Any, z: Any, m: int, n: int, d: int, panel: Any, begin: int, end: int
    ) -> None:
        count = (n + width - 1) // width
        for q in range(begin // width, (end + width - 1) // width):
            # Panels further right are longer where only those above the diagonal are computed: take one of each end.
            number_of_panel = (q // 2 if q % 2 == 0 else count - 1 - q // 2) if is_symmetric else q
            j = number_of_panel * width
            columns = min(width, n - j)
            last_row = j + columns if is_symmetric else m
            for p in range(0, max(d, 1), depth):
                deep, first = min(depth, d - p), 1 if p == 0 else 0
                transpose(y, j * d + p, d, panel, 0, columns, deep)
                for top in range(0, last_row, ROWS_PER_EPILOGUE):
                    bottom = min(top + ROWS_PER_EPILOGUE, last_row)
                    for i in range(top, bottom, height):
                        if columns == width and bottom - i >= height:
                            whole(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, height, width)
                        else:
                            edge(x, i * d + p, d, panel, 0, 0, z, i * n + j, n, deep, first, bottom - i, columns)
                    if p + deep == d:
                        for i in range(top, bottom):
                            finish(offset(z, i * n + j), xx, offset(yy, j), i, columns)
            if is_symmetric:
                mirror(z, n, j, columns)

    element = f"{dtype}*"
    size = element_size(dtype)
    words = ("euclidean" if is_root else "sqeuclidean", "symmetric" * is_symmetric, "by_products" * by_products)
    name = "_".join(filter(None, (*words, dtype)))
    return RangeKernel(
        name,
        (*[element] * 5, "int64", "int64", "int64"),
        body,
        extent=6,
        block=MIN_PARALLEL_PANELS * width,
        parallel=parallel,
        workspace=tiles.lengths * size,
        workspace_dtype=dtype,
        vector_bytes=tiles.lanes * size,
        flags=("contract",),
    )
