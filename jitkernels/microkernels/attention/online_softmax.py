"""Online softmax of the scores of a panel of queries, between the two products of attention, as LLVM IR text.

Vectors run along the queries of the panel: scores are ``[keys, width]``, so that the maximum and the sum over keys are
elementwise on whole vectors, without horizontal reductions. For each query the code carries the running maximum and the
sum of exponentials relative to it; a larger maximum rescales the running sums (Milakov and Gimelshein 2018).
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import Text, declarations, element_size, element_type, float_literal
from jitkernels.microkernels.gemm.packing import _Packer, transpose_registers

WEIGH_ARGUMENTS = (
    ("ptr", "scores"), ("i64", "keys"), ("number", "factor"), ("ptr", "state"), ("ptr", "sums"), ("i64", "count"),
)  # fmt: skip
HIDE_ARGUMENTS = (("ptr", "scores"), ("i64", "keys"), ("i64", "behind"))
ADD_ARGUMENTS = (("ptr", "scores"), ("ptr", "mask"), ("i64", "keys"), ("number", "factor"))
STORE_ARGUMENTS = (
    ("ptr", "sums"), ("ptr", "state"), ("ptr", "out"), ("i64", "out_stride"), ("i64", "live"), ("i64", "count"),
)  # fmt: skip


@frozen_dataclass
class Panel:
    """A panel of queries: ``vectors`` of ``lanes`` each; a prefix names its functions."""

    dtype: str
    lanes: int
    vectors: int

    @property
    def width(self) -> int:
        return self.lanes * self.vectors

    def weigh(self, symbol: str) -> str:
        """IR that updates maximum and sum in `state` by scaled scores, and replaces the scores by exponentials.

        It rescales the first `count` rows of `sums` by the new maxima.
        """
        return _PanelText(self).weigh(symbol)

    def hide(self, symbol: str) -> str:
        """IR of the causal mask: the score of query w and key i becomes minus infinity where ``w < i + behind``."""
        return _PanelText(self).hide(symbol)

    def add(self, symbol: str) -> str:
        """IR that multiplies scores by a factor and adds a mask of the same layout."""
        return _PanelText(self).add(symbol)

    def fill(self, symbol: str) -> str:
        """IR of `add` whose scores are replaced by negative numbers of the mask."""
        return _PanelText(self).add(symbol, fills=True)

    def add_row(self, symbol: str) -> str:
        """IR that multiplies scores by a factor and adds a number to those of each key."""
        return _PanelText(self).add(symbol, of_keys=True)

    def fill_row(self, symbol: str) -> str:
        """IR of `add_row` whose scores are replaced by negative numbers."""
        return _PanelText(self).add(symbol, of_keys=True, fills=True)

    def store(self, symbol: str) -> str:
        """IR of ``out[w, r] = sums[r, w] / total[w]`` for r < count and w < live."""
        return _PanelText(self).store(symbol)


class _PanelText:
    """Writer of one function."""

    def __init__(self, panel: Panel) -> None:
        self.panel, self.lanes, self.out = panel, panel.lanes, Text()
        self.kind, self.size = element_type(panel.dtype), element_size(panel.dtype)
        self.vector = f"<{panel.lanes} x {self.kind}>"
        self.suffix = f"v{panel.lanes}f{8 * self.size}"
        self.numbers = range(panel.vectors)

    def function(self, symbol: str, arguments: tuple[tuple[str, str], ...], needed: str = "") -> str:
        listed = ", ".join(f"{self.kind if kind == 'number' else kind} %{name}" for kind, name in arguments)
        body = "\n".join(self.out.lines)
        return (
            f"{declarations(self.panel.dtype, self.lanes)}{needed}"
            f"define void @{symbol}({listed}) noinline nounwind {{\n{body}\n}}\n"
        )

    def address_of(self, base: str, row: str | int, j: int) -> str:
        """Append the address of vector j of a row of the width of the panel."""
        at = self.out.times(self.panel.width, str(row)) if isinstance(row, str) else row * self.panel.width
        return self.out.element(self.kind, self.out.element(self.kind, base, at), j * self.lanes)

    def load(self, base: str, row: str | int, j: int) -> str:
        return self.out.value(f"load {self.vector}, ptr {self.address_of(base, row, j)}, align {self.size}")

    def put(self, value: str, base: str, row: str | int, j: int) -> None:
        self.out.line(f"store {self.vector} {value}, ptr {self.address_of(base, row, j)}, align {self.size}")

    def everywhere(self, value: str, kind: str = "") -> str:
        """Append the broadcast of a number."""
        vector = f"<{self.lanes} x {kind or self.kind}>"
        first_lane = self.out.value(f"insertelement {vector} poison, {kind or self.kind} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.out.value(f"shufflevector {vector} {first_lane}, {vector} poison, {zeros}")

    def rows(self, name: str, before: str, carried: list[str]) -> None:
        """Open a loop over rows, closed by `next_row`; carried: initial values of loop-carried vectors."""
        self.out.label(name)
        self.out.lines.append(f"  %i_{name} = phi i64 [ 0, %{before} ], [ %next_{name}, %{name} ]")
        for j, value in enumerate(carried):
            pairs = f"[ {value}, %{before} ], [ %{name}{j}_out, %{name} ]"
            self.out.lines.append(f"  %{name}{j} = phi {self.vector} {pairs}")

    def next_row(self, name: str, count: str, after: str) -> None:
        self.out.lines.append(f"  %next_{name} = add nsw i64 %i_{name}, 1")
        self.out.lines.append(f"  %more_{name} = icmp slt i64 %next_{name}, {count}")
        self.out.line(f"br i1 %more_{name}, label %{name}, label %{after}")

    def weigh(self, symbol: str) -> str:
        from jitkernels.codegen.python.simd_library import Library
        from jitkernels.microkernels.maths.exp import exp_float32, exp_float64

        out, vector, library = self.out, self.vector, Library()
        exp = exp_float32 if self.panel.dtype == "float32" else exp_float64
        power, _ = library.called(exp, [self.panel.dtype], self.lanes)
        out.label("entry")
        factor = self.everywhere("%factor")
        before = [self.load("%state", 0, j) for j in self.numbers]
        totals = [self.load("%state", 1, j) for j in self.numbers]
        out.line("br label %most")
        self.rows("most", "entry", before)
        for j in self.numbers:
            score = out.value(f"fmul {vector} {self.load('%scores', '%i_most', j)}, {factor}")
            larger = out.value(f"fcmp ogt {vector} {score}, %most{j}")
            lanes = f"<{self.lanes} x i1> {larger}"
            out.lines.append(f"  %most{j}_out = select {lanes}, {vector} {score}, {vector} %most{j}")
        self.next_row("most", "%keys", "base")
        out.label("base")
        minus_infinity = f"splat ({self.kind} {float_literal(float('-inf'), self.panel.dtype)})"
        rescales, bases, starts = [], [], []
        for j in self.numbers:
            none = out.value(f"fcmp oeq {vector} %most{j}_out, {minus_infinity}")  # whose differences would be NaN
            base = out.value(f"select <{self.lanes} x i1> {none}, {vector} zeroinitializer, {vector} %most{j}_out")
            change = out.value(f"call {vector} {power}({vector} {out.value(f'fsub {vector} {before[j]}, {base}')})")
            bases.append(out.value(f"fneg {vector} {base}"))
            starts.append(out.value(f"fmul {vector} {totals[j]}, {change}"))
            rescales.append(change)
        out.line("br label %sum")
        self.rows("sum", "base", starts)
        for j in self.numbers:
            score = self.load("%scores", "%i_sum", j)
            off = out.value(
                f"call {vector} @llvm.fmuladd.{self.suffix}({vector} {score}, {vector} {factor}, {vector} {bases[j]})"
            )
            weight = out.value(f"call {vector} {power}({vector} {off})")
            self.put(weight, "%scores", "%i_sum", j)
            out.lines.append(f"  %sum{j}_out = fadd {vector} %sum{j}, {weight}")
        self.next_row("sum", "%keys", "settle")
        out.label("settle")
        for j in self.numbers:
            self.put(f"%most{j}_out", "%state", 0, j)
            self.put(f"%sum{j}_out", "%state", 1, j)
        out.lines.append("  %some = icmp sgt i64 %count, 0")
        out.line("br i1 %some, label %scale, label %done")
        self.rows("scale", "settle", [])
        for j in self.numbers:
            scaled = out.value(f"fmul {vector} {self.load('%sums', '%i_scale', j)}, {rescales[j]}")
            self.put(scaled, "%sums", "%i_scale", j)
        self.next_row("scale", "%count", "done")
        out.label("done")
        out.line("ret void")
        return self.function(symbol, WEIGH_ARGUMENTS, library.text)

    def hide(self, symbol: str) -> str:
        out, vector = self.out, self.vector
        minus_infinity = f"splat ({self.kind} {float_literal(float('-inf'), self.panel.dtype)})"
        out.label("entry")
        out.line("br label %key")
        self.rows("key", "entry", [])
        first = self.everywhere(out.value("add nsw i64 %i_key, %behind"), "i64")
        for j in self.numbers:
            lanes = ", ".join(f"i64 {j * self.lanes + lane}" for lane in range(self.lanes))
            hidden = out.value(f"icmp slt <{self.lanes} x i64> <{lanes}>, {first}")
            score = self.load("%scores", "%i_key", j)
            self.put(
                out.value(f"select <{self.lanes} x i1> {hidden}, {vector} {minus_infinity}, {vector} {score}"),
                "%scores", "%i_key", j,
            )  # fmt: skip
        self.next_row("key", "%keys", "done")
        out.label("done")
        out.line("ret void")
        return self.function(symbol, HIDE_ARGUMENTS)

    def add(self, symbol: str, *, of_keys: bool = False, fills: bool = False) -> str:
        out, vector = self.out, self.vector
        out.label("entry")
        factor = self.everywhere("%factor")
        out.line("br label %key")
        self.rows("key", "entry", [])
        own = ""
        if of_keys:
            own = self.everywhere(out.value(f"load {self.kind}, ptr {out.element(self.kind, '%mask', '%i_key')}"))
        for j in self.numbers:
            score, mask = self.load("%scores", "%i_key", j), own or self.load("%mask", "%i_key", j)
            masked = out.value(
                f"call {vector} @llvm.fmuladd.{self.suffix}({vector} {score}, {vector} {factor}, {vector} {mask})"
            )
            if fills:
                hidden = out.value(f"fcmp olt {vector} {mask}, zeroinitializer")
                masked = out.value(f"select <{self.lanes} x i1> {hidden}, {vector} {mask}, {vector} {masked}")
            self.put(masked, "%scores", "%i_key", j)
        self.next_row("key", "%keys", "done")
        out.label("done")
        out.line("ret void")
        return self.function(symbol, ADD_ARGUMENTS)

    def store(self, symbol: str) -> str:
        out, lanes, vector = self.out, self.lanes, self.vector
        make = _Packer(self.panel.dtype, lanes, lanes)
        make.out = out
        out.label("entry")
        one = f"splat ({self.kind} {float_literal(1.0, self.panel.dtype)})"
        shares = [out.value(f"fdiv {vector} {one}, {self.load('%state', 1, j)}") for j in self.numbers]
        out.line("br label %column")
        out.label("column")
        out.lines.append("  %r = phi i64 [ 0, %entry ], [ %next, %column ]")
        out.lines.append("  %left = sub nsw i64 %count, %r")
        inside = make.out.lanes_below("%left", make.lanes)
        last = out.value("add nsw i64 %count, -1")
        row_indices = [out.value(f"add nsw i64 %r, {i}") for i in range(lanes)]
        row_indices = [out.value(f"call i64 @llvm.smin.i64(i64 {row_index}, i64 {last})") for row_index in row_indices]
        for j in self.numbers:
            rows = [
                out.value(f"fmul {vector} {self.load('%sums', row_index, j)}, {shares[j]}") for row_index in row_indices
            ]
            for i, value in enumerate(transpose_registers(make, rows)):
                query = j * lanes + i
                live = out.value(f"icmp slt i64 {query}, %live")
                mask = out.value(f"select i1 {live}, <{lanes} x i1> {inside}, <{lanes} x i1> zeroinitializer")
                row = out.value(f"select i1 {live}, i64 {query}, i64 0")
                start = out.element(self.kind, "%out", out.value(f"mul nsw i64 {row}, %out_stride"))
                address = out.element(self.kind, start, "%r")
                out.line(
                    f"call void @llvm.masked.store.{self.suffix}.p0({vector} {value}, ptr {address}, "
                    f"i32 {self.size}, <{lanes} x i1> {mask})"
                )
        out.lines.append(f"  %next = add nsw i64 %r, {lanes}")
        out.lines.append("  %more = icmp slt i64 %next, %count")
        out.line("br i1 %more, label %column, label %done")
        out.label("done")
        out.line("ret void")
        return self.function(symbol, STORE_ARGUMENTS)
