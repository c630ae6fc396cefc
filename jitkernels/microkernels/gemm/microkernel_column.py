"""A column of register tiles: one panel of C from top to bottom, as LLVM IR text.

Tiles of two heights cover any number of rows: ``tall`` ones first, then ``short`` ones.  All strides are
literals, and the tiles are inlined, so that every address in them is one register plus a constant.
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.microkernel import Tile, declarations

#: IR arguments of a column of tiles.  It covers the rows ``high`` to ``low`` of C; ``high`` starts a tile.
COLUMN_ARGUMENTS = (
    ("ptr", "a"), ("i64", "a_offset"), ("ptr", "b"), ("i64", "b_offset"), ("ptr", "c"), ("i64", "c_offset"),
    ("i64", "deep"), ("i64", "first"), ("i64", "high"), ("i64", "low"),
)  # fmt: skip


@frozen_dataclass
class TileColumn:
    """``tall`` tiles up to row ``tall_rows``, ``short`` ones below; row r of A lies at ``r * a_row``."""

    symbol: str
    tall: Tile | DotTile
    short: Tile | DotTile
    tall_rows: int
    a_row: int
    a_stride: int
    b_stride: int
    c_stride: int
    columns: int

    def text(self) -> str:
        """The IR of the function ``symbol`` and of the tiles in it."""
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in COLUMN_ARGUMENTS)
        tiles = {tile.symbol: tile.text(declared=True) for tile in (self.tall, self.short)}
        return (
            f"{declarations(self.tall.dtype, self.tall.lanes)}{''.join(tiles.values())}"
            f"define void @{self.symbol}({arguments}) alwaysinline nounwind {{\n"
            "entry:\n"
            f"  %tall_to = call i64 @llvm.smin.i64(i64 %low, i64 {self.tall_rows})\n"
            "  %has_tall = icmp slt i64 %high, %tall_to\n"
            "  br i1 %has_tall, label %tall, label %middle\n"
            f"{self._loop('tall', self.tall, 'entry', 'middle')}"
            "middle:\n"
            f"  %below = icmp sgt i64 %high, {self.tall_rows}\n"
            f"  %short_from = select i1 %below, i64 %high, i64 {self.tall_rows}\n"
            "  %has_short = icmp slt i64 %short_from, %low\n"
            "  br i1 %has_short, label %short, label %done\n"
            f"{self._loop('short', self.short, 'middle', 'done')}"
            "done:\n"
            "  ret void\n"
            "}\n"
        )

    def _loop(self, name: str, tile: Tile | DotTile, before: str, after: str) -> str:
        start, end = {"tall": ("%high", "%tall_to"), "short": ("%short_from", "%low")}[name]
        return (
            f"{name}:\n"
            f"  %i_{name} = phi i64 [ {start}, %{before} ], [ %next_{name}, %{name} ]\n"
            f"  %a_row_{name} = mul nsw i64 %i_{name}, {self.a_row}\n"
            f"  %a_at_{name} = add nsw i64 %a_offset, %a_row_{name}\n"
            f"  %c_row_{name} = mul nsw i64 %i_{name}, {self.c_stride}\n"
            f"  %c_at_{name} = add nsw i64 %c_offset, %c_row_{name}\n"
            f"  call void @{tile.symbol}(ptr %a, i64 %a_at_{name}, i64 {self.a_stride}, "
            f"ptr %b, i64 %b_offset, i64 {self.b_stride}, ptr %c, i64 %c_at_{name}, i64 {self.c_stride}, "
            f"i64 %deep, i64 %first, i64 {tile.rows}, i64 {self.columns})\n"
            f"  %next_{name} = add nsw i64 %i_{name}, {tile.rows}\n"
            f"  %more_{name} = icmp slt i64 %next_{name}, {end}\n"
            f"  br i1 %more_{name}, label %{name}, label %{after}\n"
        )
