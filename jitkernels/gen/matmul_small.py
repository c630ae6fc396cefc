"""Matrix multiply of one small or thin shape: sizes baked in, operands read where they lie.

With every size a constant the tiles cover C exactly (heights differ by at most one row, columns end in one masked
panel), all address arithmetic folds into the instructions, and nothing is copied: B's rows are vectors already,
A's elements are broadcast from memory.  Only a transposed B is first packed into panels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jitkernels.gen.matmul_packed import ir_function
from jitkernels.gen.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.gen.tile import TILE_ARGUMENTS, Tile, element_size
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import IRFunction, inlined


@dataclass(frozen=True)
class SmallShape:
    """Everything that the code of one shape depends on.

    Tiles have at most ``rows x (vectors * lanes)`` elements; k is cut into blocks of ``depth``.  ``swapped`` says
    that the caller's first array is the right operand.  ``split`` is the side of C that threads share out, or "".
    """

    dtype: str
    lanes: int
    m: int
    n: int
    k: int
    rows: int
    vectors: int
    depth: int
    trans_a: bool
    trans_b: bool
    beta: float
    swapped: bool = False
    split: str = ""

    @property
    def width(self) -> int:
        """Columns of a whole panel."""
        return self.vectors * self.lanes

    def heights(self) -> tuple[int, int, int]:
        """``(tall, tall_rows, short)``: tiles of ``tall`` rows up to row ``tall_rows``, of ``short`` rows below.

        Even heights keep every tile efficient; threads need parts that begin at multiples of one height.
        """
        pieces = -(-self.m // self.rows)
        tall = -(-self.m // pieces)
        if self.split == "rows":
            return tall, self.m - self.m % tall, self.m % tall
        return tall, tall * (pieces - (tall * pieces - self.m)), tall - 1


#: The rows that are worked on together should stay, of A and C, in half of a common second-level cache.
ROW_BLOCK_BYTES = 512 * 1024


def small_nest(shape: SmallShape) -> LoopNest:
    """The loop nest ``(a, b, c, m, n, k)`` of one shape."""
    pointer = {"float32": "float*", "float64": "double*"}[shape.dtype]
    size = element_size(shape.dtype)
    panels = -(-shape.n // shape.width)
    workspace = (panels * shape.width * shape.k + packing_slack(shape.lanes, shape.width)) * size
    extent = {"rows": 3, "columns": 4, "": 3}[shape.split]
    return LoopNest(
        name="matmul_small",
        arguments=(pointer, pointer, pointer, "int64", "int64", "int64"),
        body=_packing_body(shape) if shape.trans_b else _direct_body(shape),
        extent=3 if shape.swapped and extent == 4 else extent,
        block=shape.heights()[0] if shape.split == "rows" else shape.width,
        parallel=shape.split != "",
        workspace=workspace if shape.trans_b else 0,
        vector_bytes=shape.lanes * size,
    )


def _direct_body(shape: SmallShape) -> Callable[..., None]:
    multiply = _multiply(shape)
    swapped = shape.swapped

    def body(a, b, c, m, n, k, begin, end):  # type: ignore[no-untyped-def]
        if swapped:
            multiply(b, a, c, begin, end)
        else:
            multiply(a, b, c, begin, end)

    return body


def _packing_body(shape: SmallShape) -> Callable[..., None]:
    multiply = _multiply(shape)
    steps, width, columns_of_c = shape.k, shape.width, shape.n
    by_columns = shape.split == "columns"
    text = transpose_panel("matmul_pack_b", shape.dtype, shape.lanes, width)
    pack = ir_function("matmul_pack_b", shape.dtype, PACK_ARGUMENTS, text)

    def body(a, b, c, m, n, k, workspace, begin, end):  # type: ignore[no-untyped-def]
        left, right = (begin, end) if by_columns else (0, columns_of_c)
        for j in range(left, right, width):
            pack(b, j * steps, steps, workspace, j * steps, columns_of_c - j, steps)
        multiply(a, workspace, c, begin, end)

    return body


def _tiles(shape: SmallShape, tall: int, short: int, tail: int) -> list[IRFunction]:
    """Tiles ``[tall, short, tall at the right border, short at the right border]``."""
    made = []
    for name, columns in (("inner", shape.width), ("border", tail)):
        for which, height in (("tall", tall), ("short", short)):
            symbol = f"matmul_{name}_{which}"
            masked = columns % shape.lanes != 0
            tile = Tile(
                symbol, shape.dtype, shape.lanes, max(height, 1), max(-(-columns // shape.lanes), 1), shape.beta,
                a_by_column=shape.trans_a, mask_b=masked and not shape.trans_b, mask_c=masked, inline=True,
            )  # fmt: skip
            made.append(ir_function(symbol, shape.dtype, TILE_ARGUMENTS, tile.text()))
    return made


def _multiply(shape: SmallShape) -> Callable[..., None]:
    """The loops over tiles, as a function that both bodies call."""
    tall, tall_rows, short = shape.heights()
    width, rows_of_c, columns_of_c, steps, depth = shape.width, shape.m, shape.n, shape.k, shape.depth
    tail = columns_of_c % width
    whole = columns_of_c - tail
    inner, inner_short, border, border_short = _tiles(shape, tall, short, tail)
    # Element (r, p) of A lies at r * across + p * along; element (p, j) of B, at the start of a panel, at
    # p * b_stride + j * b_panel.
    across, along, a_stride = (1, rows_of_c, rows_of_c) if shape.trans_a else (steps, 1, steps)
    b_stride, b_panel = (width, steps) if shape.trans_b else (columns_of_c, 1)
    has_tail, has_short, last = tail > 0, tall_rows < rows_of_c, max(steps, 1)
    block = ROW_BLOCK_BYTES // element_size(shape.dtype) // max(steps + columns_of_c, 1) // tall * tall
    block = max(block, 4 * tall)
    by_rows, by_columns = shape.split == "rows", shape.split == "columns"

    @inlined()
    def multiply(a, b, c, begin, end):  # type: ignore[no-untyped-def]
        top, bottom = (begin, end) if by_rows else (0, rows_of_c)
        left, right = (begin, end) if by_columns else (0, columns_of_c)
        for p in range(0, last, depth):
            deep = min(depth, steps - p)
            first = 1 if p == 0 else 0
            for high in range(top, bottom, block):
                low = min(high + block, bottom)
                tall_end, short_start = min(low, tall_rows), max(high, tall_rows)
                for j in range(left, min(right, whole), width):
                    at = p * b_stride + j * b_panel
                    for i in range(high, tall_end, tall):
                        inner(
                            a, i * across + p * along, a_stride, b, at, b_stride,
                            c, i * columns_of_c + j, columns_of_c, deep, first, tall, width,
                        )  # fmt: skip
                    if has_short:
                        for i in range(short_start, low, short):
                            inner_short(
                                a, i * across + p * along, a_stride, b, at, b_stride,
                                c, i * columns_of_c + j, columns_of_c, deep, first, short, width,
                            )  # fmt: skip
                if has_tail and right > whole:
                    at = p * b_stride + whole * b_panel
                    for i in range(high, tall_end, tall):
                        border(
                            a, i * across + p * along, a_stride, b, at, b_stride,
                            c, i * columns_of_c + whole, columns_of_c, deep, first, tall, tail,
                        )  # fmt: skip
                    if has_short:
                        for i in range(short_start, low, short):
                            border_short(
                                a, i * across + p * along, a_stride, b, at, b_stride,
                                c, i * columns_of_c + whole, columns_of_c, deep, first, short, tail,
                            )  # fmt: skip

    return multiply
