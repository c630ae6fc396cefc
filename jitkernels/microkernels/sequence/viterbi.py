"""One step of the Viterbi algorithm, as LLVM IR text: the best predecessors of some tags, in vectors of tags.

Score and index of the best predecessor of each tag stay in registers during the loop over predecessors. LLVM's
vectorizer vectorizes the inner loop instead, whose accesses are strided.
"""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import Text, declarations, element_size, element_type

STEP_ARGUMENTS = (
    ("ptr", "before"), ("ptr", "w"), ("ptr", "x"), ("ptr", "alpha"), ("ptr", "track"), ("i64", "tag"), ("i64", "live"),
)  # fmt: skip


def best_predecessors(dtype: str, lanes: int, vectors: int, *, masked: bool) -> IRFunction:
    """``alpha[i] = x[i] + max over j of before[j] + w[j * tag + i]`` for some vectors of tags; `track` receives j.

    `masked`: only the first `live` lanes exist. There is at least one predecessor.
    """
    symbol = f"viterbi_{'part' if masked else 'whole'}{vectors}"
    function: Any = ir_function(symbol, dtype, STEP_ARGUMENTS, _text(symbol, dtype, lanes, vectors, masked))
    arguments = list(function.arguments)
    arguments[4] = "int32_t*"
    return IRFunction(symbol, "void", tuple(arguments), function.text)


def _text(symbol: str, dtype: str, lanes: int, vectors: int, masked: bool) -> str:
    writer = _StepWriter(dtype, lanes, vectors, masked)
    writer.write()
    arguments = ", ".join(f"{c_type} {'noalias ' if c_type == 'ptr' else ''}%{name}" for c_type, name in STEP_ARGUMENTS)
    declared = f"declare void @llvm.masked.store.v{lanes}i32.p0({writer.numbers}, ptr, i32, {writer.bits})\n"
    head = f"define void @{symbol}({arguments}) noinline nounwind {{\n"
    return declarations(dtype, lanes) + declared + head + "\n".join(writer.out.lines) + "\n}\n"


class _StepWriter:
    """Writes the body of one step."""

    def __init__(self, dtype: str, lanes: int, vectors: int, masked: bool) -> None:
        self.kind, self.size, self.out = element_type(dtype), element_size(dtype), Text()
        self.lanes, self.masked, self.all_of = lanes, masked, range(vectors)
        self.vector, self.numbers, self.bits = f"<{lanes} x {self.kind}>", f"<{lanes} x i32>", f"<{lanes} x i1>"
        self.suffix = f"v{lanes}f{8 * self.size}"
        self.masks: list[str] = []

    def everywhere(self, value: str, element: str) -> str:
        """Append the broadcast of a number."""
        vector = f"<{self.lanes} x {element}>"
        first_lane = self.out.value(f"insertelement {vector} poison, {element} {value}, i64 0")
        return self.out.value(f"shufflevector {vector} {first_lane}, {vector} poison, {self.numbers} zeroinitializer")

    def loaded(self, base: str, v: int) -> str:
        """Append the load of a vector."""
        address = self.out.element(self.kind, base, v * self.lanes)
        if self.masked:
            return self.out.value(
                f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.size}, "
                f"{self.bits} {self.masks[v]}, {self.vector} zeroinitializer)"
            )
        return self.out.value(f"load {self.vector}, ptr {address}, align {self.size}")

    def write(self) -> None:
        out, kind, vector, numbers, bits = self.out, self.kind, self.vector, self.numbers, self.bits
        out.label("entry")
        if self.masked:
            limit = self.everywhere("%live", "i64")
            for v in self.all_of:
                counted = ", ".join(f"i64 {v * self.lanes + lane}" for lane in range(self.lanes))
                self.masks.append(out.value(f"icmp slt <{self.lanes} x i64> <{counted}>, {limit}"))
        start = self.everywhere(out.value(f"load {kind}, ptr %before"), kind)
        first = [out.value(f"fadd {vector} {start}, {self.loaded('%w', v)}") for v in self.all_of]
        out.line("br label %head")
        out.label("head")
        out.lines.append("  %j = phi i64 [ 1, %entry ], [ %j.next, %body ]")
        out.lines.append("  %row = phi ptr [ %w, %entry ], [ %row.next, %body ]")
        for v in self.all_of:
            out.lines.append(f"  %best{v} = phi {vector} [ {first[v]}, %entry ], [ %best.next{v}, %body ]")
            out.lines.append(f"  %from{v} = phi {numbers} [ zeroinitializer, %entry ], [ %from.next{v}, %body ]")
        out.lines.append("  %more = icmp slt i64 %j, %tag")
        out.line("br i1 %more, label %body, label %done")
        out.label("body")
        out.lines.append(f"  %row.next = getelementptr {kind}, ptr %row, i64 %tag")
        address = out.value(f"getelementptr {kind}, ptr %before, i64 %j")
        score = self.everywhere(out.value(f"load {kind}, ptr {address}"), kind)
        number = self.everywhere(out.value("trunc i64 %j to i32"), "i32")
        for v in self.all_of:
            total = out.value(f"fadd {vector} {score}, {self.loaded('%row.next', v)}")
            # The unordered comparison selects NaN, and keeps it.
            above = out.value(f"fcmp ugt {vector} {total}, %best{v}")
            ordered = out.value(f"fcmp ord {vector} %best{v}, %best{v}")
            better = out.value(f"and {bits} {above}, {ordered}")
            out.lines.append(f"  %best.next{v} = select {bits} {better}, {vector} {total}, {vector} %best{v}")
            out.lines.append(f"  %from.next{v} = select {bits} {better}, {numbers} {number}, {numbers} %from{v}")
        out.lines.append("  %j.next = add nsw i64 %j, 1")
        out.line("br label %head")
        self.store()

    def store(self) -> None:
        """Append the stores of scores and predecessors."""
        out = self.out
        out.label("done")
        for v in self.all_of:
            total = out.value(f"fadd {self.vector} %best{v}, {self.loaded('%x', v)}")
            scores = out.element(self.kind, "%alpha", v * self.lanes)
            track = out.element("i32", "%track", v * self.lanes)
            for value, of, pointer, name in (
                (total, self.vector, scores, self.suffix),
                (f"%from{v}", self.numbers, track, f"v{self.lanes}i32"),
            ):
                if self.masked:
                    out.line(
                        f"call void @llvm.masked.store.{name}.p0({of} {value}, ptr {pointer}, i32 4, "
                        f"{self.bits} {self.masks[v]})"
                    )
                else:
                    out.line(f"store {of} {value}, ptr {pointer}, align 4")
        out.line("ret void")
