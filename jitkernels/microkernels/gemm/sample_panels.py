"""The inner loops of k-means: nearest centers, and distances to candidates for a center, over panels of samples.

Vectors run along samples, so that argmin needs no reduction within a vector. To transpose panels of samples takes as
long as products with eight centers: an iteration transposes them once (`packing_kernel`), or per call where there is one.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import packing_slack
from jitkernels.microkernels.gemm.pairwise_distance import DistanceBlocking, DistanceTiles

PANELS_PER_THREAD = 16
"""Panels of samples that a thread takes at least: fewer take less time than to wake it."""
UNROLLED_ROWS = 4
"""Rows of products per pass over the least ones, which stay in registers meanwhile."""


def tiles_of(metric: str, dtype: str, target: Target) -> DistanceTiles:
    """Return tiles of few rows, the centers: k-means has few candidates, and any number of centers."""
    rows = 2 if metric == "sqeuclidean" else 4
    blocking = DistanceBlocking(rows=rows, vectors=4 if target.registers == 32 else 2, share=2)
    return DistanceTiles(metric, dtype, target.lanes(dtype), blocking)


def panel_elements(samples: int, features: int, dtype: str, target: Target) -> int:
    """Elements of the packed panels of samples."""
    tiles = tiles_of("dot", dtype, target)
    return -(-samples // tiles.width) * tiles.width * features + packing_slack(tiles.lanes, tiles.width)


def _kernel(
    name: str, tiles: DistanceTiles, pointers: tuple[str, ...], body: Any, workspace: Any, *, parallel: bool
) -> RangeKernel:
    """Make a kernel of pointers and ``m, n, d``, which splits the n samples."""
    size = element_size(tiles.dtype)
    return RangeKernel(
        f"{name}_{tiles.dtype}",
        (*pointers, "int64", "int64", "int64"),
        body,
        extent=len(pointers) + 1,
        block=PANELS_PER_THREAD * tiles.width,
        parallel=parallel,
        workspace=workspace,
        workspace_dtype=tiles.dtype if workspace else "",
        vector_bytes=tiles.lanes * size,
        flags=("contract",),
    )


def packing_kernel(dtype: str, target: Target, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(samples, panels, m, n, d)``: each panel of samples is transposed; m does not matter."""
    tiles = tiles_of("dot", dtype, target)
    width, transpose = tiles.width, tiles.transpose

    def body(samples: Any, panels: Any, m: int, n: int, d: int, begin: int, end: int) -> None:
        for j in range(begin, end, width):
            transpose(samples, j * d, d, panels, j * d, min(width, end - j), d)

    return _kernel("pack_samples", tiles, (f"{dtype}*",) * 2, body, 0, parallel=parallel)


def _multiplier(tiles: DistanceTiles, *, is_packed: bool) -> Any:
    """Make the function that gives the products of the rows of y and a panel of samples, `stride` between them."""
    width, height = tiles.width, tiles.panels.rows
    whole, edge, transpose = tiles.tile(is_edge=False), tiles.tile(is_edge=True), tiles.transpose

    @inlined()
    def multiply(samples: Any, y: Any, z: Any, stride: int, m: int, d: int, j: int, columns: int, panel: Any) -> None:
        if is_packed:
            source, first = samples, j * d
        else:
            transpose(samples, j * d, d, panel, 0, columns, d)
            source, first = panel, 0
        for i in range(0, m, height):
            if columns == width and m - i >= height:
                whole(y, i * d, d, source, first, 0, z, i * stride, stride, d, 1, height, width)
            else:
                edge(y, i * d, d, source, first, 0, z, i * stride, stride, d, 1, m - i, columns)

    return multiply


def closest_kernel(dtype: str, target: Target, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(panels, y, closest, z, m, n, d)``: z[i, j] = min(closest[j], |y[i] - sample[j]|^2).

    y has m rows, the candidates; there are n samples.
    """
    tiles = tiles_of("sqeuclidean", dtype, target)
    width, multiply = tiles.width, _multiplier(tiles, is_packed=True)

    def body(panels: Any, y: Any, closest: Any, z: Any, m: int, n: int, d: int, begin: int, end: int) -> None:
        for j in range(begin, end, width):
            columns = min(width, end - j)
            multiply(panels, y, offset(z, j), n, m, d, j, columns, panels)
            for i in range(m):
                row, limits = offset(z, i * n + j), offset(closest, j)
                for c in range(columns):
                    row[c] = limits[c] if limits[c] < row[c] else row[c]

    return _kernel("closest", tiles, (f"{dtype}*",) * 4, body, 0, parallel=parallel)


def nearest_kernel(dtype: str, target: Target, *, is_packed: bool, parallel: bool) -> RangeKernel:
    """Make the kernel ``(samples, y, yy, labels, m, n, d)``: labels[j] = argmin over i of ``yy[i] - y[i] . sample[j]``.

    With yy half the squared norms of the m rows of y this is the nearest row, the first of several. Samples are panels
    where they are packed. There is at least one row.
    """
    tiles = tiles_of("dot", dtype, target)
    width, height, lanes, multiply = tiles.width, tiles.panels.rows, tiles.lanes, _multiplier(tiles, is_packed=is_packed)
    slack, size = packing_slack(lanes, width), element_size(dtype)
    number: Any = np.dtype(dtype).type
    infinity = number(np.inf)
    index: Any = np.int32 if dtype == "float32" else np.int64

    @inlined()
    def nearer(least: Any, label: Any, other: Any, i: Any) -> Any:
        is_less = other < least
        return (other if is_less else least, i if is_less else label)

    @inlined()
    def argmin(yy: Any, products: Any, m: int, least: Any, label: Any) -> None:
        """The labels lie in memory of floats, bit by bit."""
        for c in vectors(0, width, lanes):
            least[c] = infinity
            label[c] = index(0).view(number)
        for i in range(0, m - UNROLLED_ROWS + 1, UNROLLED_ROWS):
            row = offset(products, i * width)
            for c in vectors(0, width, lanes):
                best, at = nearer(least[c], label[c].view(index), yy[i] - row[c], index(i))
                best, at = nearer(best, at, yy[i + 1] - row[width + c], index(i + 1))
                best, at = nearer(best, at, yy[i + 2] - row[2 * width + c], index(i + 2))
                best, at = nearer(best, at, yy[i + 3] - row[3 * width + c], index(i + 3))
                least[c] = best
                label[c] = at.view(number)
        for i in range(m // UNROLLED_ROWS * UNROLLED_ROWS, m):
            for c in vectors(0, width, lanes):
                best, at = nearer(least[c], label[c].view(index), yy[i] - products[i * width + c], index(i))
                least[c] = best
                label[c] = at.view(number)

    def body(
        samples: Any, y: Any, yy: Any, labels: Any, m: int, n: int, d: int, least: Any, begin: int, end: int
    ) -> None:
        label, products = offset(least, width), offset(least, 2 * width)
        panel = offset(products, (m + height) * width)
        for j in range(begin, end, width):
            multiply(samples, y, products, width, m, d, j, width if is_packed else min(width, end - j), panel)
            argmin(yy, products, m, least, label)
            for c in range(min(width, end - j)):
                labels[j + c] = np.int32(label[c].view(index))

    def needed(m: int, n: int, d: int, begin: int, end: int) -> int:
        panel = 0 if is_packed else d * width + slack
        return ((m + height + 2) * width + panel) * size

    pointers = (*(f"{dtype}*",) * 3, "int32*")
    name = "nearest_packed" if is_packed else "nearest"
    return _kernel(name, tiles, pointers, body, needed, parallel=parallel)
