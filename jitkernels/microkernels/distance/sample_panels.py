"""The inner loops of k-means: nearest centers, and distances to candidates for a center, over panels of samples.

Vectors run along samples, so that argmin needs no reduction within a vector. To transpose panels of samples takes as
long as products with eight centers: an iteration transposes them once (`packing_kernel`), or per call where there is
one.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, vectors
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import packing_slack
from jitkernels.microkernels.gemm.pairwise_distance import DistanceBlocking, DistanceTiles, RowExtents

PANELS_PER_THREAD = 16
"""Panels of samples that a thread takes at least: fewer take less time than to wake it."""
UNROLLED_ROWS = 4
"""Rows of products per pass over the least ones, which stay in registers meanwhile."""


class PanelRows(NamedTuple):
    """Samples, or their panels, and the rows to which their distances are taken."""

    samples: Any
    y: Any


class PanelProducts(NamedTuple):
    """Memory for the products of rows with a panel of samples, and the elements from one row of them to the next."""

    z: Any
    stride: int


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
        (*("int32*" if pointer == "labels" else f"{tiles.dtype}*" for pointer in pointers), *["int64"] * 3),
        body,
        extent=len(pointers) + 1,
        block=PANELS_PER_THREAD * tiles.width,
        parallel=parallel,
        workspace=workspace,
        workspace_dtype=tiles.dtype if workspace else "",
        vector_bytes=tiles.lanes * size,
        flags=("contract",),
        names=(*pointers, "m", "n", "d"),
    )


def packing_kernel(dtype: str, target: Target, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(samples, panels, m, n, d)``: each panel of samples is transposed; m does not matter."""
    tiles = tiles_of("dot", dtype, target)
    width, transpose = tiles.width, tiles.transpose

    def body(samples: Any, panels: Any, d: int, part: Range) -> None:
        for j in range(part.begin, part.end, width):
            transpose(samples, j * d, d, panels, j * d, min(width, part.end - j), d)

    return _kernel("pack_samples", tiles, ("samples", "panels"), body, 0, parallel=parallel)


def _multiplier(tiles: DistanceTiles, *, is_packed: bool) -> Any:
    """Make the function that gives the products of the rows of y and the panel of samples at j."""
    width, height = tiles.width, tiles.panels.rows
    whole, edge, transpose = tiles.tile(is_edge=False), tiles.tile(is_edge=True), tiles.transpose

    @inlined()
    def multiply(rows: PanelRows, products: PanelProducts, m: int, d: int, j: int, columns: int, panel: Any) -> None:
        z, stride = products.z, products.stride
        if is_packed:
            source, first = rows.samples, j * d
        else:
            transpose(rows.samples, j * d, d, panel, 0, columns, d)
            source, first = panel, 0
        for i in range(0, m, height):
            if columns == width and m - i >= height:
                whole(rows.y, i * d, d, source, first, 0, z, i * stride, stride, d, 1, height, width)
            else:
                edge(rows.y, i * d, d, source, first, 0, z, i * stride, stride, d, 1, m - i, columns)

    return multiply


def closest_kernel(dtype: str, target: Target, *, parallel: bool) -> RangeKernel:
    """Make the kernel ``(samples, y, closest, z, m, n, d)``: z[i, j] = min(closest[j], |y[i] - sample[j]|^2).

    y has m rows, the candidates; samples are panels of n samples.
    """
    tiles = tiles_of("sqeuclidean", dtype, target)
    width, multiply = tiles.width, _multiplier(tiles, is_packed=True)

    def body(rows: PanelRows, closest: Any, z: Any, extents: RowExtents, part: Range) -> None:
        m, n = extents.m, extents.n
        for j in range(part.begin, part.end, width):
            columns = min(width, part.end - j)
            multiply(rows, PanelProducts(offset(z, j), n), m, extents.d, j, columns, rows.samples)
            for i in range(m):
                row, limits = offset(z, i * n + j), offset(closest, j)
                for c in range(columns):
                    row[c] = limits[c] if limits[c] < row[c] else row[c]

    return _kernel("closest", tiles, ("samples", "y", "closest", "z"), body, 0, parallel=parallel)


def nearest_kernel(dtype: str, target: Target, *, is_packed: bool, parallel: bool) -> RangeKernel:
    """Make the kernel ``(samples, y, yy, labels, m, n, d)``: labels[j] = argmin over i of ``yy[i] - y[i] . sample[j]``.

    With yy half the squared norms of the m rows of y this is the nearest row, the first of several. Samples are panels
    where they are packed. There is at least one row.
    """
    tiles = tiles_of("dot", dtype, target)
    width, height, multiply = tiles.width, tiles.panels.rows, _multiplier(tiles, is_packed=is_packed)
    slack, size = packing_slack(tiles.lanes, width), element_size(dtype)
    argmin, index = _argmin(tiles), _index(dtype)

    def body(rows: PanelRows, yy: Any, labels: Any, extents: RowExtents, workspace: Any, part: Range) -> None:
        m, label, z = extents.m, offset(workspace, width), offset(workspace, 2 * width)
        panel = offset(z, (m + height) * width)
        for j in range(part.begin, part.end, width):
            columns = min(width, part.end - j)
            multiply(rows, PanelProducts(z, width), m, extents.d, j, width if is_packed else columns, panel)
            argmin(yy, z, m, workspace, label)
            for c in range(columns):
                labels[j + c] = np.int32(label[c].view(index))

    def needed(m: int, d: int) -> int:
        panel = 0 if is_packed else d * width + slack
        return ((m + height + 2) * width + panel) * size

    name = "nearest_packed" if is_packed else "nearest"
    return _kernel(name, tiles, ("samples", "y", "yy", "labels"), body, needed, parallel=parallel)


def _index(dtype: str) -> Any:
    """The type of labels of the size of an element."""
    return np.int32 if dtype == "float32" else np.int64


def _argmin(tiles: DistanceTiles) -> Any:
    """Make the function that finds the least of ``yy[i] - products[i]`` for each sample of a panel.

    The labels lie in memory of floats, bit by bit.
    """
    width, lanes, index = tiles.width, tiles.lanes, _index(tiles.dtype)
    number: Any = np.dtype(tiles.dtype).type
    infinity = number(np.inf)

    @inlined()
    def nearer(least: Any, label: Any, other: Any, i: Any) -> Any:
        is_less = other < least
        return (other if is_less else least, i if is_less else label)

    @inlined()
    def argmin(yy: Any, products: Any, m: int, least: Any, label: Any) -> None:
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

    return argmin
