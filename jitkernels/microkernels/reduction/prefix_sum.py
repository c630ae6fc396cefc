"""Prefix sums (cumsum) of a run of elements, as LLVM IR: log-step scans in vectors, compensated from run to run.

The scan of a vector takes a step for each power of two in it; a run is several vectors. The loop-carried total of all
runs before is a number and its rounding error (Knuth's TwoSum), added last.
"""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import dtypes

SCAN_VECTORS = 4


def elements_of(dtype: str, lanes: int) -> int:
    """Return the elements per run."""
    return SCAN_VECTORS * lanes


def running_sums(dtype: str, lanes: int) -> IRFunction:
    """``(x, y, carried)``: y becomes the prefix sums of a run; `carried` holds the total and its rounding error."""
    element = dtypes.named(dtype)
    kind, symbol, width = element.llvm, f"running_sums_{dtype}_{lanes}", element.size
    vector = f"<{lanes} x {kind}>"
    lines = [f"define void @{symbol}(ptr %x, ptr %y, ptr %carried) alwaysinline nounwind {{"]
    number = 0

    def new(text: str) -> str:
        nonlocal number
        number += 1
        lines.append(f"  %v{number} = {text}")
        return f"%v{number}"

    def splat(value: str) -> str:
        first_lane = new(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return new(f"shufflevector {vector} {first_lane}, {vector} poison, <{lanes} x i32> zeroinitializer")

    lost_at = new(f"getelementptr {kind}, ptr %carried, i64 1")
    total = new(f"load {kind}, ptr %carried, align {width}")
    lost = new(f"load {kind}, ptr {lost_at}, align {width}")
    sums = []
    for i in range(SCAN_VECTORS):
        at = new(f"getelementptr {kind}, ptr %x, i64 {i * lanes}")
        value = new(f"load {vector}, ptr {at}, align {width}")
        step = 1
        while step < lanes:
            lane_picks = ", ".join(f"i32 {lane - step if lane >= step else lanes + lane}" for lane in range(lanes))
            moved = new(f"shufflevector {vector} {value}, {vector} splat ({kind} -0.0), <{lanes} x i32> <{lane_picks}>")
            value = new(f"fadd {vector} {value}, {moved}")
            step *= 2
        sums.append(value)
    before = ""
    high, low = splat(total), splat(lost)
    for i, value in enumerate(sums):
        if before:
            value = new(f"fadd {vector} {value}, {splat(before)}")
        before = new(f"extractelement {vector} {value}, i64 {lanes - 1}")
        near = new(f"fadd {vector} {low}, {value}")
        result = new(f"fadd {vector} {high}, {near}")
        at = new(f"getelementptr {kind}, ptr %y, i64 {i * lanes}")
        lines.append(f"  store {vector} {result}, ptr {at}, align {width}")
    added = new(f"fadd {kind} {total}, {before}")
    part = new(f"fsub {kind} {added}, {total}")
    rest = new(f"fsub {kind} {added}, {part}")
    one, other = new(f"fsub {kind} {total}, {rest}"), new(f"fsub {kind} {before}, {part}")
    error = new(f"fadd {kind} {one}, {other}")
    more = new(f"fadd {kind} {lost}, {error}")
    known = new(f"fcmp ord {kind} {more}, {more}")  # not where the sum is infinite
    new_lost = new(f"select i1 {known}, {kind} {more}, {kind} {lost}")
    lines += [f"  store {kind} {added}, ptr %carried", f"  store {kind} {new_lost}, ptr {lost_at}"]
    pointer = f"{element.c}*"
    return IRFunction(symbol, "void", (pointer,) * 3, "\n".join([*lines, "  ret void", "}", ""]))
