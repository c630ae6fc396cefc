"""Dot product of bfloat16 vectors by VDPBF16PS, which adds products of pairs to float32 sums, as LLVM IR text.

Float32 sums of parts of a vector are added in double, so that long vectors lose no more than short ones. The
instruction flushes subnormal inputs and sums to zero, and rounds to nearest.
"""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.microkernels.gemm.microkernel import Text

LANES = 16
VECTOR_ELEMENTS = 2 * LANES
"""Elements per vector."""
DOT_CHAINS = 4
"""Independent accumulators, which hide the latency of the instruction."""
FLOAT32_SUM_ELEMENTS = 4096
"""Elements per float32 sum before it is added in double: 32 steps of every accumulator."""
_SUM, _NUMBERS, _WIDE = f"<{LANES} x float>", f"<{VECTOR_ELEMENTS} x bfloat>", f"<{LANES} x double>"
_DOT = "@llvm.x86.avx512bf16.dpbf16ps.512"
_MASKED = f"@llvm.masked.load.v{VECTOR_ELEMENTS}i16.p0"


def dot(symbol: str = "bfloat16_dot") -> IRFunction:
    """``float(x, y, n)``: the sum over i < n of x[i] * y[i]."""
    return IRFunction(symbol, "float", ("void*", "void*", "int64"), _DotWriter(symbol).text())


class _DotWriter:
    """Writer of the function."""

    def __init__(self, symbol: str) -> None:
        self.symbol, self.out = symbol, Text()

    def text(self) -> str:
        out = self.out
        self._parts()
        self._vectors()
        self._rest()
        body = "\n".join(out.lines)
        mask = f"<{VECTOR_ELEMENTS} x i1>"
        declared = (
            f"declare {_SUM} {_DOT}({_SUM}, {_NUMBERS}, {_NUMBERS})\n"
            f"declare <{VECTOR_ELEMENTS} x i16> {_MASKED}(ptr, i32, {mask}, <{VECTOR_ELEMENTS} x i16>)\n"
            f"declare float @llvm.vector.reduce.fadd.v{LANES}f32(float, {_SUM})\n"
            f"declare double @llvm.vector.reduce.fadd.v{LANES}f64(double, {_WIDE})\n"
            "declare i64 @llvm.smin.i64(i64, i64)\n"
        )
        return f"{declared}define float @{self.symbol}(ptr %x, ptr %y, i64 %n) noinline nounwind {{\n{body}\n}}\n"

    def _parts(self) -> None:
        """Write the loop over whole parts, each with all accumulators, added in double; then over the last part."""
        out, step = self.out, DOT_CHAINS * VECTOR_ELEMENTS
        out.label("entry")
        out.line("%many = and i64 %n, -" + str(step))
        out.line(f"%is_long = icmp sge i64 %n, {step}")
        out.line("br i1 %is_long, label %part, label %start")
        out.label("part")
        out.line("%first = phi i64 [ 0, %entry ], [ %last, %joined ]")
        out.line(f"%all = phi {_WIDE} [ zeroinitializer, %entry ], [ %total, %joined ]")
        out.line(f"%beyond = add nsw i64 %first, {FLOAT32_SUM_ELEMENTS}")
        out.line("%last = call i64 @llvm.smin.i64(i64 %beyond, i64 %many)")
        out.line("br label %loop")
        out.label("loop")
        out.line("%i = phi i64 [ %first, %part ], [ %next, %loop ]")
        for c in range(DOT_CHAINS):
            out.line(f"%in{c} = phi {_SUM} [ zeroinitializer, %part ], [ %sum{c}, %loop ]")
        for c in range(DOT_CHAINS):
            at = out.value(f"add nsw i64 %i, {c * VECTOR_ELEMENTS}")
            self._multiply(f"%sum{c}", f"%in{c}", self._load("%x", at), self._load("%y", at))
        out.line(f"%next = add nsw i64 %i, {step}")
        out.line("%more = icmp slt i64 %next, %last")
        out.line("br i1 %more, label %loop, label %joined")
        out.label("joined")
        pairs = [out.value(f"fadd {_SUM} %sum{c}, %sum{c + 1}") for c in range(0, DOT_CHAINS, 2)]
        both = out.value(f"fadd {_SUM} {pairs[0]}, {pairs[1]}")
        wide = out.value(f"fpext {_SUM} {both} to {_WIDE}")
        out.line(f"%total = fadd {_WIDE} %all, {wide}")
        out.line("%again = icmp slt i64 %last, %many")
        out.line("br i1 %again, label %part, label %start")

    def _vectors(self) -> None:
        """Write the remaining whole vectors, fewer than there are accumulators."""
        out = self.out
        out.label("start")
        out.line("%so_far = phi i64 [ 0, %entry ], [ %many, %joined ]")
        out.line(f"%long = phi {_WIDE} [ zeroinitializer, %entry ], [ %total, %joined ]")
        out.line("%whole = and i64 %n, -" + str(VECTOR_ELEMENTS))
        out.line("%any = icmp slt i64 %so_far, %whole")
        out.line("br i1 %any, label %single, label %tail")
        out.label("single")
        out.line("%j = phi i64 [ %so_far, %start ], [ %j_next, %single ]")
        out.line(f"%few_in = phi {_SUM} [ zeroinitializer, %start ], [ %few, %single ]")
        self._multiply("%few", "%few_in", self._load("%x", "%j"), self._load("%y", "%j"))
        out.line(f"%j_next = add nsw i64 %j, {VECTOR_ELEMENTS}")
        out.line("%j_more = icmp slt i64 %j_next, %whole")
        out.line("br i1 %j_more, label %single, label %tail")

    def _rest(self) -> None:
        """Write the tail behind a mask; then add all accumulators."""
        out = self.out
        out.label("tail")
        out.line(f"%half = phi {_SUM} [ zeroinitializer, %start ], [ %few, %single ]")
        out.line("%left = sub nsw i64 %n, %whole")
        out.line("%has_left = icmp ne i64 %left, 0")
        out.line("br i1 %has_left, label %rest, label %done")
        out.label("rest")
        count = out.value("trunc i64 %left to i16")
        mask = out.lanes_below(count, VECTOR_ELEMENTS, kind="i16")
        self._multiply("%behind", "%half", self._load("%x", "%whole", mask), self._load("%y", "%whole", mask))
        out.line("br label %done")
        out.label("done")
        out.line(f"%short = phi {_SUM} [ %half, %tail ], [ %behind, %rest ]")
        out.line("%is_joined = icmp ne i64 %so_far, 0")
        out.line("br i1 %is_joined, label %joining, label %alone")
        out.label("joining")
        wide = out.value(f"fpext {_SUM} %short to {_WIDE}")
        every = out.value(f"fadd {_WIDE} %long, {wide}")
        total = out.value(f"call reassoc double @llvm.vector.reduce.fadd.v{LANES}f64(double -0.0, {_WIDE} {every})")
        narrow = out.value(f"fptrunc double {total} to float")
        out.line(f"ret float {narrow}")
        out.label("alone")
        total = out.value(f"call reassoc float @llvm.vector.reduce.fadd.v{LANES}f32(float -0.0, {_SUM} %short)")
        out.line(f"ret float {total}")

    def _load(self, base: str, at: str, mask: str = "") -> str:
        out = self.out
        address = out.value(f"getelementptr i16, ptr {base}, i64 {at}")
        kind = f"<{VECTOR_ELEMENTS} x i16>"
        if mask:
            bits = out.value(
                f"call {kind} {_MASKED}(ptr {address}, i32 2, <{VECTOR_ELEMENTS} x i1> {mask}, {kind} zeroinitializer)"
            )
        else:
            bits = out.value(f"load {kind}, ptr {address}, align 2")
        return out.value(f"bitcast {kind} {bits} to {_NUMBERS}")

    def _multiply(self, result: str, before: str, x: str, y: str) -> None:
        self.out.line(f"{result} = call {_SUM} {_DOT}({_SUM} {before}, {_NUMBERS} {x}, {_NUMBERS} {y})")
