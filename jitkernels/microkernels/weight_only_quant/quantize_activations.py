"""Quantization of float activations to integers of one to three base-256 digits, in the order of the weights' words.

A block holds the floats of 128 bytes of weights: 256 for 4-bit weights, 128 for 8-bit weights. 16 bytes are two lanes
of a vector, each of which has every second word of them. The floats of a lane become multiples of a power of two, their
unit, of at most 24 bits with the sign: they are rounded to 2**-23 of the largest of them at worst, and floats that are
such multiples are not rounded. Each multiple is h * 65536 + m * 256 + l, with signed 8-bit digits. A block has vectors
of h, each with the floats that the weights of one word meet, of 4-bit weights those of lower halves of bytes and then
those of upper ones: of the first word of each lane, then of the second; so for m and l; then the corrections that are
subtracted from the lanes' sums, and their units. With fewer digits multiples have fewer bits.
"""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import Text
from jitkernels.microkernels.weight_only_quant.dot_emitter import (
    FLOATS,
    LANES,
    STEP_NUMBERS,
    TILE_COLUMNS,
    WORDS,
    all_of,
)

LOADED = 128
"""Bytes of weights per block."""
MIN_GROUP_EXPONENT = 2
"""Groups have at least 4 << MIN_GROUP_EXPONENT bytes: those of a lane belong to one group."""
MIN_BIASED_EXPONENT, MAX_BIASED_EXPONENT = 27, 250
"""Biased exponents for which units and their inverses are normal floats."""
CARRY = 1 << 17
"""Added to the bits of a float, carries from 2 - 2**-6 on into the exponent, as digits end a little above."""
SYMBOL = "digits_arranged"


@frozen_dataclass
class Layout:
    """Layout of blocks of floats of `digits` digits, for weights of `bits` bits."""

    digits: int
    bits: int

    @property
    def per_byte(self) -> int:
        return 8 // self.bits

    @property
    def floats(self) -> int:
        """Floats per block."""
        return LOADED * self.per_byte

    @property
    def vectors(self) -> int:
        """Vectors per digit."""
        return 2 * self.per_byte

    @property
    def columns(self) -> int:
        """Columns of weights from memory that are read side by side for a row; more digits take more columns."""
        return min(TILE_COLUMNS, 1 << (self.digits * self.per_byte).bit_length() - 1)

    @property
    def parted(self) -> bool:
        """Whether the last digit has sums of its own, as the sum over all digits overflows a word."""
        return self.digits == 3 and self.bits == 8

    @property
    def sums(self) -> int:
        """Byte offset of the corrections of sums."""
        return 64 * self.digits * self.vectors

    @property
    def units(self) -> int:
        return self.sums + (128 if self.parted else 64)

    @property
    def bytes(self) -> int:
        return self.units + 64


def arrange_digits(layout: Layout, *, shifted: bool) -> IRFunction:
    """``arrange(a, k, blocks, to)``: quantize k floats into blocks; 0 unless some are not finite or out of range.

    shifted: there are zero points, which are multiplied by the corrections later; otherwise the middle of the range of
    weights is multiplied in here.
    """
    out = Text()
    out.label("entry")
    out.line("%some = icmp sgt i64 %blocks, 0")
    out.line("br i1 %some, label %loop, label %none")
    out.label("none")
    out.line("ret i64 0")
    out.label("loop")
    out.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
    out.line("%unusual = phi <16 x i1> [ zeroinitializer, %entry ], [ %found, %loop ]")
    first = out.value(f"mul nsw i64 %i, {layout.floats}")
    left = out.value(f"sub nsw i64 %k, {first}")
    to = out.element("i8", "%to", out.value(f"mul nsw i64 %i, {layout.bytes}"))
    _block(out, out.element("float", "%a", first), left, to, layout, shifted)
    out.line("%next = add nuw nsw i64 %i, 1")
    out.line("%more = icmp slt i64 %next, %blocks")
    out.line("br i1 %more, label %loop, label %done")
    out.label("done")
    out.line("%bits = bitcast <16 x i1> %found to i16")
    out.line("%result = zext i16 %bits to i64")
    out.line("ret i64 %result")
    body, count = "\n".join(out.lines), STEP_NUMBERS
    text = (
        f"declare <{count} x float> @llvm.masked.load.v{count}f32.p0(ptr, i32, <{count} x i1>, <{count} x float>)\n"
        f"declare {WORDS} @llvm.smax.v16i32({WORDS}, {WORDS})\n"
        f"declare {WORDS} @llvm.smin.v16i32({WORDS}, {WORDS})\n"
        f"declare {WORDS} @llvm.x86.avx512.mask.cvtps2dq.512({FLOATS}, {WORDS}, i16, i32)\n"
        f"define i64 @{SYMBOL}(ptr %a, i64 %k, i64 %blocks, ptr %to) noinline nounwind {{\n{body}\n}}\n"
    )
    return IRFunction(SYMBOL, "int64", ("void*", "int64", "int64", "void*"), text)


def _block(out: Text, source: str, left: str, to: str, layout: Layout, shifted: bool) -> None:
    """Write one block of as many floats as there are, padded with zeros."""
    loaded = [_loaded(out, source, left)]
    if layout.floats > STEP_NUMBERS:
        after = out.value(f"sub nsw i64 {left}, {STEP_NUMBERS}")
        loaded.append(_loaded(out, out.element("float", source, STEP_NUMBERS), after))
    kind, word = f"<{STEP_NUMBERS} x float>", 4 * layout.per_byte
    parts = []
    for later in (0, 2 * word):
        for s in range(word):
            lane_picks = [
                (lane // 4 * 4 + lane % 2 + lane % 4 // 2 * LANES) * word + later + s for lane in range(LANES)
            ]
            picks = ", ".join(f"i32 {index}" for index in lane_picks)
            parts.append(out.value(f"shufflevector {kind} {loaded[0]}, {kind} {loaded[-1]}, {WORDS} <{picks}>"))
    multiples = _multiples(out, parts, to, layout)
    totals = [_total(out, multiples)]
    for digit in reversed(range(layout.digits)):
        for index in range(layout.vectors):
            begin = index // layout.per_byte * word
            numbers = multiples[begin + index % layout.per_byte : begin + word : layout.per_byte]
            address = out.element("i8", to, (layout.vectors * digit + index) * 64)
            out.line(f"store {WORDS} {_word(out, numbers)}, ptr {address}, align 64")
        if digit:
            rounded = [out.value(f"add {WORDS} {multiple}, {all_of('i32', 128)}") for multiple in multiples]
            multiples = [out.value(f"ashr {WORDS} {multiple}, {all_of('i32', 8)}") for multiple in rounded]
        if layout.parted and digit == layout.digits - 1:
            above = _total(out, multiples)
            below = out.value(f"shl {WORDS} {above}, {all_of('i32', 8)}")
            totals = [above, out.value(f"sub {WORDS} {totals[0]}, {below}")]
    for index, total in enumerate(totals):
        less = total if shifted else out.value(f"shl {WORDS} {total}, {all_of('i32', layout.bits - 1)}")
        less = out.value(f"sub {WORDS} zeroinitializer, {less}")
        out.line(f"store {WORDS} {less}, ptr {out.element('i8', to, layout.sums + 64 * index)}, align 64")


def _total(out: Text, multiples: list[str]) -> str:
    total = multiples[0]
    for multiple in multiples[1:]:
        total = out.value(f"add {WORDS} {total}, {multiple}")
    return total


def _loaded(out: Text, source: str, left: str) -> str:
    ints, kind = f"<{STEP_NUMBERS} x i32>", f"<{STEP_NUMBERS} x float>"
    most = out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {STEP_NUMBERS})")
    first_lane = out.value(f"insertelement {ints} poison, i32 {out.value(f'trunc i64 {most} to i32')}, i64 0")
    ends = out.value(f"shufflevector {ints} {first_lane}, {ints} poison, {ints} zeroinitializer")
    live = out.value(f"icmp slt {ints} <{', '.join(f'i32 {i}' for i in range(STEP_NUMBERS))}>, {ends}")
    return out.value(
        f"call {kind} @llvm.masked.load.v{STEP_NUMBERS}f32.p0(ptr {source}, i32 4, <{STEP_NUMBERS} x i1> {live}, "
        f"{kind} zeroinitializer)"
    )


def _multiples(out: Text, parts: list[str], to: str, layout: Layout) -> list[str]:
    """Append vectors as multiples of the units of their lanes, and store the units."""
    kept_bits, largest = 8 * layout.digits - 2, "zeroinitializer"
    for part in parts:
        bits = out.value(f"bitcast {FLOATS} {part} to {WORDS}")
        bits = out.value(f"and {WORDS} {bits}, {all_of('i32', 0x7FFFFFFF)}")
        largest = out.value(f"call {WORDS} @llvm.smax.v16i32({WORDS} {largest}, {WORDS} {bits})")
    carried = out.value(f"add {WORDS} {largest}, {all_of('i32', CARRY)}")
    exponent = out.value(f"lshr {WORDS} {carried}, {all_of('i32', 23)}")
    clamped = out.value(
        f"call {WORDS} @llvm.smax.v16i32({WORDS} {exponent}, {WORDS} {all_of('i32', MIN_BIASED_EXPONENT)})"
    )
    clamped = out.value(
        f"call {WORDS} @llvm.smin.v16i32({WORDS} {clamped}, {WORDS} {all_of('i32', MAX_BIASED_EXPONENT)})"
    )
    beyond = out.value(f"icmp ne {WORDS} {clamped}, {exponent}")
    nonzero = out.value(f"icmp ne {WORDS} {largest}, zeroinitializer")
    out_of_range = out.value(f"and <16 x i1> {beyond}, {nonzero}")
    out.line(f"%found = or <16 x i1> %unusual, {out_of_range}")
    inverse = out.value(f"sub {WORDS} {all_of('i32', 254 + kept_bits)}, {clamped}")
    inverse = out.value(f"shl {WORDS} {inverse}, {all_of('i32', 23)}")
    inverse = out.value(f"bitcast {WORDS} {inverse} to {FLOATS}")
    unit = out.value(f"sub {WORDS} {clamped}, {all_of('i32', kept_bits)}")
    unit = out.value(f"shl {WORDS} {unit}, {all_of('i32', 23)}")
    out.line(f"store {WORDS} {unit}, ptr {out.element('i8', to, layout.units)}, align 64")
    multiples = []
    for part in parts:
        quotient = out.value(f"fmul {FLOATS} {part}, {inverse}")
        multiples.append(
            out.value(
                f"call {WORDS} @llvm.x86.avx512.mask.cvtps2dq.512({FLOATS} {quotient}, {WORDS} zeroinitializer, "
                "i16 -1, i32 4)"
            )
        )
    return multiples


def _word(out: Text, four: list[str]) -> str:
    """Append the last 8 bits of four numbers as bytes of words."""
    word = out.value(f"and {WORDS} {four[0]}, {all_of('i32', 255)}")
    for index, number in enumerate(four[1:], start=1):
        byte = out.value(f"and {WORDS} {number}, {all_of('i32', 255)}")
        byte = out.value(f"shl {WORDS} {byte}, {all_of('i32', 8 * index)}")
        word = out.value(f"or {WORDS} {word}, {byte}")
    return word
