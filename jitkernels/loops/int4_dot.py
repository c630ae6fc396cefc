"""Dot products of floats and of weights of 4 bits in groups with a scale, as LLVM IR text.

64 bytes of weights are 16 words of 8 each. Shifted to the right by four times s, their lower ends are weight s of all
words, which a permutation of a table of 16 floats makes numbers of, where processors have one; others become floats by
the bits of an exponent. So the floats that they
are multiplied by lie in this order: of each 128 first the numbers 0, 8, 16..., then 1, 9, 17... What the products of a
word add up to is multiplied by the scale of its group, so that groups are whole words.
"""

import struct

from jitkernels.loops.tile import Text
from jitkernels.native.source import IRFunction

LANES, STEPS = 16, 8
BYTES = 4 * LANES
"""Of weights at a time."""
BY_TABLE = 4
"""Of the eight, how many a table makes numbers of: processors have other units for the others."""
NUMBERS = STEPS * LANES

ARGUMENTS = (
    ("ptr", "weights"), ("ptr", "floats"), ("ptr", "scale"), ("ptr", "zero"),
    ("ptr", "found"), ("i64", "groups"), ("i64", "half"), ("i64", "shift"),
)  # fmt: skip
WORDS, FLOATS, MASK = f"<{LANES} x i32>", f"<{LANES} x float>", f"<{LANES} x i1>"
LANE_NUMBERS = f"<{', '.join(f'i32 {i}' for i in range(LANES))}>"


TOGETHER = 4
"""Columns at a time: floats come from the cache once for all of them, which takes as long as the arithmetic of one."""


def int4_dot(*, few: bool, shifted: bool, permutes: bool, columns: int) -> IRFunction:
    """``dot(weights, floats, scale, zero, found, groups, half, shift)`` of columns that follow one another.

    few: groups have 4 << shift bytes, at most 64; otherwise a multiple of 64. shifted: there are zero points.
    permutes: there is AVX-512.
    """
    symbol = f"int4_dot_{'few' if few else 'many'}{columns}"
    kinds = tuple("void*" if kind == "ptr" else "int64" for kind, _ in ARGUMENTS)
    return IRFunction(symbol, "void", kinds, _Writer(few, shifted, permutes, columns).text(symbol))


def _float(value: float) -> str:
    return "0x" + struct.pack(">d", value).hex().upper()


def _all(kind: str, number: object) -> str:
    """A vector of one number."""
    return f"<{', '.join([f'{kind} {number}'] * LANES)}>"


class _Writer:
    def __init__(self, few: bool, shifted: bool, permutes: bool, columns: int) -> None:
        self.few, self.shifted, self.permutes, self.columns = few, shifted, permutes, range(columns)
        self.out = Text()

    def text(self, symbol: str) -> str:
        arguments = ", ".join(f"{kind} %{name}" for kind, name in ARGUMENTS)
        (self._few if self.few else self._many)()
        body = "\n".join(self.out.lines)
        return f"{self._declared()}define void @{symbol}({arguments}) noinline nounwind {{\n{body}\n}}\n"

    def _declared(self) -> str:
        lines = [
            f"declare {WORDS} @llvm.masked.load.v16i32.p0(ptr, i32, {MASK}, {WORDS})",
            f"declare {FLOATS} @llvm.masked.load.v16f32.p0(ptr, i32, {MASK}, {FLOATS})",
            f"declare <16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, {MASK}, <16 x i8>)",
            f"declare {FLOATS} @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, i32, {MASK}, {FLOATS})",
            f"declare <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr>, i32, {MASK}, <16 x i8>)",
            f"declare {FLOATS} @llvm.fmuladd.v16f32({FLOATS}, {FLOATS}, {FLOATS})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare float @llvm.vector.reduce.fadd.v16f32(float, {FLOATS})",
        ]
        if self.permutes:
            lines.append(f"declare {FLOATS} @llvm.x86.avx512.permvar.sf.512({FLOATS}, {WORDS})")
        return "\n".join(lines) + "\n"

    def _same(self, kind: str, value: str) -> str:
        """A vector of one number."""
        vector = f"<{LANES} x {kind}>"
        one = self.out.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self.out.value(f"shufflevector {vector} {one}, {vector} poison, {WORDS} zeroinitializer")

    def _sum_of_products(self, a: str, b: str, c: str) -> str:
        return self.out.value(f"call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {a}, {FLOATS} {b}, {FLOATS} {c})")

    def _permuted(self, vector: str, picks: str) -> str:
        return self.out.value(
            f"call {FLOATS} @llvm.x86.avx512.permvar.sf.512({FLOATS} {vector}, {WORDS} {picks})"
        )

    def _products(self, words: list[str], first: str, zeros: list[str]) -> list[str]:
        """What the weights of each word less zero points and their floats, from number `first` on, add up to."""
        out, found = self.out, [["zeroinitializer"] * 2 for _ in self.columns]
        table = f"<{', '.join(f'float {_float(i - 8.0)}' for i in range(16))}>"
        by_table = BY_TABLE if self.permutes else 0
        high = [out.value(f"lshr {WORDS} {each}, {_all('i32', 12)}") for each in words]
        for s in range(STEPS):
            at = out.value(f"add nsw i64 {first}, {LANES * s}")
            floats = out.value(f"load {FLOATS}, ptr {out.element('float', '%floats', at)}, align 64")
            for c in self.columns:
                if s < by_table:
                    moved = out.value(f"lshr {WORDS} {words[c]}, {_all('i32', 4 * s)}") if s else words[c]
                    weights = self._permuted(table, moved)
                else:
                    weights = self._by_bits(words[c] if s < 5 else high[c], 4 * s - 12 * (s > 4))
                if self.shifted:
                    weights = out.value(f"fsub {FLOATS} {weights}, {zeros[c]}")
                found[c][s % 2] = self._sum_of_products(weights, floats, found[c][s % 2])
        return [out.value(f"fadd {FLOATS} {left}, {right}") for left, right in found]

    def _places(self) -> None:
        """Where each column begins."""
        out = self.out
        out.line("%bytes = mul nsw i64 %groups, %half")
        for c in self.columns:
            for name, kind, step in (
                ("weights", "i8", "%bytes"),
                ("scale", "float", "%groups"),
                ("zero", "i8", "%groups"),
            ):
                by = out.times(c, step)
                out.line(f"%{name}{c} = getelementptr {kind}, ptr %{name}, i64 {by}")

    def _by_bits(self, words: str, place: int) -> str:
        """Four bits of words, less 8: they are the last ones before the point of a float of that exponent."""
        out = self.out
        there = out.value(f"and {WORDS} {words}, {_all('i32', 15 << place)}")
        bits = out.value(f"or {WORDS} {there}, {_all('i32', 127 + 23 - place << 23)}")
        floats = out.value(f"bitcast {WORDS} {bits} to {FLOATS}")
        return out.value(f"fsub {FLOATS} {floats}, {_all('float', _float(2.0 ** (23 - place) + 8))}")

    def _numbers(self, zeros: str) -> str:
        """Zero points as floats, less 8."""
        out = self.out
        wide = out.value(f"zext <16 x i8> {zeros} to {WORDS}")
        less = out.value(f"sub {WORDS} {wide}, {_all('i32', 8)}")
        return out.value(f"sitofp {WORDS} {less} to {FLOATS}")

    def _begin(self, count: str) -> None:
        self.out.line(f"%some = icmp sgt i64 {count}, 0")
        self.out.line("br i1 %some, label %loop, label %done")

    def _end(self, count: str) -> None:
        out = self.out
        out.line("%next = add nuw nsw i64 %i, 1")
        out.line(f"%more = icmp slt i64 %next, {count}")
        out.line("br i1 %more, label %loop, label %done")
        out.label("done")
        for c in self.columns:
            out.line(f"%all{c} = phi {FLOATS} [ zeroinitializer, %entry ], [ %total{c}, %last ]")
        for c in self.columns:
            out.line(
                f"%sum{c} = call reassoc float @llvm.vector.reduce.fadd.v16f32(float 0.0, {FLOATS} %all{c})"
            )
            out.line(f"store float %sum{c}, ptr {out.element('float', '%found', c)}, align 4")
        out.line("ret void")

    def _fetch(self, at: str) -> None:
        """Weights of the next columns: short columns side by side are no streams that processors foresee."""
        out = self.out
        ahead = out.value(f"add nsw i64 {at}, {out.times(len(self.columns), '%bytes')}")
        for c in self.columns:
            address = out.element("i8", f"%weights{c}", ahead)
            out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")

    def _add(self, found: list[str], scales: list[str], before: str) -> None:
        """Scaled, to the totals."""
        for c in self.columns:
            self.out.line(
                f"%total{c} = call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {found[c]}, {FLOATS} {scales[c]}, "
                f"{FLOATS} %{before}{c})"
            )

    def _few(self) -> None:
        """Several groups at a time: scales are spread over the words of their groups."""
        out = self.out
        out.label("entry")
        self._places()
        out.line(f"%over = add nsw i64 %bytes, {BYTES - 1}")
        out.line(f"%count = sdiv i64 %over, {BYTES}")
        out.line("%less = sub nsw i64 4, %shift")
        out.line("%per = shl i64 1, %less")
        out.line("%short = trunc i64 %shift to i32")
        picks = out.value(f"lshr {WORDS} {LANE_NUMBERS}, {self._same('i32', '%short')}")
        self._begin("%count")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %last ]")
        for c in self.columns:
            out.line(f"%before{c} = phi {FLOATS} [ zeroinitializer, %entry ], [ %total{c}, %last ]")
        at = out.value(f"mul nsw i64 %i, {BYTES}")
        left = out.value(f"sub nsw i64 %bytes, {at}")
        mask = self._below(out.value(f"ashr i64 {left}, 2"))
        words = [
            out.value(
                f"call {WORDS} @llvm.masked.load.v16i32.p0(ptr {out.element('i8', f'%weights{c}', at)}, i32 1, "
                f"{MASK} {mask}, {WORDS} zeroinitializer)"
            )
            for c in self.columns
        ]
        group = out.value("mul nsw i64 %i, %per")
        zeros = [self._spread("i8", f"%zero{c}", group, picks, mask) for c in self.columns if self.shifted]
        self._fetch(at)
        found = self._products(words, out.value(f"mul nsw i64 %i, {NUMBERS}"), zeros)
        self._add(
            found, [self._spread("float", f"%scale{c}", group, picks, mask) for c in self.columns], "before"
        )
        out.line("br label %last")
        out.label("last")
        self._end("%count")

    def _below(self, count: str) -> str:
        """The mask of the lanes below a count."""
        most = self.out.value(f"call i64 @llvm.smin.i64(i64 {count}, i64 {LANES})")
        every = self._same("i32", self.out.value(f"trunc i64 {most} to i32"))
        return self.out.value(f"icmp slt {WORDS} {LANE_NUMBERS}, {every}")

    def _spread(self, kind: str, base: str, group: str, picks: str, live: str) -> str:
        """The numbers of groups, from `group` on, in the words of their groups, as floats."""
        out = self.out
        address = out.element(kind, base, group)
        suffix, vector = ("v16f32", FLOATS) if kind == "float" else ("v16i8", "<16 x i8>")
        if not self.permutes:
            wide = out.value(f"zext {WORDS} {picks} to <{LANES} x i64>")
            places = out.value(f"getelementptr {kind}, ptr {address}, <{LANES} x i64> {wide}")
            found = out.value(
                f"call {vector} @llvm.masked.gather.{suffix}.v16p0(<16 x ptr> {places}, i32 1, {MASK} {live}, "
                f"{vector} zeroinitializer)"
            )
            return found if kind == "float" else self._numbers(found)
        left = out.value(f"sub nsw i64 %groups, {group}")
        mask = self._below(out.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 %per)"))
        found = out.value(
            f"call {vector} @llvm.masked.load.{suffix}.p0(ptr {address}, i32 1, {MASK} {mask}, "
            f"{vector} zeroinitializer)"
        )
        return self._permuted(found if kind == "float" else self._numbers(found), picks)

    def _many(self) -> None:
        """Group after group, each of whole vectors of words."""
        out = self.out
        out.label("entry")
        self._places()
        out.line(f"%vectors = sdiv i64 %half, {BYTES}")
        self._begin("%groups")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %last ]")
        for c in self.columns:
            out.line(f"%before{c} = phi {FLOATS} [ zeroinitializer, %entry ], [ %total{c}, %last ]")
        out.line("%first = mul nsw i64 %i, %vectors")
        scales, zeros = [], []
        for c in self.columns:
            scale = out.value(f"load float, ptr {out.element('float', f'%scale{c}', '%i')}, align 4")
            scales.append(self._same("float", scale))
            if self.shifted:
                zero = out.value(f"load i8, ptr {out.element('i8', f'%zero{c}', '%i')}, align 1")
                zeros.append(self._numbers(self._same("i8", zero)))
        out.line("br label %inner")
        out.label("inner")
        out.line("%v = phi i64 [ 0, %loop ], [ %v_next, %inner ]")
        for c in self.columns:
            out.line(f"%in{c} = phi {FLOATS} [ %before{c}, %loop ], [ %total{c}, %inner ]")
        number = out.value("add nsw i64 %first, %v")
        at = out.value(f"mul nsw i64 {number}, {BYTES}")
        words = [
            out.value(f"load {WORDS}, ptr {out.element('i8', f'%weights{c}', at)}, align 1")
            for c in self.columns
        ]
        self._fetch(at)
        found = self._products(words, out.value(f"mul nsw i64 {number}, {NUMBERS}"), zeros)
        self._add(found, scales, "in")
        out.line("%v_next = add nuw nsw i64 %v, 1")
        out.line("%inside = icmp slt i64 %v_next, %vectors")
        out.line("br i1 %inside, label %inner, label %last")
        out.label("last")
        self._end("%groups")
