"""One step of the Viterbi algorithm, as LLVM IR text: the best predecessors of some tags, in vectors of tags.

Score and index of the best predecessor of each tag stay in registers during the loop over predecessors. LLVM's
vectorizer vectorizes the inner loop instead, whose accesses are strided.
"""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.microkernels.gemm.microkernel import Text, declarations, element_size, element_type
from jitkernels.microkernels.gemm.packed_panels import ir_function

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
    kind, size, out = element_type(dtype), element_size(dtype), Text()
    vector, numbers, bits = f"<{lanes} x {kind}>", f"<{lanes} x i32>", f"<{lanes} x i1>"
    suffix, all_of = f"v{lanes}f{8 * size}", range(vectors)

    def everywhere(value: str, element: str) -> str:
        first_lane = out.value(f"insertelement <{lanes} x {element}> poison, {element} {value}, i64 0")
        return out.value(
            f"shufflevector <{lanes} x {element}> {first_lane}, <{lanes} x {element}> poison, {numbers} zeroinitializer"
        )

    def loaded(base: str, v: int) -> str:
        address = out.element(kind, base, v * lanes)
        if masked:
            return out.value(
                f"call {vector} @llvm.masked.load.{suffix}.p0(ptr {address}, i32 {size}, {bits} {masks[v]}, "
                f"{vector} zeroinitializer)"
            )
        return out.value(f"load {vector}, ptr {address}, align {size}")

    out.label("entry")
    masks: list[str] = []
    if masked:
        limit = everywhere("%live", "i64")
        for v in all_of:
            counted = ", ".join(f"i64 {v * lanes + lane}" for lane in range(lanes))
            masks.append(out.value(f"icmp slt <{lanes} x i64> <{counted}>, {limit}"))
    start = everywhere(out.value(f"load {kind}, ptr %before"), kind)
    first = [out.value(f"fadd {vector} {start}, {loaded('%w', v)}") for v in all_of]
    out.line("br label %head")
    out.label("head")
    out.lines.append("  %j = phi i64 [ 1, %entry ], [ %j.next, %body ]")
    out.lines.append("  %row = phi ptr [ %w, %entry ], [ %row.next, %body ]")
    for v in all_of:
        out.lines.append(f"  %best{v} = phi {vector} [ {first[v]}, %entry ], [ %best.next{v}, %body ]")
        out.lines.append(f"  %from{v} = phi {numbers} [ zeroinitializer, %entry ], [ %from.next{v}, %body ]")
    out.lines.append("  %more = icmp slt i64 %j, %tag")
    out.line("br i1 %more, label %body, label %done")
    out.label("body")
    out.lines.append(f"  %row.next = getelementptr {kind}, ptr %row, i64 %tag")
    score = everywhere(out.value(f"load {kind}, ptr {out.value(f'getelementptr {kind}, ptr %before, i64 %j')}"), kind)
    number = everywhere(out.value("trunc i64 %j to i32"), "i32")
    for v in all_of:
        total = out.value(f"fadd {vector} {score}, {loaded('%row.next', v)}")
        # The unordered comparison selects NaN, and keeps it.
        above = out.value(f"fcmp ugt {vector} {total}, %best{v}")
        ordered = out.value(f"fcmp ord {vector} %best{v}, %best{v}")
        better = out.value(f"and {bits} {above}, {ordered}")
        out.lines.append(f"  %best.next{v} = select {bits} {better}, {vector} {total}, {vector} %best{v}")
        out.lines.append(f"  %from.next{v} = select {bits} {better}, {numbers} {number}, {numbers} %from{v}")
    out.lines.append("  %j.next = add nsw i64 %j, 1")
    out.line("br label %head")
    out.label("done")
    for v in all_of:
        total = out.value(f"fadd {vector} %best{v}, {loaded('%x', v)}")
        addresses = [out.element(kind, "%alpha", v * lanes), out.element("i32", "%track", v * lanes)]
        for value, of, pointer, name in (
            (total, vector, addresses[0], suffix),
            (f"%from{v}", numbers, addresses[1], f"v{lanes}i32"),
        ):
            if masked:
                out.line(
                    f"call void @llvm.masked.store.{name}.p0({of} {value}, ptr {pointer}, i32 4, {bits} {masks[v]})"
                )
            else:
                out.line(f"store {of} {value}, ptr {pointer}, align 4")
    out.line("ret void")
    arguments = ", ".join(f"{c_type} {'noalias ' if c_type == 'ptr' else ''}%{name}" for c_type, name in STEP_ARGUMENTS)
    declared = f"declare void @llvm.masked.store.v{lanes}i32.p0({numbers}, ptr, i32, {bits})\n"
    head = f"define void @{symbol}({arguments}) noinline nounwind {{\n"
    return declarations(dtype, lanes) + declared + head + "\n".join(out.lines) + "\n}\n"
