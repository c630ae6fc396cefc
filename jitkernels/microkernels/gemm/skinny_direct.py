"""Tiles for a skinny C of few rows whose right operand is read in place, as LLVM IR text, and the loops around them."""

from collections.abc import Sequence
from typing import Any

from jitkernels.codegen.source_protocol import Range, inlined, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.gemm_arguments import MatrixPart, ir_function, moved
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile


def rows_across(dtype: str, target: Target, beta: float, *, by_column: bool) -> Any:
    """Make ``(a, b, c, few, k, first, part)``: a part of few rows of c, with vectors of b, read in place, along them.

    Tiles are wide and low, two or four rows high, so that each row of B is read in long runs.
    """
    lanes = target.lanes(dtype)
    many, twice = ((4, 6), (2, 8)) if target.registers == 32 else ((4, 2), (2, 4))

    def strip(rows: int, vectors: int) -> Any:
        tiles = [_tile(dtype, lanes, rows, width, beta, by_column=by_column) for width in (vectors, 2, 1)]
        return _strip(tiles, lanes, vectors)

    of_four, of_two = strip(*many), strip(*twice)

    @inlined()
    def across(a: MatrixPart, b: MatrixPart, c: MatrixPart, few: int, k: int, first: int, part: Range) -> None:
        r = 0
        while r < few:
            high, row, to = few - r, moved(a, r if by_column else r * a.stride), moved(c, r * c.stride)
            if high > 2:
                of_four(row, b, to, k, first, high, part)
                r += 4
            else:
                of_two(row, b, to, k, first, high, part)
                r += 2

    return across


def _tile(dtype: str, lanes: int, rows: int, vectors: int, beta: float, *, by_column: bool) -> Any:
    """Make the tile of up to `rows` rows and so many vectors; one of a single vector serves the edge of c, masked."""
    symbol, edge = f"matmul_across{rows}_{vectors}", vectors == 1
    tile = Tile(
        symbol, dtype, lanes, rows, vectors, beta, a_by_column=by_column,
        mask_b=edge, mask_c=edge, guard_rows=True, clamp_rows=True, inline=True,
        unroll=2 if vectors > 2 else 1, prefetch_beside=vectors > 2,
    )  # fmt: skip
    return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))


def _strip(tiles: Sequence[Any], lanes: int, vectors: int) -> Any:
    """Make ``(a, b, c, k, first, high, part)``: `high` rows of a part of c, in tiles of `vectors`, 2 and 1 vectors."""
    wide, double, edge = tiles
    width, pair = vectors * lanes, 2 * lanes

    @inlined()
    def compute(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, high: int, part: Range) -> None:
        j, end = part.begin, part.end
        while end - j >= width:
            wide(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                width,
            )  # fmt: skip
            j += width
        while end - j >= pair:
            double(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                pair,
            )  # fmt: skip
            j += pair
        while j < end:
            edge(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                end - j,
            )  # fmt: skip
            j += lanes

    return compute
