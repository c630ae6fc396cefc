"""Floats as whole numbers of one or two digits, in the order in which 8-bit weights are multiplied by them.

Floats are made multiples of a power of two, the unit of the 32 that they stand among, of at most 16 bits with the
sign; each multiple is h * 256 + l, digits of 8 bits with signs. A block of 64 floats has their h and their l as they
follow one another, then what each four of them add up to, and the unit of each four. With one digit multiples have 8
bits.
"""

from jitkernels.loops.int4_arranged import CARRY, LARGEST, SMALLEST
from jitkernels.loops.int4_writer import FLOATS, LANES, MASK, WORDS, all_of
from jitkernels.loops.tile import Text
from jitkernels.native.source import IRFunction

LOADED = 64
"""Weights, and floats, of a block."""
PARTS = LOADED // LANES
SYMBOL = "int8_arranged"
BYTES_TYPE, NUMBERS_TYPE = f"<{LOADED} x i8>", f"<{LOADED} x i32>"


def bytes_of_block(digits: int) -> int:
    """So many digits of 64 numbers, and what is with them."""
    return 64 * (digits + 2)


def arrange_digits(*, digits: int, shifted: bool) -> IRFunction:
    """``arrange(a, k, blocks, to)``: k floats in blocks; 0 unless some are not finite or near to the ends of floats.

    shifted: there are zero points, by which sums are multiplied later; otherwise they are multiplied by 128 here.
    """
    out = Text()
    out.label("entry")
    out.line("%some = icmp sgt i64 %blocks, 0")
    out.line("br i1 %some, label %loop, label %none")
    out.label("none")
    out.line("ret i64 0")
    out.label("loop")
    out.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
    out.line("%unusual = phi i1 [ false, %entry ], [ %found, %loop ]")
    first = out.value(f"mul nsw i64 %i, {LOADED}")
    left = out.value(f"sub nsw i64 %k, {first}")
    source = out.element("float", "%a", first)
    to = out.element("i8", "%to", out.value(f"mul nsw i64 %i, {bytes_of_block(digits)}"))
    parts = [_loaded(out, source, left, part) for part in range(PARTS)]
    _digits(out, _multiples(out, parts, to, digits), to, digits, shifted)
    out.line("%next = add nuw nsw i64 %i, 1")
    out.line("%more = icmp slt i64 %next, %blocks")
    out.line("br i1 %more, label %loop, label %done")
    out.label("done")
    out.line("%result = zext i1 %found to i64")
    out.line("ret i64 %result")
    body = "\n".join(out.lines)
    text = (
        f"declare {FLOATS} @llvm.masked.load.v16f32.p0(ptr, i32, {MASK}, {FLOATS})\n"
        f"declare {WORDS} @llvm.smax.v16i32({WORDS}, {WORDS})\n"
        f"declare i32 @llvm.vector.reduce.smax.v16i32({WORDS})\n"
        "declare i32 @llvm.smax.i32(i32, i32)\ndeclare i32 @llvm.smin.i32(i32, i32)\n"
        f"declare {WORDS} @llvm.x86.avx512.mask.cvtps2dq.512({FLOATS}, {WORDS}, i16, i32)\n"
        f"declare {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS}, {WORDS}, {WORDS})\n"
        f"define i64 @{SYMBOL}(ptr %a, i64 %k, i64 %blocks, ptr %to) noinline nounwind {{\n{body}\n}}\n"
    )
    return IRFunction(SYMBOL, "int64", ("void*", "int64", "int64", "void*"), text)


def _same(out: Text, kind: str, value: str) -> str:
    vector = f"<{LANES} x {kind}>"
    one = out.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
    return out.value(f"shufflevector {vector} {one}, {vector} poison, {WORDS} zeroinitializer")


def _loaded(out: Text, source: str, left: str, part: int) -> str:
    """Sixteen floats, 0 behind the last one."""
    ends = _same(out, "i64", left)
    numbers = ", ".join(f"i64 {part * LANES + lane}" for lane in range(LANES))
    live = out.value(f"icmp slt <{LANES} x i64> <{numbers}>, {ends}")
    return out.value(
        f"call {FLOATS} @llvm.masked.load.v16f32.p0(ptr {out.element('float', source, part * LANES)}, i32 4, "
        f"{MASK} {live}, {FLOATS} zeroinitializer)"
    )


def _multiples(out: Text, parts: list[str], to: str, digits: int) -> list[str]:
    """Vectors as multiples of the units of their halves, which are stored."""
    found, units, beyond, kept_bits = [], [], [], 8 * digits - 2
    for half in (parts[: PARTS // 2], parts[PARTS // 2 :]):
        both = []
        for part in half:
            bits = out.value(f"bitcast {FLOATS} {part} to {WORDS}")
            both.append(out.value(f"and {WORDS} {bits}, {all_of('i32', 0x7FFFFFFF)}"))
        most = out.value(f"call {WORDS} @llvm.smax.v16i32({WORDS} {both[0]}, {WORDS} {both[1]})")
        largest = out.value(f"call i32 @llvm.vector.reduce.smax.v16i32({WORDS} {most})")
        exponent = out.value(f"lshr i32 {out.value(f'add i32 {largest}, {CARRY}')}, 23")
        kept = out.value(f"call i32 @llvm.smax.i32(i32 {exponent}, i32 {SMALLEST})")
        kept = out.value(f"call i32 @llvm.smin.i32(i32 {kept}, i32 {LARGEST})")
        differs, something = (
            out.value(f"icmp ne i32 {kept}, {exponent}"),
            out.value(f"icmp ne i32 {largest}, 0"),
        )
        beyond.append(out.value(f"and i1 {differs}, {something}"))
        inverse = out.value(f"shl i32 {out.value(f'sub i32 {254 + kept_bits}, {kept}')}, 23")
        factor = _same(out, "float", out.value(f"bitcast i32 {inverse} to float"))
        unit = out.value(f"shl i32 {out.value(f'sub i32 {kept}, {kept_bits}')}, 23")
        units.append(_same(out, "i32", unit))
        for part in half:
            quotient = out.value(f"fmul {FLOATS} {part}, {factor}")
            found.append(
                out.value(
                    f"call {WORDS} @llvm.x86.avx512.mask.cvtps2dq.512({FLOATS} {quotient}, {WORDS} zeroinitializer, "
                    "i16 -1, i32 4)"
                )
            )
    places = ", ".join(f"i32 {lane if lane < LANES // 2 else lane + LANES}" for lane in range(LANES))
    every = out.value(f"shufflevector {WORDS} {units[0]}, {WORDS} {units[1]}, {WORDS} <{places}>")
    out.line(f"store {WORDS} {every}, ptr {out.element('i8', to, 64 * (digits + 1))}, align 64")
    here = out.value(f"or i1 {beyond[0]}, {beyond[1]}")
    out.line(f"%found = or i1 %unusual, {here}")
    return found


def _digits(out: Text, multiples: list[str], to: str, digits: int, shifted: bool) -> None:
    """The last digit first; then the sums of fours."""
    total = "zeroinitializer"
    found = []
    for digit in reversed(range(digits)):
        found.append(_bytes(out, multiples))
        out.line(f"store {WORDS} {found[-1]}, ptr {out.element('i8', to, 64 * digit)}, align 64")
        if digit:
            rounded = [out.value(f"add {WORDS} {each}, {all_of('i32', 128)}") for each in multiples]
            multiples = [out.value(f"ashr {WORDS} {each}, {all_of('i32', 8)}") for each in rounded]
    for digit_bytes in reversed(found):
        if total != "zeroinitializer":
            total = out.value(f"shl {WORDS} {total}, {all_of('i32', 8)}")
        total = out.value(
            f"call {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS} {total}, {WORDS} {all_of('i32', 0x01010101)}, "
            f"{WORDS} {digit_bytes})"
        )
    if not shifted:
        total = out.value(f"shl {WORDS} {total}, {all_of('i32', 7)}")
    out.line(f"store {WORDS} {total}, ptr {out.element('i8', to, 64 * digits)}, align 64")


def _bytes(out: Text, multiples: list[str]) -> str:
    """The last 8 bits of 64 numbers, as words."""
    pairs, wide = [], f"<{2 * LANES} x i32>"
    for left, right in (multiples[:2], multiples[2:]):
        places = ", ".join(f"i32 {i}" for i in range(2 * LANES))
        pairs.append(out.value(f"shufflevector {WORDS} {left}, {WORDS} {right}, {wide} <{places}>"))
    places = ", ".join(f"i32 {i}" for i in range(LOADED))
    every = out.value(f"shufflevector {wide} {pairs[0]}, {wide} {pairs[1]}, {NUMBERS_TYPE} <{places}>")
    narrow = out.value(f"trunc {NUMBERS_TYPE} {every} to {BYTES_TYPE}")
    return out.value(f"bitcast {BYTES_TYPE} {narrow} to {WORDS}")
