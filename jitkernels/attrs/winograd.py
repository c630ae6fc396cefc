"""CONV2D_WINOGRAD: convolution of images with filters of 3 x 3 by Winograd's minimal filtering.

A tile of m x m results is the inverse transform of elementwise products of a transformed patch of the image and a
transformed filter: F(4 x 4, 3 x 3) takes 36 products where the sum of the definition takes 144, and F(2 x 2, 3 x 3) 16
in place of 36. Summed over channels these are matrix products, one for each of the (m + 2) ** 2 positions.

Lavin & Gray 2016, "Fast algorithms for convolutional neural networks". The transforms are those of Toom and Cook, which
evaluate polynomials at some points. The points of F(4 x 4, 3 x 3) are 0, 3/4, -3/4, 3/2, -3/2 and infinity: the
transforms of images and results are exact in float32 then, and errors half as large as with 0, 1, -1, 2, -2 (Barabasz,
Anderson, Soodhalter & Gregg 2018, "Error analysis and improving the accuracy of Winograd convolution", on points).
"""

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from jitkernels.attrs.filter_panels import PANEL, pack_panels, unpack_panels
from jitkernels.attrs.matmul_epilogue import ACTIVATIONS
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, custom, grid, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.attrs.windows import BORDERS, Pair, borders, class_sizes, listed, window_extents
from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.errors import shown

TAPS = 3
"""Rows and columns of a filter."""
POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, 1.5, -1.5)}
"""The finite points of F(m x m, 3 x 3), by m."""


READ_TILES, TRANSFORM_TERMS = 28, 13
"""Costs in multiply-adds, measured on Emerald Rapids with layers of VGG-19, ResNet and Inception: of reading an element
of the filters, and of the transforms of an element."""


class Transforms(NamedTuple):
    """Matrices B, G and A: a patch d of an image becomes B d B.T, a filter g G g G.T, products p results A p A.T."""

    image: AnyArray
    filter: AnyArray
    result: AnyArray


@functools.cache
def transforms(tile: int) -> Transforms:
    """The matrices of tiles of so many rows of results."""
    points = POINTS[tile]
    size = len(points) + 1
    powers = np.vander(points, size, increasing=True)
    image = np.zeros((size, size))
    weights = np.zeros(size)
    for i, point in enumerate(points):  # Lagrange's polynomials, without their denominators
        others = [other for other in points if other != point]
        image[i, : size - 1] = np.poly(others)[::-1]
        weights[i] = 1 / np.prod([point - other for other in others])
    image[-1] = np.poly(points)[::-1]
    weights[-1] = 1
    at_infinity = np.zeros((1, TAPS)), np.zeros((1, tile))
    at_infinity[0][0, -1] = at_infinity[1][0, -1] = 1
    filters = np.concatenate([powers[:, :TAPS], at_infinity[0]]) * weights[:, None]
    results = np.concatenate([powers[:, :tile], at_infinity[1]]).T
    return Transforms(image, filters, results)


def _from_both_sides(matrix: AnyArray, values: AnyArray) -> AnyArray:
    """Return matrix @ values @ matrix.T without products with zeros of the matrix, which are NaN for infinities."""
    for axis in (-2, -1):
        lines = np.moveaxis(values, axis, 0)
        sums = [functools.reduce(np.add, [row[i] * lines[i] for i in np.flatnonzero(row)]) for row in matrix]
        values = np.moveaxis(np.stack(sums), 0, axis)
    return values


def _limited(values: AnyArray, limit: float) -> AnyArray:
    """Return arrays of matrices, NaN where elements of a matrix are not below `limit`."""
    if limit == math.inf:
        return values
    return np.where(values.max(axis=(-2, -1), keepdims=True) < limit, values, np.nan)


def fastest_tile(batch: int, height: int, width: int, channels: int, filters: int) -> int:
    """Return the extent of the tiles by which images of such results are convolved fastest; 0: by sums of products.

    The cost is that of multiply-adds: so many for each tile, `READ_TILES` for reading a filter's element once, and
    `TRANSFORM_TERMS` for each element of what is transformed.
    """
    costs = {0: float(TAPS * TAPS * channels * filters * (batch * height * width + READ_TILES))}
    for tile in POINTS:
        positions, tiles = (tile + TAPS - 1) ** 2, batch * -(-height // tile) * -(-width // tile)
        transformed = TRANSFORM_TERMS * tiles * (channels + filters)
        costs[tile] = float(positions * (channels * filters * (tiles + READ_TILES) + transformed))
    return min(costs, key=costs.__getitem__)


def tile_extent(value: Any) -> int:
    """Return a number of rows of a tile. Raises ValueError for one without points."""
    if not isinstance(value, bool | np.bool_ | np.ndarray):
        try:
            number = operator.index(value)
        except TypeError:
            number = 0
        if number in POINTS:
            return number
    raise ValueError(f"expected {' or '.join(map(str, POINTS))}, got {shown(value)}")


class Conv2DWinogradAttr(KernelAttr, kernel_type="CONV2D_WINOGRAD"):
    """CONV2D with filters of 3 x 3 and strides of 1, by tiles of m x m results, where m is `tile`.

    y = activation(bias + residual + A p A.T) for each tile, where p[i, j] is the sum of (B d B.T)[i, j, c] * u[i, j, c]
    over the channels c, d the patch of m + 2 rows and columns of the padded image that the tile depends on, and u[i, j]
    is w[(m + 2) * i + j, p, c, f] of the filter 32 * p + f. With u = G g G.T that is the convolution with the filter g.
    A, B and G are `transforms` of `jitkernels.attrs.winograd`. Filters are in panels as those of CONV2D_PACKED;
    `padding`, activations, bias and residual are those of CONV2D. Compiled functions call it with ``winograd=True``.
    """

    batch: int
    height: int
    width: int
    channels: int
    filters: int = whole(default=PANEL, samples=(0, 1, 33))
    tile: int = custom(tile_extent, meaning="2 or 4", default=4, samples=(2,))
    padding: tuple[Pair, Pair] = custom(
        borders, to_json=listed, from_json=borders, meaning=BORDERS, default=((0, 0), (0, 0)),
        samples=(1, (0, 2), ((0, 3), (2, 1))),
    )  # fmt: skip
    biased: bool = True
    has_residual: bool = False
    activation: str = choice(*ACTIVATIONS, default="identity")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("w", "in", "positions panels channels panel"),
        Argument("bias", "in", "filters", when="biased"),
        Argument("residual", "in", "*batch out_height out_width filters", when="has_residual"),
        Argument("y", "out", "*batch out_height out_width filters", pitch="y_pitch"),
    )
    options: ClassVar[tuple[str, ...]] = ("filters", "tile", "padding", "activation")
    derived: ClassVar[tuple[str, ...]] = (
        "out_height", "out_width", "pad_top", "pad_left", "tile_rows", "tile_columns", "positions", "panels", "panel",
        "y_pitch",
    )  # fmt: skip
    out_height: ClassVar[int]
    out_width: ClassVar[int]
    tile_rows: ClassVar[int]
    tile_columns: ClassVar[int]
    positions: ClassVar[int]
    panels: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        tile = fields["tile"]
        window = {"stride": (1, 1), "dilation": (1, 1), **fields}
        known = window_extents(cls.__name__, window, (TAPS, TAPS), ceil_mode=False)
        return {name: known[name] for name in ("out_height", "out_width", "pad_top", "pad_left")} | {
            "tile_rows": (known["out_height"] + tile - 1) // tile,
            "tile_columns": (known["out_width"] + tile - 1) // tile,
            "positions": (tile + TAPS - 1) ** 2,
            "panels": (fields["filters"] + PANEL - 1) // PANEL,
            "panel": PANEL,
            "y_pitch": fields["filters"],
        }

    def pack(self, w: AnyArray) -> AnyArray:
        """The filters of CONV2D, transformed in float64 and rounded once, in panels."""
        matrix, size = transforms(self.tile).filter, self.tile + TAPS - 1
        packed: AnyArray = aligned_empty((self.positions, self.panels, self.channels, PANEL), self.dtype)
        by_position = packed.reshape(1, size, size, self.panels, self.channels, PANEL)
        for i in range(self.panels):  # a few filters at a time, as those in between take eight times their memory
            filters = w[..., i * PANEL : (i + 1) * PANEL].astype(np.float64)
            transformed = np.einsum("ia,abcf,jb->ijcf", matrix, filters, matrix, optimize=True)
            pack_panels(transformed, by_position[:, :, :, i])
        return packed

    def patches(self, x: AnyArray) -> AnyArray:
        """The patches of all tiles: [batch, tile_rows, tile_columns, channels, m + 2, m + 2]."""
        rows, columns, (top, _), (left, _) = self.tile_rows, self.tile_columns, *self.padding
        extents = [count * self.tile + TAPS - 1 for count in (rows, columns)]
        padded = np.zeros((self.batch, *extents, self.channels), x.dtype)
        inside = x[:, : max(extents[0] - top, 0), : max(extents[1] - left, 0)]
        padded[:, top : top + inside.shape[1], left : left + inside.shape[2]] = inside
        size = self.tile + TAPS - 1
        views = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
        return views[:, :: self.tile, :: self.tile]

    def convolved(self, x: AnyArray, w: AnyArray, matrices: Transforms, limit: float = math.inf) -> AnyArray:
        """The convolution: transforms of patches, matrix products, and transforms of their results.

        Tiles are NaN for which something in between is not below `limit`.
        """
        size, tile = self.tile + TAPS - 1, self.tile
        image, result = (matrix.astype(x.dtype) for matrix in (matrices.image, matrices.result))
        patches = _limited(_from_both_sides(image, self.patches(x)), limit)
        tiles = self.batch * self.tile_rows * self.tile_columns
        rows = patches.transpose(4, 5, 0, 1, 2, 3).reshape(size * size, tiles, self.channels)
        products = rows @ unpack_panels(w, self.filters)
        shape = size, size, self.batch, self.tile_rows, self.tile_columns, self.filters
        products = _limited(products.reshape(shape).transpose(2, 3, 4, 5, 0, 1), limit)
        results = _limited(_from_both_sides(result, products), limit)
        extents = self.batch, self.tile_rows * tile, self.tile_columns * tile, self.filters
        return results.transpose(0, 1, 4, 2, 5, 3).reshape(extents)[:, : self.out_height, : self.out_width]

    def tolerance(self) -> Tolerance:
        """As CONV2D; besides, each transform is two sums of at most so many terms as a row of its matrix has."""
        matrices = transforms(self.tile)
        summed = sum(2 * int(np.count_nonzero(matrix, axis=1).max()) for matrix in (matrices.image, matrices.result))
        return Tolerance(ulp=4, terms=1.13 * ((self.channels + summed) / 2 + 3 + self.has_residual) + 1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The same of the absolute values, of matrices too; no bound where some are infinite, as terms cancel."""
        x, w, *addends = (np.abs(array) for array in arrays[:-1])
        magnitudes = Transforms(*map(np.abs, transforms(self.tile)))
        terms = sum(addends, start=self.convolved(x, w, magnitudes, float(np.finfo(self.dtype).max) / 2))
        return [np.where(np.isinf(terms), np.nan, terms)]

    def operations(self) -> float:
        """Those of the matrix products, and of activations."""
        each = {"identity": 1, "relu": 1}.get(self.activation, 18)
        products = 2.0 * (self.tile + TAPS - 1) ** 2 * self.tile_rows * self.tile_columns * self.channels
        return float(self.batch) * self.filters * (products + float(each) * self.out_height * self.out_width)

    def size_class(self) -> Self:
        fields = self.fields()
        sizes = class_sizes({"groups": 1, **fields})
        return self if sizes.items() <= fields.items() else type(self)(**fields | sizes)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        names = "batch height width channels filters padding tile"
        layers = [
            (1, 224, 224, 64, 64, 1, 4), (1, 112, 112, 128, 128, 1, 4), (1, 56, 56, 64, 64, 1, 4),
            (1, 56, 56, 256, 256, 1, 4), (1, 28, 28, 128, 128, 1, 4), (1, 28, 28, 512, 512, 1, 4),
            (1, 14, 14, 256, 256, 1, 4), (1, 14, 14, 512, 512, 1, 2), (1, 7, 7, 512, 512, 1, 2),
        ]  # fmt: skip
        full = grid(cls, names, layers, dtype=FLOATS, activation=("relu",))
        ci = [(1, 1, 1, 1, 1, 1, 4), (2, 5, 4, 3, 5, 1, 4), (1, 6, 31, 18, 5, 0, 2), (1, 9, 12, 20, 70, 0, 4)]
        added = grid(cls, names, [(2, 3, 4, 2, 33, 1, 2)], has_residual=(True,), dtype=FLOATS)
        return cases(full, ci=[*grid(cls, names, ci, dtype=FLOATS, activation=("relu",)), *added])
