"""Matrix multiply of any small size: operands are read where they lie, and sizes are arguments.

What is small lies in the first-level cache whatever its strides, so that packing it would cost more than it brings.
Tiles of one height serve all rows but a few at the end: rows beyond the last one read it again, and are not stored. A
transposed B is turned round, a panel of some steps along k at a time.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.followed import call_after
from jitkernels.loops.matmul_across import rows_across
from jitkernels.loops.matmul_packed import ir_function, matmul_arguments
from jitkernels.loops.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile, element_size
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined

DEPTH = 256
"""Steps along k that are done at once: those of a panel of a transposed B, or of rows of B on pages of their own."""
TOGETHER = 8
"""Tiles of rows of C that are done at once, so that these are written while they are in the cache."""
PART = 4
"""Widths of tiles that a thread gets at least, twice."""
BAND = 16384
"""Bytes of C, about, that are handed to what follows at a time: half of a first-level cache."""


def compact_nest(
    attr: MatMulAttr, target: Target, *, parallel: bool = False, followed: bool = False
) -> LoopNest:  # fmt: skip
    """Make the loop nest ``(a, b, c, m, n, k)``, whose range is the columns of C.

    That of one that is `followed`, which takes two more integers, is the rows of C.
    """
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    rows, width = 8 if target.registers == 32 else 6, 2 * lanes
    workspace = (DEPTH * width + packing_slack(lanes, width)) * size
    return LoopNest(
        name="matmul_compact_followed" if followed else "matmul_compact",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=(_followed if followed else _body)(attr, target, rows),
        extent=3 if followed else 4,
        block=rows if followed else PART * width,
        parallel=parallel,
        workspace=workspace if attr.trans_b else 0,
        workspace_dtype=attr.dtype,
        vector_bytes=lanes * size,
        straight=True,
    )


def _body(attr: MatMulAttr, target: Target, rows: int) -> Callable[..., None]:
    """All rows, the columns ``begin`` to ``end``."""
    compute = _block(attr, target, rows)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        compute(a, b, c, m, n, k, 0, m, begin, end)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        compute(a, b, c, m, n, k, workspace, 0, m, begin, end)

    return turning if attr.trans_b else body


def _followed(attr: MatMulAttr, target: Target, rows: int) -> Callable[..., None]:
    """Some rows, of which what follows takes each band; all at once where B would be turned round for each."""
    compute, most, step = _block(attr, target, rows), BAND // element_size(attr.dtype), rows

    def body(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, begin: int, end: int
    ) -> None:
        band = max(most // max(n, 1) // step, 1) * step
        for high in range(begin, end, band):
            low = min(high + band, end)
            compute(a, b, c, m, n, k, high, low, 0, n)
            call_after(after, context, high, low)

    def turning(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int,
        workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        compute(a, b, c, m, n, k, workspace, begin, end, 0, n)
        call_after(after, context, begin, end)

    return turning if attr.trans_b else body


def _block(attr: MatMulAttr, target: Target, rows: int) -> Any:
    """A function for a part of C, some rows and some columns of it."""
    dtype, lanes, trans_a, trans_b = attr.dtype, target.lanes(attr.dtype), attr.trans_a, attr.trans_b
    width, half, depth = 2 * lanes, max(lanes // 2, 1), DEPTH
    together, few = TOGETHER * rows, rows // 2

    def tile_function(name: str, lanes: int, vectors: int) -> Any:
        symbol = f"matmul_{name}"
        tile = Tile(
            symbol, dtype, lanes, rows, vectors, attr.beta, a_by_column=trans_a, b_stride=width if trans_b else None,
            mask_b=not trans_b, mask_c=True, guard_rows=True, clamp_rows=True, inline=True,
            prefetch_beside=not trans_b and vectors > 1,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, tile.text())

    wide, single = tile_function("wide", lanes, 2), tile_function("single", lanes, 1)
    narrow = tile_function("narrow", half, 1)

    @inlined()
    def chosen(
        a: Any, from_a: int, a_stride: int, b: Any, from_b: int, b_stride: int, c: Any, at: int, c_stride: int,
        k: int, first: int, high: int, left: int,
    ) -> None:  # fmt: skip
        if left <= half:
            narrow(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, high, left)
        elif left <= lanes:
            single(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, high, left)
        else:
            wide(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, high, left)

    if trans_b:
        text = transpose_panel("matmul_turn_b", dtype, lanes, width)
        turn = ir_function("matmul_turn_b", dtype, PACK_ARGUMENTS, text)

        @inlined()
        def turning(
            a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, top: int, bottom: int, begin: int, end: int
        ) -> None:  # fmt: skip
            stride, step = (m, m) if trans_a else (k, 1)
            for j in range(begin, end, width):
                left = end - j
                for p in range(0, max(k, 1), depth):
                    deep = min(depth, k - p)
                    first = 1 if p == 0 else 0
                    turn(b, j * k + p, k, workspace, 0, left, deep)
                    for i in range(top, bottom, rows):
                        from_a = (i if trans_a else i * k) + p * step
                        chosen(a, from_a, stride, workspace, 0, 0, c, i * n + j, n, deep, first, bottom - i, left)

        return turning
    across = rows_across(dtype, target, attr.beta, by_column=trans_a)

    @inlined()
    def in_place(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, top: int, bottom: int, begin: int, end: int
    ) -> None:  # fmt: skip
        stride, step = (m, m) if trans_a else (k, 1)
        for high in range(top, bottom, together):
            low = min(high + together, bottom)
            # A few rows that are left over are tiles of their own: others would compute most of theirs in vain.
            rest = (low - high) % rows
            whole = low - rest if rest <= few else low
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                first = 1 if p == 0 else 0
                for j in range(begin, end, width):
                    for i in range(high, whole, rows):
                        from_a = (i if trans_a else i * k) + p * step
                        chosen(a, from_a, stride, b, p * n + j, n, c, i * n + j, n, deep, first, whole - i, end - j)
                if whole < low:
                    from_a = (whole if trans_a else whole * k) + p * step
                    across(a, from_a, stride, b, p * n, n, c, whole * n, n, low - whole, deep, first, begin, end)

    return in_place
