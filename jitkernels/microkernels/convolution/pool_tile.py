"""Pooling of windows in registers, as LLVM IR text: the maximum or the sum of their elements, channels in lanes.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import LINE_BYTES, Text, declarations, element_size, element_type

#: IR arguments of a tile, in order.  Strides and offsets are in elements; the sum is divided by `count`.
POOL_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "rows"), ("i64", "row_stride"), ("i64", "taps"), ("i64", "tap_stride"),
    ("ptr", "y"), ("i64", "y_offset"), ("i64", "live"), ("i64", "count"),
    ("i64", "windows"), ("i64", "x_window"), ("i64", "y_window"), ("i64", "ahead"),
)  # fmt: skip


@frozen_dataclass
class PoolTile:
    """Compile-time parameters of a function for `vectors` vectors of channels; `masked`: only `live` of them exist.

    It pools `windows` windows of the same taps, at least one, that lie `x_window` elements apart. Each prefetches the
    channels of the pixel `ahead` elements behind its own first tap, unless that is 0.
    Rows of a mean are added up one by one, and then their sums: in long windows that loses fewer digits.
    """

    symbol: str
    dtype: str
    lanes: int
    vectors: int
    mean: bool
    masked: bool = False

    def text(self) -> str:
        """Write the IR of `symbol`, and the declarations that it needs."""
        return declarations(self.dtype, self.lanes) + PoolText(self).build()


class PoolText:
    """Writer of one tile, block by block."""

    def __init__(self, tile: PoolTile) -> None:
        self.tile, self.out = tile, Text()
        self.kind, self.align = element_type(tile.dtype), element_size(tile.dtype)
        self.vector, self.mask = f"<{tile.lanes} x {self.kind}>", f"<{tile.lanes} x i1>"
        self.suffix = f"v{tile.lanes}f{8 * self.align}"
        lowest = "0xFFF0000000000000"  # minus infinity
        self.identity = "zeroinitializer" if tile.mean else f"<{', '.join([f'{self.kind} {lowest}'] * tile.lanes)}>"
        self.cells = range(tile.vectors)

    def build(self) -> str:
        out = self.out
        self.begin()
        out.line("br label %window")
        self.begin_window("entry")
        out.line("br i1 %has_any, label %row, label %done")
        self._rows()
        out.label("done")
        for j in self.cells:
            out.lines.append(f"  %all{j} = phi {self.vector} [ {self.identity}, %window ], [ %total{j}, %row_end ]")
        return self.end_window()

    def begin(self) -> None:
        """Append what comes before the first window."""
        out = self.out
        out.label("entry")
        for name in ("x", "y"):
            out.lines.append(f"  %{name}_first = getelementptr {self.kind}, ptr %{name}, i64 %{name}_offset")
        self.masks = [self._live(j) for j in self.cells] if self.tile.masked else []
        out.lines.append("  %has_rows = icmp sgt i64 %rows, 0")
        out.lines.append("  %has_taps = icmp sgt i64 %taps, 0")
        out.lines.append("  %has_any = and i1 %has_rows, %has_taps")
        if self.tile.mean:
            self.divisor = out.splat(self.kind, self.tile.lanes, out.value(f"sitofp i64 %count to {self.kind}"))

    def begin_window(self, before: str) -> None:
        """Append the begin of the loop over windows, behind the block `before`."""
        out = self.out
        out.label("window")
        out.lines.append(f"  %windows_left = phi i64 [ %windows, %{before} ], [ %windows_next, %prefetched ]")
        for name in ("x", "y"):
            out.lines.append(f"  %{name}_start = phi ptr [ %{name}_first, %{before} ], [ %{name}_next, %prefetched ]")

    def end_window(self) -> str:
        """Append what follows ``%all...``, the results of a window; return the function."""
        out, tile = self.out, self.tile
        self._store()
        self._prefetch()
        for name in ("x", "y"):
            out.lines.append(f"  %{name}_next = getelementptr {self.kind}, ptr %{name}_start, i64 %{name}_window")
        out.lines.append("  %windows_next = add nsw i64 %windows_left, -1")
        out.lines.append("  %windows_more = icmp ne i64 %windows_next, 0")
        out.line("br i1 %windows_more, label %window, label %return")
        out.label("return")
        out.line("ret void")
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in POOL_ARGUMENTS)
        head = f"define void @{tile.symbol}({arguments}) noinline nounwind {{"
        return "\n".join([head, *out.lines, "}\n"])

    def _rows(self) -> None:
        """Append the loops over the rows of the window, and over the taps of a row."""
        out, tile = self.out, self.tile
        out.label("row")
        out.lines.append("  %row_left = phi i64 [ %rows, %window ], [ %row_next, %row_end ]")
        out.lines.append("  %x_row = phi ptr [ %x_start, %window ], [ %x_row_next, %row_end ]")
        for j in self.cells:
            out.lines.append(f"  %best{j} = phi {self.vector} [ {self.identity}, %window ], [ %total{j}, %row_end ]")
        out.line("br label %tap")
        out.label("tap")
        out.lines.append("  %tap_left = phi i64 [ %taps, %row ], [ %tap_next, %tap ]")
        out.lines.append("  %x_tap = phi ptr [ %x_row, %row ], [ %x_tap_next, %tap ]")
        for j in self.cells:
            begin = "zeroinitializer" if tile.mean else f"%best{j}"
            out.lines.append(f"  %acc{j} = phi {self.vector} [ {begin}, %row ], [ %next{j}, %tap ]")
        for j in self.cells:
            value = self.load(out.element(self.kind, "%x_tap", j * tile.lanes), j)
            out.lines.append(f"  %next{j} = {self.combined(f'%acc{j}', value)}")
        self.next("tap", "row_end")
        out.label("row_end")
        for j in self.cells:
            total = (
                f"fadd {self.vector} %best{j}, %next{j}"
                if tile.mean
                else f"bitcast {self.vector} %next{j} to {self.vector}"
            )
            out.lines.append(f"  %total{j} = {total}")
        self.next("row", "done")

    def _prefetch(self) -> None:
        """Append the prefetch of a pixel of a row below: of a large image it is in an outer cache."""
        out, tile = self.out, self.tile
        out.lines.append("  %has_ahead = icmp ne i64 %ahead, 0")
        out.line("br i1 %has_ahead, label %prefetch, label %prefetched")
        out.label("prefetch")
        out.lines.append(f"  %x_ahead = getelementptr {self.kind}, ptr %x_start, i64 %ahead")
        for byte in range(0, tile.vectors * tile.lanes * self.align, LINE_BYTES):
            address = out.element(self.kind, "%x_ahead", byte // self.align)
            out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")
        out.line("br label %prefetched")
        out.label("prefetched")

    def combined(self, total: str, value: str) -> str:
        """Return the sum as an instruction, or the maximum, which keeps NaN of either side."""
        out, vector = self.out, self.vector
        if self.tile.mean:
            return f"fadd {vector} {total}, {value}"
        above = out.value(f"fcmp ogt {vector} {value}, {total}")
        larger = out.value(f"select {self.mask} {above}, {vector} {value}, {vector} {total}")
        unknown = out.value(f"fcmp uno {vector} {value}, {value}")
        return f"select {self.mask} {unknown}, {vector} {value}, {vector} {larger}"

    def next(self, name: str, after: str, stride: str = "") -> None:
        """Step on by a stride, count down, and begin the next iteration or go on."""
        out, stride = self.out, stride or f"%{name}_stride"
        out.lines.append(f"  %x_{name}_next = getelementptr {self.kind}, ptr %x_{name}, i64 {stride}")
        out.lines.append(f"  %{name}_next = add nsw i64 %{name}_left, -1")
        out.lines.append(f"  %{name}_more = icmp ne i64 %{name}_next, 0")
        out.line(f"br i1 %{name}_more, label %{name}, label %{after}")

    def _live(self, j: int) -> str:
        """Append the mask of the live lanes of vector j."""
        return self.out.lanes_below("%live", self.tile.lanes, j * self.tile.lanes)

    def load(self, address: str, j: int) -> str:
        if not self.tile.masked:
            return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"{self.mask} {self.masks[j]}, {self.vector} zeroinitializer)"
        )

    def _store(self) -> None:
        out, tile = self.out, self.tile
        for j in self.cells:
            value = out.value(f"fdiv {self.vector} %all{j}, {self.divisor}") if tile.mean else f"%all{j}"
            address = out.element(self.kind, "%y_start", j * tile.lanes)
            if tile.masked:
                out.line(
                    f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {address}, "
                    f"i32 {self.align}, {self.mask} {self.masks[j]})"
                )
            else:
                out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")
