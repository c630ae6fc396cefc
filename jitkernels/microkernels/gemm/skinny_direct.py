"""Tiles for a C of few rows whose right factor is read where it lies, as LLVM IR text and the loops around it."""

from typing import Any

from jitkernels.loops.matmul_packed import ir_function
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile
from jitkernels.machine import Target
from jitkernels.native.source import inlined, written_by


def rows_across(dtype: str, target: Target, beta: float, *, by_column: bool) -> Any:
    """A function for some columns of a C of few rows, where vectors of B, read where they lie, run along them.

    Tiles are long and low, so that each row of B is read in long runs: of four rows, or of two.
    """
    lanes = target.lanes(dtype)
    many, twice = ((4, 6), (2, 8)) if target.registers == 32 else ((4, 2), (2, 4))

    def tiles(rows: int, most: int) -> tuple[Any, Any, Any]:
        made = []
        for vectors in (most, 2, 1):
            symbol, edge = f"matmul_across{rows}_{vectors}", vectors == 1
            tile = Tile(
                symbol, dtype, lanes, rows, vectors, beta, a_by_column=by_column,
                mask_b=edge, mask_c=edge, guard_rows=True, clamp_rows=True, inline=True,
                unroll=2 if vectors > 2 else 1, prefetch_beside=vectors > 2,
            )  # fmt: skip
            made.append(ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile)))
        return made[0], made[1], made[2]

    def strip(rows: int, vectors: int) -> Any:
        wide, double, edge = tiles(rows, vectors)
        width, pair = vectors * lanes, 2 * lanes

        @inlined()
        def computed(
            a: Any, from_a: int, a_stride: int, b: Any, from_b: int, b_stride: int, c: Any, at: int, c_stride: int,
            k: int, first: int, high: int, begin: int, end: int,
        ) -> None:  # fmt: skip
            j = begin
            while end - j >= width:
                wide(a, from_a, a_stride, b, from_b + j, b_stride, c, at + j, c_stride, k, first, high, width)
                j += width
            while end - j >= pair:
                double(
                    a, from_a, a_stride, b, from_b + j, b_stride, c, at + j, c_stride, k, first, high, pair
                )
                j += pair
            while j < end:
                edge(
                    a, from_a, a_stride, b, from_b + j, b_stride, c, at + j, c_stride, k, first, high, end - j
                )
                j += lanes

        return computed

    of_four, of_two = strip(*many), strip(*twice)

    @inlined()
    def across(
        a: Any, from_a: int, a_stride: int, b: Any, from_b: int, b_stride: int, c: Any, at: int, c_stride: int,
        few: int, k: int, first: int, begin: int, end: int,
    ) -> None:  # fmt: skip
        r = 0
        while r < few:
            high, row, to = few - r, from_a + (r if by_column else r * a_stride), at + r * c_stride
            if high > 2:
                of_four(a, row, a_stride, b, from_b, b_stride, c, to, c_stride, k, first, high, begin, end)
                r += 4
            else:
                of_two(a, row, a_stride, b, from_b, b_stride, c, to, c_stride, k, first, high, begin, end)
                r += 2

    return across
