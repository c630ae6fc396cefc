"""Packed GEMM: one object for every large size (Goto & van de Geijn 2008; BLIS).

Loops, from outside: column blocks of C, blocks of k, row blocks of C, then panels of B and of A.  The nest packs a
block of B (``depth x columns``) and a block of A (``rows x depth``) into panels that the register tile reads in order:
no strides of the caller cause cache-set conflicts, every load hits a page in the TLB, and transposed operands cost the
same as others.

A matrix times its own transpose is symmetric: the nest mirrors tiles below the diagonal to those above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import IRFunction, Written, inlined, written_by
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import record
from jitkernels.microkernels.epilogue.tile_consumer import FOLLOWED, call_consumer
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack, transpose_panel

LONG = 32
"""From so many steps along k on, computing a tile takes longer than mirroring it across the diagonal."""
BAND = 1 << 17
"""Approximate bytes of C per band handed to the consumer: an eighth of a second-level cache."""


is_same = IRFunction(
    "is_same",
    "int64",
    ("void*", "void*"),
    """define i64 @is_same(ptr %a, ptr %b) alwaysinline nounwind {
  %same = icmp eq ptr %a, %b
  %found = zext i1 %same to i64
  ret i64 %found
}
""",
)
"""Whether two arrays have the same address."""


@record
class Blocking:
    """Blocking of the packed algorithm: a tile of ``rows x vectors`` registers, and the blocks of k, m and n."""

    rows: int
    vectors: int
    depth: int
    block_rows: int
    block_columns: int


def ir_function(symbol: str, dtype: str, arguments: tuple[tuple[str, str], ...], text: str | Written) -> Any:
    """Make an IR function whose pointers point to ``dtype``; loop nests call it as a Python function."""
    pointer = f"{dtypes.named(dtype).c}*"
    return IRFunction(symbol, "void", tuple(pointer if kind == "ptr" else "int64" for kind, _ in arguments), text)


def matmul_arguments(dtype: str, *, followed: bool = False) -> tuple[str, ...]:
    """Return the C types of ``(a, b, c, m, n, k)``, and of the consumer's arguments if the nest is followed by one."""
    pointer = f"{dtypes.named(dtype).c}*"
    if followed:  # the consumer reads C
        return (pointer,) * 3 + ("int64",) * 3 + FOLLOWED
    return (f"{pointer} restrict",) * 3 + ("int64",) * 3


def packed_nest(
    dtype: str, lanes: int, blocking: Blocking, *,
    trans_a: bool, trans_b: bool, beta: float, split: str, parallel: bool, followed: bool = False,
) -> LoopNest:  # fmt: skip
    """Make the loop nest ``(a, b, c, m, n, k)``; threads split the columns or the rows of C as ``split`` says.

    A nest that is `followed` takes two more integers, see `jitkernels.microkernels.epilogue.tile_consumer`, and is
    split by rows.
    """
    width = blocking.vectors * lanes
    slack = packing_slack(lanes, max(width, blocking.rows))
    columns_of_a_panel = blocking.block_rows * blocking.depth + slack
    aligned = -(-columns_of_a_panel // 64) * 64
    plain, with_consumer = _bodies(dtype, lanes, blocking, aligned, trans_a, trans_b, beta, split)
    return LoopNest(
        name="matmul_packed_followed" if followed else "matmul_packed",
        arguments=matmul_arguments(dtype, followed=followed),
        body=with_consumer if followed else plain,
        extent=4 if split == "columns" else 3,
        block=width if split == "columns" else blocking.rows,
        parallel=parallel,
        workspace=(aligned + blocking.depth * blocking.block_columns + slack) * element_size(dtype),
        workspace_dtype=dtype,
        vector_bytes=lanes * element_size(dtype),
        straight=True,
    )


def _bodies(
    dtype: str, lanes: int, blocking: Blocking, panels_of_b: int,
    trans_a: bool, trans_b: bool, beta: float, split: str,
) -> tuple[Callable[..., None], Callable[..., None]]:  # fmt: skip
    rows, width, depth = blocking.rows, blocking.vectors * lanes, blocking.depth
    block_rows, block_columns = blocking.block_rows, blocking.block_columns
    by_columns, band = split == "columns", BAND // element_size(dtype)

    def tile_function(symbol: str, vectors: int, edge: bool) -> Any:
        tile = Tile(
            symbol, dtype, lanes, rows, vectors, beta, a_by_column=True, a_stride=rows, b_stride=width,
            mask_c=edge, guard_rows=edge, prefetch=True,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    inner = tile_function("matmul_inner", blocking.vectors, edge=False)
    edge = tile_function("matmul_edge", blocking.vectors, edge=True)
    narrow = tile_function("matmul_narrow", 1, edge=True)
    pack_rows = ir_function(
        "matmul_pack_a", dtype, PACK_ARGUMENTS,
        written_by(copy_panel if trans_a else transpose_panel, "matmul_pack_a", dtype, lanes, rows),
    )  # fmt: skip
    pack_columns = ir_function(
        "matmul_pack_b", dtype, PACK_ARGUMENTS,
        written_by(transpose_panel if trans_b else copy_panel, "matmul_pack_b", dtype, lanes, width),
    )  # fmt: skip

    may_mirror = trans_a != trans_b and beta == 0

    @inlined()
    def mirror(c: Any, n: int, top: int, high: int, left: int, columns: int) -> None:
        """Mirror the elements above the diagonal of a block of C that no tile computes."""
        for i in range(top, top + high):
            first = i // width * width // rows * rows
            for j in range(left, min(left + columns, first)):
                c[j * n + i] = c[i * n + j]

    @inlined()
    def computed(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, workspace: Any, begin: int, end: int
    ) -> None:
        first_row = 0 if by_columns else begin
        last_row = m if by_columns else end
        first_column = begin if by_columns else 0
        last_column = end if by_columns else n
        a_stride = m if trans_a else k
        b_stride = k if trans_b else n
        # Equal blocks of k: a short last block would read and write all of C for a few steps.
        k_blocks = max((k + depth - 1) // depth, 1)
        step = max((k + k_blocks - 1) // k_blocks, 1)
        mirrors = may_mirror and m == n and after == 0 and k >= LONG and is_same(a, b) != 0
        if n == 0 and after != 0:
            call_consumer(after, context, first_row, last_row)
        block_high = block_rows
        if after != 0:
            block_high = min(block_rows, max(band // max(n, 1) // rows, 1) * rows)
        for jc in range(first_column, last_column, block_columns):
            columns = min(block_columns, last_column - jc)
            for block in range(k_blocks):
                p = block * step
                deep = min(step, k - p)
                first = 1 if block == 0 else 0
                for j in range(0, columns, width):
                    start = (jc + j) * b_stride + p if trans_b else p * b_stride + jc + j
                    pack_columns(b, start, b_stride, workspace, panels_of_b + j * deep, columns - j, deep)
                for ic in range(first_row, last_row, block_high):
                    high = min(block_high, last_row - ic)
                    for i in range(0, high, rows):
                        start = p * a_stride + ic + i if trans_a else (ic + i) * a_stride + p
                        pack_rows(a, start, a_stride, workspace, i * deep, high - i, deep)
                    for j in range(0, columns, width):
                        from_b = panels_of_b + j * deep
                        remaining = columns - j
                        for i in range(0, high, rows):
                            at = (ic + i) * n + jc + j
                            if mirrors and jc + j >= ic + i + rows:
                                continue
                            if remaining >= width and high - i >= rows:
                                inner(
                                    workspace, i * deep, 0, workspace, from_b, 0,
                                    c, at, n, deep, first, rows, width,
                                )  # fmt: skip
                            elif remaining <= lanes:
                                narrow(
                                    workspace, i * deep, 0, workspace, from_b, 0,
                                    c, at, n, deep, first, high - i, remaining,
                                )  # fmt: skip
                            else:
                                edge(
                                    workspace, i * deep, 0, workspace, from_b, 0,
                                    c, at, n, deep, first, high - i, remaining,
                                )  # fmt: skip
                    if mirrors and block == k_blocks - 1:
                        mirror(c, n, ic, high, jc, columns)
                    if after != 0 and block == k_blocks - 1 and jc + block_columns >= last_column:
                        call_consumer(after, context, ic, ic + high)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        computed(a, b, c, m, n, k, 0, 0, workspace, begin, end)

    def handed(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, workspace: Any, begin: int, end: int
    ) -> None:
        computed(a, b, c, m, n, k, after, context, workspace, begin, end)

    return body, handed
