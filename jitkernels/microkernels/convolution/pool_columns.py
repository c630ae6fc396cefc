"""Pooling of overlapping windows of three columns: each column is combined once, and carried to the next window.

Windows of 3 x 3 pixels at stride 1 load three pixels each in place of nine, and at stride 2 six. LLVM IR text, like
`pool_tile`, whose arguments and loop over windows these functions have.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.pool_tile import PoolText, PoolTile
from jitkernels.microkernels.gemm.microkernel import declarations

COLUMNS = 3
"""Columns of a window: at strides of 1 and 2, two or one of them are the next window's, too."""


@frozen_dataclass
class ColumnTile(PoolTile):
    """As `PoolTile`, for windows of `COLUMNS` adjacent columns, `stride` pixels apart, with at least one row."""

    stride: int = 1

    def text(self) -> str:
        """Write the IR of `symbol`, and the declarations that it needs."""
        return declarations(self.dtype, self.lanes) + _ColumnText(self).build()


class _ColumnText(PoolText):
    """Writer of one tile: the first columns of the first window, then the others, window by window."""

    tile: ColumnTile

    def build(self) -> str:
        out, tile = self.out, self.tile
        shared = COLUMNS - tile.stride
        self.begin()
        self._columns("head", "entry", "%x_first", range(shared))
        out.line("br label %window")
        self.begin_window("head_end")
        names = [f"shared_{k}" if k < shared else f"new_{k}" for k in range(COLUMNS)]
        for k in range(shared):
            for j in self.cells:
                carried = f"[ %head_{k}_{j}, %head_end ], [ %{names[k + tile.stride]}_{j}, %prefetched ]"
                out.lines.append(f"  %{names[k]}_{j} = phi {self.vector} {carried}")
        self._columns("new", "window", "%x_start", range(shared, COLUMNS))
        for j in self.cells:
            two = out.value(self.combined(f"%{names[0]}_{j}", f"%{names[1]}_{j}"))
            out.lines.append(f"  %all{j} = {self.combined(two, f'%{names[2]}_{j}')}")
        return self.end_window()

    def _columns(self, name: str, before: str, base: str, columns: Sequence[int]) -> None:
        """Append the loop over rows that combines some columns of the window at `base`: ``%name_column_vector``."""
        out, cells = self.out, [(k, j) for k in columns for j in self.cells]
        out.line(f"br label %{name}")
        out.label(name)
        out.lines.append(f"  %{name}_left = phi i64 [ %rows, %{before} ], [ %{name}_next, %{name} ]")
        out.lines.append(f"  %x_{name} = phi ptr [ {base}, %{before} ], [ %x_{name}_next, %{name} ]")
        for k, j in cells:
            carried = f"[ {self.identity}, %{before} ], [ %{name}_{k}_{j}, %{name} ]"
            out.lines.append(f"  %{name}_acc{k}_{j} = phi {self.vector} {carried}")
        for k, j in cells:
            column = out.element(self.kind, f"%x_{name}", out.times(k, "%tap_stride"))
            value = self.load(out.element(self.kind, column, j * self.tile.lanes), j)
            out.lines.append(f"  %{name}_{k}_{j} = {self.combined(f'%{name}_acc{k}_{j}', value)}")
        self.next(name, f"{name}_end", "%row_stride")
        out.label(f"{name}_end")
