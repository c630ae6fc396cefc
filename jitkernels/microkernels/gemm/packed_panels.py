"""Packed GEMM: one object for every large size (Goto & van de Geijn 2008; BLIS).

Loops, from outside: row blocks of C, blocks of k, column blocks of C, then panels of A and of B.  The kernel packs a
block of B (``depth x columns``) into panels that stay in the L2 cache. It packs a panel of A (``rows x depth``) before
its first use, so that this stays in L1 while the panels of B pass by, and the tiles of C follow one another in memory.
The register tile reads both in order: no strides of the caller cause cache-set conflicts, every load hits a page in the
TLB, and transposed operands cost the same as others. The panels of A of a row block are kept for other column blocks.

A matrix times its own transpose is symmetric: the kernel mirrors tiles below the diagonal to those above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import IRFunction, Range, inlined, written_by
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    Consumer,
    GemmExtents,
    Operands,
    ir_function,
    matmul_arguments,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import (
    PACK_ARGUMENTS,
    copy_panel,
    packing_slack,
    transpose_panel,
    transposed_lanes,
)
from jitkernels.microkernels.gemm.thresholds import MIRROR_DEPTH, PACKED_BAND_BYTES, PACKED_STEPS

is_same_address = IRFunction(
    "is_same_address",
    "int64",
    ("void*", "void*"),
    """define i64 @is_same_address(ptr %a, ptr %b) alwaysinline nounwind {
  %same = icmp eq ptr %a, %b
  %result = zext i1 %same to i64
  ret i64 %result
}
""",
)
"""Whether two arrays have the same address."""


@frozen_dataclass
class Blocking:
    """Blocking of the packed algorithm: a tile of ``rows x vectors`` registers, the largest blocks of k, m and n.

    `panel_cache`: the level of the cache that tiles prefetch the next panel of A into.
    """

    rows: int
    vectors: int
    depth: int
    block_rows: int
    block_columns: int
    panel_cache: int = 2


@frozen_dataclass
class PanelOffsets:
    """The blocking of a product, by vectors of so many lanes, and offsets in the workspace of panels, in elements."""

    lanes: int
    blocking: Blocking

    @property
    def width(self) -> int:
        """Columns of a panel of B."""
        return self.blocking.vectors * self.lanes

    @property
    def slack(self) -> int:
        """Elements behind a block that packing may overwrite."""
        return packing_slack(self.lanes, max(self.width, self.blocking.rows))

    @property
    def panels_of_b(self) -> int:
        """Where the panels of B begin in the workspace, behind those of A."""
        return aligned_elements(self.blocking.block_rows * self.blocking.depth + self.slack)


def aligned_elements(elements: int) -> int:
    """The least multiple of 64 elements that holds so many."""
    return -(-elements // 64) * 64


@frozen_dataclass
class PackedGemm(PanelOffsets):
    """What determines the code. split: whether threads split the "columns" or the "rows" of C."""

    dtype: str
    trans_a: bool
    trans_b: bool
    beta: float
    split: str


class PackedBlock(NamedTuple):
    """A block of C: rows and columns from the first on, and the `deep` steps along k from `p` on.

    `packed_row`: the place of its first row among the packed rows of A.
    """

    row: int
    high: int
    column: int
    wide: int
    p: int
    deep: int
    packed_row: int


def packed_kernel(gemm: PackedGemm, *, parallel: bool, followed: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``; threads split the columns or the rows of C.

    A kernel that is `followed` takes two more integers, see `jitkernels.microkernels.epilogue.tile_consumer`, and is
    split by rows.
    """
    size, blocking = element_size(gemm.dtype), gemm.blocking
    return RangeKernel(
        name="matmul_packed_followed" if followed else "matmul_packed",
        arguments=matmul_arguments(gemm.dtype, followed=followed),
        body=_body(gemm),
        extent=4 if gemm.split == "columns" else 3,
        block=gemm.width if gemm.split == "columns" else blocking.rows,
        parallel=parallel,
        workspace=(gemm.panels_of_b + blocking.depth * blocking.block_columns + gemm.slack) * size,
        workspace_dtype=gemm.dtype,
        vector_bytes=gemm.lanes * size,
        straight=True,
        names=NAMES,
    )


def _pack(gemm: PackedGemm) -> tuple[Any, Any]:
    """Make the functions that pack the panels of a block of A, and of a block of B."""
    trans_a, trans_b, rows, width, panels_of_b = (
        gemm.trans_a, gemm.trans_b, gemm.blocking.rows, gemm.width, gemm.panels_of_b
    )  # fmt: skip

    def panel(symbol: str, copies: bool, width: int) -> Any:
        writer, lanes = (copy_panel, gemm.lanes) if copies else (transpose_panel, transposed_lanes(gemm.lanes, width))
        return ir_function(symbol, gemm.dtype, PACK_ARGUMENTS, written_by(writer, symbol, gemm.dtype, lanes, width))

    pack_rows, pack_columns = panel("matmul_pack_a", trans_a, rows), panel("matmul_pack_b", not trans_b, width)
    # Panels of a row of B share cache lines where rows are not aligned, and rows compete for cache sets: a line that
    # one panel leaves is evicted before the next panel reads it, unless a few rows are packed for all panels in turn.
    steps = gemm.blocking.depth if trans_b else PACKED_STEPS

    @inlined()
    def pack_a(a: Any, stride: int, block: PackedBlock, i: int, workspace: Any) -> None:
        start = block.p * stride + block.row + i if trans_a else (block.row + i) * stride + block.p
        pack_rows(a, start, stride, workspace, (block.packed_row + i) * block.deep, block.high - i, block.deep)

    @inlined()
    def pack_b(b: Any, stride: int, block: PackedBlock, workspace: Any) -> None:
        for p in range(0, block.deep, steps):
            for j in range(0, block.wide, width):
                row, column, target = block.p + p, block.column + j, panels_of_b + j * block.deep + p * width
                start = column * stride + row if trans_b else row * stride + column
                pack_columns(b, start, stride, workspace, target, block.wide - j, min(steps, block.deep - p))

    return pack_a, pack_b


def _multiply(gemm: PackedGemm, pack_a: Any) -> Any:
    """Make the function that computes the tiles of a block of C from packed panels of B; it packs A if it `packs`."""
    lanes, rows, width, panels_of_b = gemm.lanes, gemm.blocking.rows, gemm.width, gemm.panels_of_b
    trans_a, narrower = gemm.trans_a, gemm.width - gemm.lanes

    def tile_function(symbol: str, vectors: int, edge: bool) -> Any:
        tile = Tile(
            symbol, gemm.dtype, lanes, rows, vectors, gemm.beta, a_by_column=True, a_stride=rows, b_stride=width,
            mask_c=edge, guard_rows=edge, prefetch=True, prefetch_panel=gemm.blocking.panel_cache,
        )  # fmt: skip
        return ir_function(symbol, gemm.dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    vectors = gemm.blocking.vectors
    inner = tile_function("matmul_inner", vectors, edge=False)
    edge = tile_function("matmul_edge", vectors, edge=True)
    narrow = tile_function("matmul_narrow", 1, edge=True)
    between = tile_function("matmul_between", vectors - 1, edge=True) if vectors > 2 else edge

    @inlined()
    def multiply(
        operands: Operands, extents: GemmExtents, block: PackedBlock, first: int, packs: bool, mirrors: bool,
        workspace: Any,
    ) -> None:  # fmt: skip
        n, deep, c = extents.n, block.deep, operands.c
        for i in range(0, block.high, rows):
            if packs:
                pack_a(operands.a, extents.m if trans_a else extents.k, block, i, workspace)
            from_a, live = (block.packed_row + i) * deep, block.high - i
            for j in range(0, block.wide, width):
                from_b, column, remaining = panels_of_b + j * deep, block.column + j, block.wide - j
                at = (block.row + i) * n + column
                if mirrors and column >= block.row + i + rows:
                    break
                if remaining >= width and live >= rows:
                    inner(workspace, from_a, 0, workspace, from_b, 0, c, at, n, deep, first, rows, width)
                elif remaining <= lanes:
                    narrow(workspace, from_a, 0, workspace, from_b, 0, c, at, n, deep, first, live, remaining)
                elif remaining <= narrower:
                    between(workspace, from_a, 0, workspace, from_b, 0, c, at, n, deep, first, live, remaining)
                else:
                    edge(workspace, from_a, 0, workspace, from_b, 0, c, at, n, deep, first, live, remaining)

    return multiply


def _mirror(gemm: PackedGemm) -> Any:
    """Make the function that mirrors the elements above the diagonal of a block of C that no tile computes."""
    rows, width = gemm.blocking.rows, gemm.width

    @inlined()
    def mirror(c: Any, n: int, block: PackedBlock) -> None:
        for i in range(block.row, block.row + block.high):
            first = i // width * width // rows * rows
            for j in range(block.column, min(block.column + block.wide, first)):
                c[j * n + i] = c[i * n + j]

    return mirror


@inlined()
def _equal_steps(extent: int, most: int, unit: int) -> int:
    """Return the step that splits an extent into equal blocks of at most `most`: a short last block costs as much."""
    blocks = max((extent + most - 1) // most, 1)
    return max((extent + blocks * unit - 1) // (blocks * unit) * unit, unit)


def _body(gemm: PackedGemm) -> Callable[..., None]:
    pack_a, pack_b = _pack(gemm)
    multiply, mirror = _multiply(gemm, pack_a), _mirror(gemm)
    width, rows, depth, block_rows, block_columns = (
        gemm.width, gemm.blocking.rows, gemm.blocking.depth, gemm.blocking.block_rows, gemm.blocking.block_columns
    )  # fmt: skip
    trans_a, trans_b, by_columns = gemm.trans_a, gemm.trans_b, gemm.split == "columns"
    may_mirror, band_elements = trans_a != trans_b and gemm.beta == 0, PACKED_BAND_BYTES // element_size(gemm.dtype)

    def body(operands: Operands, extents: GemmExtents, consumer: Consumer, workspace: Any, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        after = 0 if consumer.after is None else consumer.after
        context = 0 if consumer.context is None else consumer.context
        first_row = 0 if by_columns else part.begin
        last_row = m if by_columns else part.end
        first_column = part.begin if by_columns else 0
        last_column = part.end if by_columns else n
        deepest = _equal_steps(k, depth, 1)
        highest = _equal_steps(last_row - first_row, block_rows, rows)
        widest = _equal_steps(last_column - first_column, block_columns, width)
        mirrors = (
            may_mirror and m == n and after == 0 and k >= MIRROR_DEPTH and is_same_address(operands.a, operands.b) != 0
        )
        if n == 0 and after != 0:
            call_consumer(after, context, first_row, last_row)
        band = highest
        if after != 0:
            band = min(highest, max(band_elements // max(n, 1) // rows, 1) * rows)
        for ic in range(first_row, last_row, highest):
            high = min(highest, last_row - ic)
            for p in range(0, max(k, 1), deepest):
                deep = min(deepest, k - p)
                is_last = p + deepest >= k
                for jc in range(first_column, last_column, widest):
                    columns = min(widest, last_column - jc)
                    pack_b(operands.b, k if trans_b else n, PackedBlock(0, 0, jc, columns, p, deep, 0), workspace)
                    for i in range(0, high, band):
                        tiles = PackedBlock(ic + i, min(band, high - i), jc, columns, p, deep, i)
                        multiply(operands, extents, tiles, 1 if p == 0 else 0, jc == first_column, mirrors, workspace)
                        if mirrors and is_last:
                            mirror(operands.c, n, tiles)
                        if after != 0 and is_last and jc + widest >= last_column:
                            call_consumer(after, context, tiles.row, tiles.row + tiles.high)

    return body
