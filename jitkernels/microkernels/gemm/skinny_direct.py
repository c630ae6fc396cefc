"""Tiles for a skinny C of few rows whose right operand is read in place, as LLVM IR text, and the loops around them."""

from typing import Any

from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile
from jitkernels.microkernels.gemm.packed_panels import ir_function


def rows_across(dtype: str, target: Target, beta: float, *, by_column: bool) -> Any:
    """Make the function for some columns of a C of few rows, with vectors of B, read in place, along them.

    Tiles are wide and low, two or four rows high, so that each row of B is read in long runs.
    """
    lanes = target.lanes(dtype)
    many, twice = ((4, 6), (2, 8)) if target.registers == 32 else ((4, 2), (2, 4))

    def tiles(rows: int, max_vectors: int) -> tuple[Any, Any, Any]:
        functions = []
        for vectors in (max_vectors, 2, 1):
            symbol, edge = f"matmul_across{rows}_{vectors}", vectors == 1
            tile = Tile(
                symbol, dtype, lanes, rows, vectors, beta, a_by_column=by_column,
                mask_b=edge, mask_c=edge, guard_rows=True, clamp_rows=True, inline=True,
                unroll=2 if vectors > 2 else 1, prefetch_beside=vectors > 2,
            )  # fmt: skip
            functions.append(ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile)))
        return functions[0], functions[1], functions[2]

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
                double(a, from_a, a_stride, b, from_b + j, b_stride, c, at + j, c_stride, k, first, high, pair)
                j += pair
            while j < end:
                edge(a, from_a, a_stride, b, from_b + j, b_stride, c, at + j, c_stride, k, first, high, end - j)
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
