"""Maximum of a row and index of its first occurrence, as LLVM IR in vectors.

LLVM vectorizes a floating-point maximum only without NaN. This code tests for NaN beside the maximum, two vectors by
one comparison.
"""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import cpu_target, dtypes

ACCUMULATORS = 4
"""Vectors per iteration, each with an accumulator of its own."""


def lanes_of(dtype: str, vector_bytes: int) -> int:
    return min(vector_bytes, cpu_target.target().vector_bytes) // dtypes.named(dtype).size


def largest(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n)``: the maximum of n elements, `ACCUMULATORS` vectors or more; NaN where there is one.

    The last iteration overlaps the one before, so that it is whole.
    """
    element, lanes = dtypes.named(dtype), lanes_of(dtype, vector_bytes)
    number, vector, flags = element.llvm, f"<{lanes} x {element.llvm}>", f"<{lanes} x i1>"
    kind, symbol = f"v{lanes}f{8 * element.size}", f"largest_{dtype}_{lanes}"
    nan = "0x7FF8000000000000"
    lines = []
    for v in range(ACCUMULATORS):
        lines += [
            f"  %i{v} = add nsw i64 %at, {v * lanes}",
            f"  %p{v} = getelementptr {number}, ptr %x, i64 %i{v}",
            f"  %x{v} = load {vector}, ptr %p{v}, align {element.size}",
            f"  %more{v} = fcmp ogt {vector} %x{v}, %m{v}",
            f"  %n{v} = select {flags} %more{v}, {vector} %x{v}, {vector} %m{v}",
        ]
    lines += _nan_flags(vector, flags)
    phis = "\n".join(
        f"  %m{v} = phi {vector} [ splat ({number} 0xFFF0000000000000), %start ], [ %n{v}, %step ]"
        for v in range(ACCUMULATORS)
    )
    joined = []
    for v in range(1, ACCUMULATORS):
        before = "%n0" if v == 1 else f"%j{v - 1}"
        joined += [
            f"  %c{v} = fcmp ogt {vector} {before}, %n{v}",
            f"  %j{v} = select {flags} %c{v}, {vector} {before}, {vector} %n{v}",
        ]
    text = f"""declare {number} @llvm.vector.reduce.fmax.{kind}({vector})
define {number} @{symbol}(ptr %x, i64 %n) alwaysinline nounwind {{
start:
  %last = sub nsw i64 %n, {ACCUMULATORS * lanes}
  br label %step
step:
  %i = phi i64 [ 0, %start ], [ %next, %step ]
  %bad = phi {flags} [ zeroinitializer, %start ], [ %w{ACCUMULATORS - 2}, %step ]
{phis}
  %is_last = icmp sgt i64 %i, %last
  %at = select i1 %is_last, i64 %last, i64 %i
{chr(10).join(lines)}
  %next = add nsw i64 %i, {ACCUMULATORS * lanes}
  %again = icmp slt i64 %next, %n
  br i1 %again, label %step, label %end, !llvm.loop !0
end:
{chr(10).join(joined)}
  %most = call nnan {number} @llvm.vector.reduce.fmax.{kind}({vector} %j{ACCUMULATORS - 1})
  %word = bitcast {flags} %w{ACCUMULATORS - 2} to i{lanes}
  %some = icmp ne i{lanes} %word, 0
  %result = select i1 %some, {number} {nan}, {number} %most
  ret {number} %result
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""
    return IRFunction(symbol, dtype, (f"{dtype}*", "int64"), text)


def first_index(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n, value)``: the index of the first occurrence of a value that is among n elements, a vector or more."""
    element, lanes = dtypes.named(dtype), lanes_of(dtype, vector_bytes)
    number, vector = element.llvm, f"<{lanes} x {element.llvm}>"
    symbol = f"first_index_{dtype}_{lanes}"
    text = f"""declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)
define i64 @{symbol}(ptr %x, i64 %n, {number} %value) alwaysinline nounwind {{
start:
  %last = sub nsw i64 %n, {lanes}
  %one = insertelement {vector} poison, {number} %value, i32 0
  %all = shufflevector {vector} %one, {vector} poison, <{lanes} x i32> zeroinitializer
  br label %step
step:
  %i = phi i64 [ 0, %start ], [ %next, %step ]
  %is_last = icmp sgt i64 %i, %last
  %at = select i1 %is_last, i64 %last, i64 %i
  %p = getelementptr {number}, ptr %x, i64 %at
  %y = load {vector}, ptr %p, align {element.size}
  %same = fcmp oeq {vector} %y, %all
  %word = bitcast <{lanes} x i1> %same to i{lanes}
  %next = add nsw i64 %i, {lanes}
  %none = icmp eq i{lanes} %word, 0
  %left = icmp slt i64 %next, %n
  %again = and i1 %none, %left
  br i1 %again, label %step, label %end
end:
  %lane = call i{lanes} @llvm.cttz.i{lanes}(i{lanes} %word, i1 false)
  %wide = zext i{lanes} %lane to i64
  %index = add nsw i64 %at, %wide
  ret i64 %index
}}
"""
    return IRFunction(symbol, "int64", (f"{dtype}*", "int64", dtype), text)


def strided_argmax(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, steps, apart, result)``: for each lane the maximum over steps, and the first step that has it.

    Each step reads a whole vector, and steps are `apart` elements from one another. The result holds the
    bits of the maxima, then the steps. Returns whether a NaN was read.
    """
    element, lanes = dtypes.named(dtype), lanes_of(dtype, vector_bytes)
    number, vector, flags = element.llvm, f"<{lanes} x {element.llvm}>", f"<{lanes} x i1>"
    indices, symbol = f"<{lanes} x i{8 * element.size}>", f"strided_argmax_{dtype}_{lanes}"
    phis = []
    for v in range(ACCUMULATORS):
        phis += [
            f"  %m{v} = phi {vector} [ splat ({number} 0xFFF0000000000000), %start ], [ %n{v}, %step ]",
            f"  %k{v} = phi {indices} [ zeroinitializer, %start ], [ %l{v}, %step ]",
        ]
    last = ACCUMULATORS - 1
    maximum, index = f"%j{last}", f"%h{last}"
    wide, first, second = "", "%bits", index
    if element.size == 4:
        wide = f"  %wide = zext {indices} %bits to <{lanes} x i64>\n  %far = zext {indices} {index} to <{lanes} x i64>"
        first, second = "%wide", "%far"
    text = f"""define i64 @{symbol}(ptr %x, i64 %steps, i64 %apart, ptr %out) alwaysinline nounwind {{
start:
  %last = sub nsw i64 %steps, 1
  br label %step
step:
  %i = phi i64 [ 0, %start ], [ %next, %step ]
  %bad = phi {flags} [ zeroinitializer, %start ], [ %w{ACCUMULATORS - 2}, %step ]
{chr(10).join(phis)}
{chr(10).join(_maxima_of_steps(dtype, lanes))}
  %next = add nsw i64 %i, {ACCUMULATORS}
  %again = icmp slt i64 %next, %steps
  br i1 %again, label %step, label %end, !llvm.loop !0
end:
{chr(10).join(_first_maxima(vector, indices, flags))}
  %bits = bitcast {vector} {maximum} to {indices}
{wide}
  %behind = getelementptr i64, ptr %out, i64 {lanes}
  store <{lanes} x i64> {first}, ptr %out, align 8
  store <{lanes} x i64> {second}, ptr %behind, align 8
  %word = bitcast {flags} %w{ACCUMULATORS - 2} to i{lanes}
  %some = icmp ne i{lanes} %word, 0
  %result = zext i1 %some to i64
  ret i64 %result
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""
    return IRFunction(symbol, "int64", (f"{dtype}*", "int64", "int64", "int64*"), text)


def _maxima_of_steps(dtype: str, lanes: int) -> list[str]:
    """Write one iteration: a vector of each of `ACCUMULATORS` steps, compared with the maxima so far, and with NaN."""
    element = dtypes.named(dtype)
    number, vector, flags = element.llvm, f"<{lanes} x {element.llvm}>", f"<{lanes} x i1>"
    integer = f"i{8 * element.size}"
    indices, lines = f"<{lanes} x {integer}>", []
    for v in range(ACCUMULATORS):
        lines += [
            f"  %b{v} = add nsw i64 %i, {v}",
            f"  %o{v} = icmp slt i64 %b{v}, %last",
            f"  %s{v} = select i1 %o{v}, i64 %b{v}, i64 %last",
            f"  %at{v} = mul nsw i64 %s{v}, %apart",
            f"  %p{v} = getelementptr {number}, ptr %x, i64 %at{v}",
            f"  %x{v} = load {vector}, ptr %p{v}, align {element.size}",
            f"  %more{v} = fcmp ogt {vector} %x{v}, %m{v}",
            f"  %n{v} = select {flags} %more{v}, {vector} %x{v}, {vector} %m{v}",
            f"  %t{v} = {f'trunc i64 %s{v} to i32' if integer == 'i32' else f'add i64 %s{v}, 0'}",
            f"  %y{v} = insertelement {indices} poison, {integer} %t{v}, i32 0",
            f"  %z{v} = shufflevector {indices} %y{v}, {indices} poison, <{lanes} x i32> zeroinitializer",
            f"  %l{v} = select {flags} %more{v}, {indices} %z{v}, {indices} %k{v}",
        ]
    return lines + _nan_flags(vector, flags)


def _first_maxima(vector: str, indices: str, flags: str) -> list[str]:
    """Write the maxima of all accumulators, and of equal ones the lowest step: `%j` and `%h` of the last one."""
    lines, maximum, index = [], "%n0", "%l0"
    for v in range(1, ACCUMULATORS):
        lines += [
            f"  %c{v} = fcmp ogt {vector} %n{v}, {maximum}",
            f"  %d{v} = fcmp oeq {vector} %n{v}, {maximum}",
            f"  %e{v} = icmp slt {indices} %l{v}, {index}",
            f"  %f{v} = and {flags} %d{v}, %e{v}",
            f"  %g{v} = or {flags} %c{v}, %f{v}",
            f"  %j{v} = select {flags} %g{v}, {vector} %n{v}, {vector} {maximum}",
            f"  %h{v} = select {flags} %g{v}, {indices} %l{v}, {indices} {index}",
        ]
        maximum, index = f"%j{v}", f"%h{v}"
    return lines


def _nan_flags(vector: str, flags: str) -> list[str]:
    """Write the comparisons with NaN of the vectors `%x` of one iteration, two by one, joined with `%bad`."""
    lines = []
    for v in range(0, ACCUMULATORS, 2):
        before = "%bad" if v == 0 else f"%w{v - 2}"
        lines += [f"  %u{v} = fcmp uno {vector} %x{v}, %x{v + 1}", f"  %w{v} = or {flags} {before}, %u{v}"]
    return lines
