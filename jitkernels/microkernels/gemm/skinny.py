"""Matrix multiply of a C with few rows or few columns, of any size: the long factor is read once, where it lies.

A C of few columns is the transpose of one of few rows, with the factors in each other's place: all is said for few
rows. Where the long factor lies along k, elements of C are dot products; otherwise vectors run along the rows of C.
"""

from collections.abc import Callable
from typing import Any

from jitkernels import dtypes
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.dot_tile import DotTile
from jitkernels.loops.matmul_across import rows_across
from jitkernels.loops.matmul_packed import ir_function, matmul_arguments
from jitkernels.loops.pack import APART_ARGUMENTS, columns_apart
from jitkernels.loops.tile import TILE_ARGUMENTS, element_size
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, written_by

TURNED_BYTES = 16384
"""Of the short factor, where it has to be turned round to lie along k: half of a first-level cache."""
TOGETHER = 32
"""Rows of it at a time."""
BLOCK = 64
"""Rows or columns of C that a thread gets at least, twice."""


def thin_nest(
    attr: MatMulAttr, target: Target, *, columns: bool, parallel: bool = False
) -> LoopNest:  # fmt: skip
    """Make the loop nest ``(a, b, c, m, n, k)`` for a C of few rows, or of few `columns`."""
    trans_a, trans_b = attr.trans_a, attr.trans_b
    if columns:
        trans_a, trans_b = not trans_b, not trans_a
    size = element_size(attr.dtype)
    body, workspace = (_dots if trans_b else _across)(attr, target, trans_a, columns)
    return LoopNest(
        name="matmul_thin",
        arguments=matmul_arguments(attr.dtype),
        body=body,
        extent=3 if columns else 4,
        block=BLOCK,
        parallel=parallel,
        workspace=workspace * size,
        workspace_dtype=attr.dtype,
        vector_bytes=target.lanes(attr.dtype) * size,
        straight=True,
    )


def _dots(attr: MatMulAttr, target: Target, trans_a: bool, columns: bool) -> tuple[Callable[..., None], int]:
    """The body where the long factor lies along k, as the short one does once it is turned round."""
    dtype, lanes = attr.dtype, target.lanes(attr.dtype)
    most, swapped = (4 if target.registers == 32 else 2), columns
    together = TOGETHER
    room = TURNED_BYTES // element_size(dtype) if trans_a else 0

    def tile(rows: int, columns: int) -> Any:
        symbol = f"matmul_dot{rows}_{columns}"
        made = DotTile(symbol, dtype, lanes, rows, columns, attr.beta, streams_a=False, turned=swapped)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(DotTile.text, made))

    four = [tile(rows, 4) for rows in range(1, most + 1)]
    single = [tile(rows, 1) for rows in range(1, most + 1)]

    def chosen(tiles: list[Any]) -> Any:
        one, two, three, whole = tiles[0], tiles[1], tiles[-2], tiles[-1]

        @inlined()
        def of_rows(
            a: Any, from_a: int, a_stride: int, b: Any, from_b: int, b_stride: int,
            c: Any, at: int, c_stride: int, k: int, first: int, high: int,
        ) -> None:  # fmt: skip
            if high >= most:
                whole(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            elif high == 3:
                three(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            elif high == 2:
                two(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            else:
                one(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)

        return of_rows

    of_four, of_one, turn = chosen(four), chosen(single), turned(dtype, lanes)

    @inlined()
    def block(
        a: Any, a_stride: int, b: Any, p: int, c: Any, c_stride: int,
        top: int, bottom: int, k: int, deep: int, first: int, begin: int, end: int,
    ) -> None:  # fmt: skip
        """Rows `top` to `bottom` of those in C; A begins with the first of them."""
        j = begin
        while j < end:
            wide = 4 if end - j >= 4 else 1
            for r in range(top, bottom, most):
                at = j * c_stride + r if swapped else r * c_stride + j
                row = (r - top) * a_stride
                if wide == 4:
                    of_four(a, row, a_stride, b, j * k + p, k, c, at, c_stride, deep, first, bottom - r)
                else:
                    of_one(a, row, a_stride, b, j * k + p, k, c, at, c_stride, deep, first, bottom - r)
            j += wide

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        few, long = (n, m) if swapped else (m, n)
        left, right = (b, a) if swapped else (a, b)
        block(left, k, right, 0, c, few if swapped else long, 0, few, k, k, 1, begin, end)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        few, long = (n, m) if swapped else (m, n)
        left, right = (b, a) if swapped else (a, b)
        for top in range(0, few, together):
            rows = min(together, few - top)
            depth = room // rows // lanes * lanes
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                turn(left, p * few + top, few, workspace, depth, rows, deep)
                first = 1 if p == 0 else 0
                block(
                    workspace, depth, right, p, c, few if swapped else long, top, top + rows,
                    k, deep, first, begin, end,
                )  # fmt: skip

    return (turning if trans_a else plain), room


def turned(dtype: str, lanes: int) -> Any:
    """A function that writes the few columns of some rows of a factor as rows; see its code."""

    def apart(few: int) -> Any:
        return ir_function(
            f"matmul_apart{few}",
            dtype,
            APART_ARGUMENTS,
            written_by(columns_apart, f"matmul_apart{few}", dtype, lanes, few),
        )

    of_two, of_three, of_four = apart(2), apart(3), apart(4)

    @inlined()
    def turn(source: Any, start: int, stride: int, target: Any, depth: int, few: int, count: int) -> None:
        """``target[r * depth + q] = source[start + q * stride + r]`` for r < few, q < count."""
        q = 0
        if few == stride:
            whole = count // lanes
            if few == 2:
                of_two(source, start, target, depth, whole)
                q = whole * lanes
            elif few == 3:
                of_three(source, start, target, depth, whole)
                q = whole * lanes
            elif few == 4:
                of_four(source, start, target, depth, whole)
                q = whole * lanes
        while q < count:
            for r in range(few):
                target[r * depth + q] = source[start + q * stride + r]
            q += 1

    return turn


def _across(
    attr: MatMulAttr, target: Target, trans_a: bool, columns: bool
) -> tuple[Callable[..., None], int]:
    """The body where the long factor lies across k: vectors of it are rows of C, or of its transpose."""
    dtype, beta = attr.dtype, attr.beta
    across = rows_across(dtype, target, 0.0 if columns else beta, by_column=trans_a)
    number: Any = dtypes.named(dtype).numpy.type
    keeps, scale = beta != 0, number(beta)
    panel = 4 * BLOCK

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        across(a, 0, m if trans_a else k, b, 0, n, c, 0, n, m, k, 1, begin, end)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        for i in range(begin, end, panel):
            wide = min(panel, end - i)
            for r in range(0, n, 4):
                high = min(4, n - r)
                row = r if trans_a else r * k
                across(b, row, n if trans_a else k, a, i, m, workspace, 0, panel, high, k, 1, 0, wide)
                for s in range(wide):
                    for q in range(high):
                        at = (i + s) * n + r + q
                        value = workspace[q * panel + s]
                        c[at] = value + scale * c[at] if keeps else value

    return (turning, 4 * panel) if columns else (plain, 0)
