"""Matrix multiply of any small size: operands are read where they lie, and sizes are arguments.

What is small lies in the first-level cache whatever its strides, so that packing it would cost more than it brings.
One height of tiles serves all rows: those beyond the last one read it again, and are not stored. Only a transposed B
is turned round, a panel of some steps along k at a time.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.followed import call_after
from jitkernels.loops.matmul_packed import ir_function, matmul_arguments
from jitkernels.loops.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile, element_size
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined

DEPTH = 256
"""Steps along k of a panel of a transposed B."""
BAND = 16384
"""Bytes of C, about, that are handed to what follows at a time: half of a first-level cache."""


def compact_nest(attr: MatMulAttr, target: Target, *, followed: bool = False) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)``; one that is `followed` takes two more integers."""
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    rows, width = 8 if target.registers == 32 else 6, 2 * lanes
    workspace = (DEPTH * width + packing_slack(lanes, width)) * size
    return LoopNest(
        name="matmul_compact_followed" if followed else "matmul_compact",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=(_followed if followed else _body)(attr, lanes, rows),
        extent=3,
        block=rows,
        workspace=workspace if attr.trans_b else 0,
        workspace_dtype=attr.dtype,
        vector_bytes=lanes * size,
        straight=True,
    )


def _body(attr: MatMulAttr, lanes: int, rows: int) -> Callable[..., None]:
    dtype, trans_a, trans_b = attr.dtype, attr.trans_a, attr.trans_b
    width, half, depth = 2 * lanes, max(lanes // 2, 1), DEPTH

    def tile_function(name: str, lanes: int, vectors: int) -> Any:
        symbol = f"matmul_{name}"
        tile = Tile(
            symbol, dtype, lanes, rows, vectors, attr.beta, a_by_column=trans_a, b_stride=width if trans_b else None,
            mask_b=not trans_b, mask_c=True, guard_rows=True, clamp_rows=True, inline=True,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, tile.text())

    wide, single = tile_function("wide", lanes, 2), tile_function("single", lanes, 1)
    narrow = tile_function("narrow", half, 1)
    text = transpose_panel("matmul_turn_b", dtype, lanes, width)
    turn = ir_function("matmul_turn_b", dtype, PACK_ARGUMENTS, text)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        stride = m if trans_a else k
        for j in range(0, n, width):
            left = n - j
            for i in range(begin, end, rows):
                from_a, at, high = i if trans_a else i * k, i * n + j, end - i
                if left <= half:
                    narrow(a, from_a, stride, b, j, n, c, at, n, k, 1, high, left)
                elif left <= lanes:
                    single(a, from_a, stride, b, j, n, c, at, n, k, 1, high, left)
                else:
                    wide(a, from_a, stride, b, j, n, c, at, n, k, 1, high, left)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        stride, step = (m, m) if trans_a else (k, 1)
        for j in range(0, n, width):
            left = n - j
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                first = 1 if p == 0 else 0
                turn(b, j * k + p, k, workspace, 0, left, deep)
                for i in range(begin, end, rows):
                    from_a, at, high = (i if trans_a else i * k) + p * step, i * n + j, end - i
                    if left <= half:
                        narrow(a, from_a, stride, workspace, 0, 0, c, at, n, deep, first, high, left)
                    elif left <= lanes:
                        single(a, from_a, stride, workspace, 0, 0, c, at, n, deep, first, high, left)
                    else:
                        wide(a, from_a, stride, workspace, 0, 0, c, at, n, deep, first, high, left)

    return turning if trans_b else body


def _followed(attr: MatMulAttr, lanes: int, rows: int) -> Callable[..., None]:
    """As above, but what follows takes each band of rows; all at once where B would be turned round for each."""
    compute, most, step = inlined()(_body(attr, lanes, rows)), BAND // element_size(attr.dtype), rows

    def body(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, begin: int, end: int
    ) -> None:
        band = max(most // max(n, 1) // step, 1) * step
        for high in range(begin, end, band):
            low = min(high + band, end)
            compute(a, b, c, m, n, k, high, low)
            call_after(after, context, high, low)

    def turning(
        a: Any,
        b: Any,
        c: Any,
        m: int,
        n: int,
        k: int,
        after: int,
        context: int,
        workspace: Any,
        begin: int,
        end: int,
    ) -> None:
        compute(a, b, c, m, n, k, workspace, begin, end)
        call_after(after, context, begin, end)

    return turning if attr.trans_b else body
