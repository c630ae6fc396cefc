"""The dot-product register tile of GEMM, as LLVM IR text.

``C[r, j] = sum over p of A[r, p] * B[j, p]`` with ``p`` contiguous in both operands: a matrix times a vector, or few
rows times a transposed matrix.  Vectors run along ``p``; each of the ``rows * columns`` accumulators has one horizontal
sum at the end.  The tile reads every element of B once for ``rows`` rows of A, in ``columns`` forward streams, and
packs nothing, which matters when memory bandwidth is the limit.
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import (
    TILE_ARGUMENTS,
    Text,
    declarations,
    element_size,
    element_type,
    float_literal,
)

#: Prefetch distance of the long operand: hardware prefetchers do not follow several long streams well.
PREFETCH_BYTES = 512
TILE_ACCUMULATORS = 4
"""Accumulators of a tile of one dot product, which break the dependence chain of its sum."""


@frozen_dataclass
class DotTile:
    """``C[rows, columns] = A @ B.T + beta * C``; arguments as for any tile.

    ``streams_a``: A, not B, is the long operand, which comes from memory and is prefetched. ``transposed_c``: C is
    stored transposed, element (r, j) at ``j * c_stride + r``. ``squares`` sums squared differences instead of products.
    """

    symbol: str
    dtype: str
    lanes: int
    rows: int
    columns: int
    beta: float
    streams_a: bool
    transposed_c: bool = False
    squares: bool = False

    def text(self, *, declared: bool = False) -> str:
        """Write the IR of ``symbol``, and the declarations that it needs unless the module has them."""
        return ("" if declared else declarations(self.dtype, self.lanes)) + _DotText(self).build()


class _DotText:
    """Writer of one tile, block by block."""

    def __init__(self, tile: DotTile) -> None:
        self.symbol, self.dtype, self.lanes, self.beta = tile.symbol, tile.dtype, tile.lanes, tile.beta
        self.rows, self.columns, self.streams_a = tile.rows, tile.columns, tile.streams_a
        self.transposed_c, self.squares = tile.transposed_c, tile.squares
        self.out = Text()
        self.kind, self.align = element_type(tile.dtype), element_size(tile.dtype)
        self.vector = f"<{tile.lanes} x {self.kind}>"
        self.suffix = f"v{tile.lanes}f{8 * self.align}"
        self.cells = [(r, j) for r in range(tile.rows) for j in range(tile.columns)]

    def build(self) -> str:
        out = self.out
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in TILE_ARGUMENTS)
        out.label("entry")
        for side in "abc":
            out.lines.append(f"  %{side}_start = getelementptr {self.kind}, ptr %{side}, i64 %{side}_offset")
        self.a_rows = [out.element(self.kind, "%a_start", out.times(r, "%a_stride")) for r in range(self.rows)]
        self.b_rows = [out.element(self.kind, "%b_start", out.times(j, "%b_stride")) for j in range(self.columns)]
        out.lines.append(f"  %whole = and i64 %k, -{self.lanes}")
        out.lines.append(f"  %left = and i64 %k, {self.lanes - 1}")
        begin, before = "0", [("zeroinitializer", "entry")]
        if len(self.cells) == 1:
            begin, before = "%p_begin", [("%{}_begin", "behind")]
            self._several()
        start = before[0][1]
        out.lines.append(f"  %has_whole = icmp slt i64 {begin}, %whole")
        out.line("br i1 %has_whole, label %main, label %middle")
        out.label("main")
        out.lines.append(f"  %p = phi i64 [ {begin}, %{start} ], [ %p_next, %main ]")
        self._phis("in", [*before, ("%{}_main", "main")])
        self._multiply("%p", None, "in", "main")
        out.lines.append(f"  %p_next = add nsw i64 %p, {self.lanes}")
        out.lines.append("  %more = icmp slt i64 %p_next, %whole")
        out.line("br i1 %more, label %main, label %middle")
        out.label("middle")
        self._phis("half", [*before, ("%{}_main", "main")])
        out.lines.append("  %has_left = icmp ne i64 %left, 0")
        out.line("br i1 %has_left, label %rest, label %done")
        out.label("rest")
        self._multiply("%whole", out.lanes_below("%left", self.lanes), "half", "rest")
        out.line("br label %done")
        out.label("done")
        self._phis("total", [("%{}_half", "middle"), ("%{}_rest", "rest")])
        self._finish()
        body = "\n".join(out.lines)
        return f"define void @{self.symbol}({arguments}) alwaysinline nounwind {{\n{body}\n}}\n"

    def _several(self) -> None:
        """Write the loop of a single dot product, unrolled into independent accumulators."""
        out, step = self.out, TILE_ACCUMULATORS * self.lanes
        out.lines.append(f"  %several = and i64 %k, -{step}")
        out.lines.append("  %has_several = icmp ne i64 %several, 0")
        out.line("br i1 %has_several, label %steps, label %behind")
        out.label("steps")
        out.lines.append("  %q = phi i64 [ 0, %entry ], [ %q_next, %steps ]")
        for i in range(TILE_ACCUMULATORS):
            self._phis(f"in{i}", [("zeroinitializer", "entry"), (f"%{{}}_step{i}", "steps")])
        for i in range(TILE_ACCUMULATORS):
            at = out.value(f"add i64 %q, {i * self.lanes}")
            self._multiply(at, None, f"in{i}", f"step{i}")
        (r, j) = self.cells[0]
        name = f"%acc{r}_{j}"
        sums = [f"{name}_step{i}" for i in range(TILE_ACCUMULATORS)]
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = [out.value(f"fadd {self.vector} {a}, {b}") for a, b in pairs]
        out.lines.append(f"  %q_next = add nsw i64 %q, {step}")
        out.lines.append("  %more_several = icmp slt i64 %q_next, %several")
        out.line("br i1 %more_several, label %steps, label %behind")
        out.label("behind")
        out.lines.append("  %p_begin = phi i64 [ 0, %entry ], [ %several, %steps ]")
        self._phis("begin", [("zeroinitializer", "entry"), (sums[0], "steps")])

    def _phis(self, suffix: str, incoming: list[tuple[str, str]]) -> None:
        for r, j in self.cells:
            name = f"acc{r}_{j}"
            pairs = ", ".join(f"[ {value.format(name)}, %{block} ]" for value, block in incoming)
            self.out.lines.append(f"  %{name}_{suffix} = phi {self.vector} {pairs}")

    def _load(self, base: str, at: str, mask: str | None) -> str:
        address = self.out.value(f"getelementptr {self.kind}, ptr {base}, i64 {at}")
        if mask is None:
            return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def _multiply(self, at: str, mask: str | None, before: str, after: str) -> None:
        """Emit one vector of every row: ``%acc*_after = %acc*_before + a * b``."""
        a_values = [self._load(row, at, mask) for row in self.a_rows]
        if mask is None:
            for row in self.a_rows if self.streams_a else self.b_rows:
                self._prefetch(row, at)
        for j in range(self.columns):
            b_value = self._load(self.b_rows[j], at, mask)
            for r in range(self.rows):
                left, right = a_values[r], b_value
                if self.squares:
                    left = right = self.out.value(f"fsub {self.vector} {left}, {right}")
                self.out.lines.append(
                    f"  %acc{r}_{j}_{after} = call {self.vector} @llvm.fmuladd.{self.suffix}("
                    f"{self.vector} {left}, {self.vector} {right}, {self.vector} %acc{r}_{j}_{before})"
                )

    def _prefetch(self, base: str, at: str) -> None:
        ahead = self.out.value(f"add i64 {at}, {PREFETCH_BYTES // self.align}")
        address = self.out.value(f"getelementptr {self.kind}, ptr {base}, i64 {ahead}")
        self.out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")

    def _finish(self) -> None:
        """Write C: the first block of k applies beta, later blocks accumulate."""
        out = self.out
        totals = {cell: total for r in range(self.rows) for cell, total in self._totals_of_row(r)}
        out.lines.append("  %is_first = icmp ne i64 %first, 0")
        out.line("br i1 %is_first, label %begin, label %later")
        for block, scale in (("begin", self.beta), ("later", 1.0)):
            out.label(block)
            for cell in self.cells:
                self._store(*cell, totals[cell], scale)
            out.line("ret void")

    def _totals_of_row(self, r: int) -> list[tuple[tuple[int, int], str]]:
        """Emit the horizontal sums of the accumulators of row r, four at a time where there are four."""
        result: list[tuple[tuple[int, int], str]] = []
        for first in range(0, self.columns, 4):
            cells = [(r, j) for j in range(first, min(first + 4, self.columns))]
            together = len(cells) == 4 and self.lanes >= 4
            totals = self._four_totals(cells) if together else [self._total(*cell) for cell in cells]
            result += zip(cells, totals, strict=True)
        return result

    def _total(self, r: int, j: int) -> str:
        return self.out.value(
            f"call reassoc {self.kind} @llvm.vector.reduce.fadd.{self.suffix}({self.kind} -0.0, "
            f"{self.vector} %acc{r}_{j}_total)"
        )

    def _four_totals(self, cells: list[tuple[int, int]]) -> list[str]:
        """Emit the horizontal sums of four accumulators: fold them into one vector, a quarter of it for each."""
        lanes, quarter = self.lanes, self.lanes // 4
        four = [f"%acc{r}_{j}_total" for r, j in cells]
        halves = [[*range(lanes // 2)], [*range(lanes // 2, lanes)]]
        low, high = ([*half, *(lanes + folded for folded in half)] for half in halves)
        two = [self._folded(four[i], four[i + 1], low, high) for i in (0, 2)]
        even = [folded for i in (0, 2) for folded in range(i * quarter, (i + 1) * quarter)]
        low = [*even, *(lanes + folded for folded in even)]
        folded = self._folded(two[0], two[1], low, [lane + quarter for lane in low])
        while quarter > 1:
            quarter //= 2
            folded = self._folded(folded, folded, [*range(lanes)], [lane ^ quarter for lane in range(lanes)])
        return [self.out.value(f"extractelement {self.vector} {folded}, i64 {i * (lanes // 4)}") for i in range(4)]

    def _folded(self, left: str, right: str, low: list[int], high: list[int]) -> str:
        """Emit the sum of two shuffles of the lanes of two vectors."""
        parts = [
            self.out.value(
                f"shufflevector {self.vector} {left}, {self.vector} {right}, "
                f"<{self.lanes} x i32> <{', '.join(f'i32 {lane}' for lane in picks)}>"
            )
            for picks in (low, high)
        ]
        return self.out.value(f"fadd {self.vector} {parts[0]}, {parts[1]}")

    def _store(self, r: int, j: int, total: str, scale: float) -> None:
        out, kind = self.out, self.kind
        along, across = (j, r) if self.transposed_c else (r, j)
        row = out.element(kind, "%c_start", out.times(along, "%c_stride"))
        address = out.element(kind, row, across)
        if scale != 0.0:
            old = out.value(f"load {kind}, ptr {address}")
            if scale != 1.0:
                old = out.value(f"fmul contract {kind} {old}, {float_literal(scale, self.dtype)}")
            total = out.value(f"fadd contract {kind} {total}, {old}")
        out.line(f"store {kind} {total}, ptr {address}")
