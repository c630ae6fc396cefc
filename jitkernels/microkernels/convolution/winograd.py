"""Winograd convolution: the loops around the transforms and the register tile.

Some tiles at a time, the patches of the image are transformed into a matrix of tiles by channels for each position,
which the register tile of a convolution multiplies by panels of transformed filters; the products are transformed to
results. So many tiles are taken at once that what lies between is in the L2 cache, and filters are read few times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.attrs.winograd import transforms
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.convolution.extents import ONCE, TILE_VECTORS, Images
from jitkernels.microkernels.convolution.tile import ConvolutionTile
from jitkernels.microkernels.convolution.tile_text import ROW_PIXELS, TILE_ARGUMENTS
from jitkernels.microkernels.convolution.winograd_transform import PATCH_ARGUMENTS, RESULT_ARGUMENTS, Matrix, Transform
from jitkernels.microkernels.epilogue.bias_activation import row_epilogue
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size

LINE_ELEMENTS = 16
"""Elements that rows of scratch matrices are filled up to multiples of: odd ones, so that cache sets differ."""
MIN_THREAD_TILES = 7
"""Tiles that a thread gets at least."""
CACHE_SHARE = 4
"""The share of the L2 cache, as a divisor, that the matrices of tiles take."""
MIN_TILES, STREAM_TILES = 28, 56
"""Tiles that are taken at once at least, as each reads all filters; of filters that the L2 cache does not hold, the
second (measured on Emerald Rapids: layers of VGG-19 lose 5 to 15 % with half as many)."""


class WinogradExtents(NamedTuple):
    """The integers of the row."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    out_height: int
    out_width: int
    pad_top: int
    pad_left: int
    tile_rows: int
    tile_columns: int
    y_pitch: int


class Scratch(NamedTuple):
    """The matrices of so many tiles: those of patches, and those of products from `products` on.

    Rows and positions of patches are `row` and `position` elements apart, those of products `product_row` and
    `product_position`.
    """

    tiles: int
    row: int
    position: int
    products: int
    product_row: int
    product_position: int


class FilterProduct(NamedTuple):
    """The product of the matrix of `tiles` patches by `depth` channels with `live` filters.

    Where in the scratch the patches and the results begin, where the filters, and those that are prefetched.
    """

    tiles: int
    depth: int
    patches: int
    filters: int
    ahead: int
    to: int
    live: int


class TilePlace(NamedTuple):
    """A tile of some results: its image, and its first row and column."""

    image: int
    top: int
    left: int


@frozen_dataclass
class Winograd:
    """What determines the code: `size` is the rows of a patch, `tile` those of its results."""

    dtype: str
    lanes: int
    pixels: int
    tile: int
    size: int
    biased: bool
    has_residual: bool
    activation: str
    cache_elements: int

    @property
    def positions(self) -> int:
        """The matrices."""
        return self.size * self.size


def winograd_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of CONV2D_WINOGRAD for any sizes; threads split the tiles."""
    target, signature = cpu_target.target(), attr.signature()
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    pixels = (target.registers - TILE_VECTORS - 1) // TILE_VECTORS
    patch = len(transforms(attr.tile).image)
    kind = Winograd(
        attr.dtype, lanes, pixels, attr.tile, patch, attr.biased, attr.has_residual, attr.activation,
        cpu_target.l2_cache_bytes() // size,
    )  # fmt: skip
    return RangeKernel(
        f"{attr.name}_{attr.tile}_{attr.activation}_{attr.dtype}",
        signature.c_arguments,
        _body(kind),
        extent=tuple(signature.index(name) for name in ("batch", "tile_rows", "tile_columns")),
        block=MIN_THREAD_TILES,
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        workspace=_workspace(kind),
        workspace_dtype=attr.dtype,
        flags=("contract",),
        vector_bytes=lanes * size,
        straight=True,
        pitched=not attr.has_residual,  # transforms find a residual where they find y
        names=signature.names,
    )


def _layout(kind: Winograd) -> Any:
    """Make the function that lays out the scratch for a number of tiles."""
    positions, cache = kind.positions, kind.cache_elements

    @inlined()
    def odd_lines(elements: int) -> int:
        lines = (elements + LINE_ELEMENTS - 1) // LINE_ELEMENTS
        return (lines // 2 * 2 + 1) * LINE_ELEMENTS

    @inlined()
    def layout(e: WinogradExtents, begin: int, end: int) -> Any:
        row, product_row = odd_lines(e.channels), odd_lines(e.filters)
        is_streamed = positions * e.channels * e.filters > cache
        least = STREAM_TILES if is_streamed else MIN_TILES
        most = max(cache // CACHE_SHARE // (positions * (row + product_row)), least)
        blocks = (end - begin + most - 1) // most
        tiles = (end - begin + blocks - 1) // max(blocks, 1)
        position, product_position = odd_lines(tiles * row), odd_lines(tiles * product_row)
        return Scratch(tiles, row, position, positions * position, product_row, product_position)

    return layout


def _workspace(kind: Winograd) -> Callable[..., Any]:
    layout, positions, size = _layout(kind), kind.positions, element_size(kind.dtype)

    def needed(e: WinogradExtents, part: Range) -> Any:
        scratch = layout(e, part.begin, part.end)
        return (scratch.products + positions * scratch.product_position) * size

    return needed


def _place(kind: Winograd) -> Any:
    """Make the function that finds the place of a tile by its number."""
    tile = kind.tile

    @inlined()
    def place_of(e: WinogradExtents, number: int) -> Any:
        row, column = number // e.tile_columns, number % e.tile_columns
        return TilePlace(row // e.tile_rows, row % e.tile_rows * tile, column * tile)

    return place_of


def _matrix(array: Any) -> Matrix:
    return tuple(tuple(float(number) for number in row) for row in array)


def _transform_patches(kind: Winograd) -> Any:
    """Make the function that transforms the patches of tiles."""
    matrix, lanes, size, place_of = _matrix(transforms(kind.tile).image), kind.lanes, kind.size, _place(kind)

    def function(symbol: str, *, whole: bool) -> Any:
        text = written_by(Transform.patch_text, Transform(symbol, kind.dtype, lanes, matrix, whole))
        return ir_function(symbol, kind.dtype, PATCH_ARGUMENTS, text)

    inside, border = function("winograd_patch", whole=True), function("winograd_border_patch", whole=False)

    @inlined()
    def transform(x: Any, e: WinogradExtents, scratch: Scratch, first: int, count: int, workspace: Any) -> None:
        pitch, channels = e.width * e.channels, e.channels // lanes * lanes
        for i in range(count):
            place, done = place_of(e, first + i), 0
            top, left = place.top - e.pad_top, place.left - e.pad_left
            source, target = ((place.image * e.height + top) * e.width + left) * e.channels, i * scratch.row
            if top >= 0 and left >= 0 and top + size <= e.height and left + size <= e.width:
                inside(x, source, pitch, e.channels, 0, size, 0, size, workspace, target, scratch.position, channels)
                done = channels
            if done < e.channels:
                border(x, source + done, pitch, e.channels, max(-top, 0), min(e.height - top, size), max(-left, 0),
                       min(e.width - left, size), workspace, target + done, scratch.position,
                       e.channels - done)  # fmt: skip

    return transform


def _multiply(kind: Winograd) -> Any:
    """Make the function that multiplies the matrices of all positions."""
    positions, lanes, most, width = kind.positions, kind.lanes, kind.pixels, TILE_VECTORS * kind.lanes

    def function(symbol: str, vectors: int) -> Any:
        tile = ConvolutionTile(symbol, kind.dtype, lanes, most, vectors, False, False, panel=PANEL)
        return ir_function(symbol, kind.dtype, TILE_ARGUMENTS, written_by(ConvolutionTile.text, tile))

    wide, narrow = function("winograd_wide", TILE_VECTORS), function("winograd_narrow", 1)

    @inlined()
    def multiply_filters(w: Any, scratch: Scratch, product: FilterProduct, workspace: Any) -> None:
        depth, row, to = product.depth, scratch.row, scratch.product_row
        parts = (product.tiles + most - 1) // most
        ahead, stride = product.ahead, (PANEL + parts - 1) // parts
        done, live, lead = 0, product.live, ROW_PIXELS * row
        for part in range(parts):
            n = (product.tiles - done + parts - part - 1) // (parts - part)
            x, y = product.patches + done * row, product.to + done * to
            if live > lanes:
                wide(workspace, x, row, lead, 1, 0, 1, 0, depth, w, product.filters, 0, ahead, stride, workspace, 0,
                     workspace, workspace, y, to, live, n, ONCE, 0, 0, workspace, 0, 0)  # fmt: skip
            else:
                narrow(workspace, x, row, lead, 1, 0, 1, 0, depth, w, product.filters, 0, ahead, stride, workspace, 0,
                       workspace, workspace, y, to, live, n, ONCE, 0, 0, workspace, 0, 0)  # fmt: skip
            ahead += depth * stride
            done += n

    @inlined()
    def multiply(w: Any, e: WinogradExtents, scratch: Scratch, tiles: int, workspace: Any) -> None:
        elements, panel = e.channels * PANEL, 0
        for position in range(positions):
            patches, products = position * scratch.position, scratch.products + position * scratch.product_position
            for f in range(0, e.filters, width):
                if f > 0 and f % PANEL == 0:
                    panel += elements
                at, live = panel + f % PANEL, min(e.filters - f, width)
                product = FilterProduct(tiles, e.channels, patches, at, panel + elements, products + f, live)
                multiply_filters(w, scratch, product, workspace)
            panel += elements

    return multiply


def _transform_products(kind: Winograd) -> Any:
    """Make the function that transforms the products of tiles to results."""
    matrix, lanes, tile = _matrix(transforms(kind.tile).result), kind.lanes, kind.tile
    has_rest, place_of = kind.activation not in ("identity", "relu"), _place(kind)
    finish = row_epilogue(kind.activation, kind.dtype, biased=False)

    def function(symbol: str, *, whole: bool) -> Any:
        parameters = kind.biased, kind.has_residual, kind.activation == "relu"
        text = written_by(Transform.result_text, Transform(symbol, kind.dtype, lanes, matrix, whole, *parameters))
        return ir_function(symbol, kind.dtype, RESULT_ARGUMENTS, text)

    inside, border = function("winograd_result", whole=True), function("winograd_border_result", whole=False)

    @inlined()
    def transform(arrays: Images, e: WinogradExtents, scratch: Scratch, first: int, count: int, workspace: Any) -> None:
        y, bias = arrays.y, arrays.y if arrays.bias is None else arrays.bias
        residual = arrays.y if arrays.residual is None else arrays.residual
        pixel, pitch, filters = e.y_pitch, e.out_width * e.y_pitch, e.filters // lanes * lanes
        for i in range(count):
            place, done = place_of(e, first + i), 0
            rows, columns = min(e.out_height - place.top, tile), min(e.out_width - place.left, tile)
            target = ((place.image * e.out_height + place.top) * e.out_width + place.left) * pixel
            source, step = scratch.products + i * scratch.product_row, scratch.product_position
            if rows == tile and columns == tile:
                inside(workspace, source, step, bias, 0, residual, y, target, pitch, pixel, rows, columns, filters)
                done = filters
            if done < e.filters:
                border(workspace, source + done, step, bias, done, residual, y, target + done, pitch, pixel, rows,
                       columns, e.filters - done)  # fmt: skip
            if has_rest:
                for k in range(rows):
                    for j in range(columns):
                        finish(offset(y, target + k * pitch + j * pixel), y, e.filters)

    return transform


def _body(kind: Winograd) -> Callable[..., None]:
    layout = _layout(kind)
    transform_patches, multiply, transform_products = (
        _transform_patches(kind), _multiply(kind), _transform_products(kind),
    )  # fmt: skip

    def body(arrays: Images, e: WinogradExtents, workspace: Any, part: Range) -> None:
        scratch = layout(e, part.begin, part.end)
        for first in range(part.begin, part.end, scratch.tiles):
            count = min(scratch.tiles, part.end - first)
            transform_patches(arrays.x, e, scratch, first, count, workspace)
            multiply(arrays.w, e, scratch, count, workspace)
            transform_products(arrays, e, scratch, first, count, workspace)

    return body
