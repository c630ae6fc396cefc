"""Dot products of one vector with a few rows of a matrix, folded into one register, as LLVM IR text.

For a matrix that is read once, in place: each row has an accumulator, and the end folds all of them into one vector,
two accumulators into one at a time. The code peels the elements before the first cache line boundary, so that no later
load crosses a line, if the rows are a multiple of a line apart. The peeled elements are the last lanes of a vector that
begins before them: so each lane sums elements of one stride wherever the rows begin, only the lane's index differs, and
since the folds add halves to halves, the sums are the same to the last bit.
"""

from __future__ import annotations

from typing import Any

from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import Text, declarations, element_size, element_type

DOT_ARGUMENTS = (
    ("ptr", "a"), ("ptr", "w"), ("i64", "w_offset"), ("i64", "w_stride"), ("ptr", "c"), ("i64", "c_offset"),
    ("i64", "deep"), ("i64", "live"),
)  # fmt: skip


def dot_rows(symbol: str, dtype: str, lanes: int, rows: int) -> Any:
    """``c[r] = sum over p of a[p] * w[r * w_stride + p]`` for `rows` rows, a power of two of at most `lanes`.

    Rows beyond the last `live` row read that row instead.
    """
    return ir_function(symbol, dtype, DOT_ARGUMENTS, _Dots(symbol, dtype, lanes, rows).text())


class _Dots:
    """Writer of the function."""

    def __init__(self, symbol: str, dtype: str, lanes: int, rows: int) -> None:
        self.symbol, self.dtype, self.lanes, self.rows = symbol, dtype, lanes, rows
        self.kind, self.align = element_type(dtype), element_size(dtype)
        self.vector = f"<{lanes} x {self.kind}>"
        self.suffix = f"v{lanes}f{8 * self.align}"
        self.out = Text()

    def text(self) -> str:
        out, lanes, rows = self.out, self.lanes, range(self.rows)
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in DOT_ARGUMENTS)
        out.label("entry")
        start = out.value(f"getelementptr {self.kind}, ptr %w, i64 %w_offset")
        last = out.value("add nsw i64 %live, -1")
        at = [out.value(f"call i64 @llvm.smin.i64(i64 {last}, i64 {r})") for r in rows]
        away = [out.value(f"mul nsw i64 {row_offset}, %w_stride") for row_offset in at]
        starts = [out.value(f"getelementptr {self.kind}, ptr {start}, i64 {row_offset}") for row_offset in away]
        address = out.value(f"ptrtoint ptr {start} to i64")
        element = out.value(f"lshr i64 {address}, {self.align.bit_length() - 1}")
        before = out.value(f"sub i64 0, {element}")
        out.lines.append(f"  %to_line = and i64 {before}, {lanes - 1}")
        out.lines.append("  %head = call i64 @llvm.smin.i64(i64 %to_line, i64 %deep)")
        out.lines.append("  %body = sub nsw i64 %deep, %head")
        out.lines.append(f"  %left = and i64 %body, {lanes - 1}")
        out.lines.append("  %whole = sub nsw i64 %deep, %left")
        out.lines.append("  %has_head = icmp ne i64 %head, 0")
        out.line("br i1 %has_head, label %first, label %start")
        out.label("first")
        early = out.value(f"sub nsw i64 %to_line, {lanes}")
        skipped = out.value(f"sub nsw i64 0, {early}")
        behind = out.lanes_below(out.value(f"add nsw i64 {skipped}, %head"), lanes)
        live = out.value(f"xor <{lanes} x i1> {behind}, {out.lanes_below(skipped, lanes)}")
        self._multiply(starts, early, live, "zeroinitializer", "first")
        out.line("br label %start")
        out.label("start")
        self._phis("start", "zeroinitializer", "entry", "%s{}_first", "first")
        out.lines.append("  %has_whole = icmp slt i64 %head, %whole")
        out.line("br i1 %has_whole, label %main, label %middle")
        out.label("main")
        out.lines.append("  %p = phi i64 [ %head, %start ], [ %p_next, %main ]")
        self._phis("in", "%s{}_start", "start", "%s{}_main", "main")
        self._multiply(starts, "%p", None, "%s{}_in", "main")
        out.lines.append(f"  %p_next = add nsw i64 %p, {lanes}")
        out.lines.append("  %more = icmp slt i64 %p_next, %whole")
        out.line("br i1 %more, label %main, label %middle")
        out.label("middle")
        self._phis("half", "%s{}_start", "start", "%s{}_main", "main")
        out.lines.append("  %has_left = icmp ne i64 %left, 0")
        out.line("br i1 %has_left, label %rest, label %done")
        out.label("rest")
        self._multiply(starts, "%whole", out.lanes_below("%left", lanes), "%s{}_half", "rest")
        out.line("br label %done")
        out.label("done")
        self._phis("total", "%s{}_half", "middle", "%s{}_rest", "rest")
        self._store(self._folded([f"%s{r}_total" for r in rows]))
        out.line("ret void")
        body = "\n".join(out.lines)
        head = f"define void @{self.symbol}({arguments}) noinline nounwind {{\n"
        return declarations(self.dtype, lanes) + head + body + "\n}\n"

    def _phis(self, suffix: str, suffix_before: str, before: str, suffix_after: str, after: str) -> None:
        for r in range(self.rows):
            pairs = f"[ {suffix_before.format(r)}, %{before} ], [ {suffix_after.format(r)}, %{after} ]"
            self.out.lines.append(f"  %s{r}_{suffix} = phi {self.vector} {pairs}")

    def _load(self, base: str, at: str, mask: str | None) -> str:
        address = self.out.value(f"getelementptr {self.kind}, ptr {base}, i64 {at}")
        if mask is None:
            return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def _multiply(self, starts: list[str], at: str, mask: str | None, before: str, after: str) -> None:
        a = self._load("%a", at, mask)
        for r, start in enumerate(starts):
            self.out.lines.append(
                f"  %s{r}_{after} = call {self.vector} @llvm.fmuladd.{self.suffix}({self.vector} {a}, "
                f"{self.vector} {self._load(start, at, mask)}, {self.vector} {before.format(r)})"
            )

    def _added(self, left: str, right: str, low: list[int], high: list[int]) -> str:
        """Append the sum of two shuffles of the lanes of two vectors; the other lanes are undefined."""
        parts = []
        for picks in (low, high):
            padded = [*map(str, picks), *["poison"] * (self.lanes - len(picks))]
            parts.append(
                self.out.value(
                    f"shufflevector {self.vector} {left}, {self.vector} {right}, "
                    f"<{self.lanes} x i32> <{', '.join(f'i32 {pick}' for pick in padded)}>"
                )
            )
        return self.out.value(f"fadd {self.vector} {parts[0]}, {parts[1]}")

    def _folded(self, vectors: list[str]) -> str:
        """Append the fold of several vectors into one, whose first lanes are their horizontal sums."""
        lanes, width, parts = self.lanes, self.lanes, 1
        while len(vectors) > 1:
            half, starts = width // 2, list(range(0, 2 * lanes, width))
            low = [start + k for start in starts for k in range(half)]
            high = [start + half + k for start in starts for k in range(half)]
            vectors = [self._added(vectors[i], vectors[i + 1], low, high) for i in range(0, len(vectors), 2)]
            width, parts = half, 2 * parts
        while width > 1:
            half = width // 2
            low = [part * width + k for part in range(parts) for k in range(half)]
            vectors = [self._added(vectors[0], "poison", low, [lane + half for lane in low])]
            width = half
        return vectors[0]

    def _store(self, total: str) -> None:
        out, few = self.out, f"<{self.rows} x {self.kind}>"
        picks = ", ".join(f"i32 {r}" for r in range(self.rows))
        sums = out.value(f"shufflevector {self.vector} {total}, {self.vector} poison, <{self.rows} x i32> <{picks}>")
        address = out.value(f"getelementptr {self.kind}, ptr %c, i64 %c_offset")
        out.line(f"store {few} {sums}, ptr {address}, align {self.align}")
