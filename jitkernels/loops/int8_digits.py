"""Dot products of 8-bit weights and of floats that lie as whole numbers of one or two digits, as LLVM IR text.

How the floats lie is told by `jitkernels.loops.int8_arranged`. 64 weights, which get 128 more as the instruction wants
them without signs, are a vector of words, each of one group; VPDPBUSD adds up the products of each word by digits.
Sums are exact until that of four products becomes a float, which is multiplied by its unit and by its scale.
"""

from jitkernels.loops.int4_writer import FLOATS, LANE_NUMBERS, MASK, WORDS, DotWriter, all_of
from jitkernels.loops.int8_arranged import LOADED, bytes_of_block

SIGNS = -2139062144
"""0x80 in each byte."""


class Int8Digits(DotWriter):
    """Groups have 4 << shift weights, fewer than 64, or a multiple of 64."""

    kind = "int8_digits"
    loaded = LOADED

    def __init__(self, digits: int, *, few: bool, shifted: bool, columns: int, rows: int = 1) -> None:
        super().__init__(few=few, shifted=shifted, columns=columns, rows=rows)
        self.digits = digits

    def declared(self) -> list[str]:
        return [
            *super().declared(),
            f"declare {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS}, {WORDS}, {WORDS})",
            f"declare {WORDS} @llvm.x86.avx512.permvar.si.512({WORDS}, {WORDS})",
        ]

    def _products(self, words: list[str], number: str, zeros: list[str]) -> list[list[str]]:
        """What weights less zero points and their floats, in one block, add up to for each row and column."""
        out, size = self.out, bytes_of_block(self.digits)
        at = out.value(f"mul nsw i64 {number}, {size}")
        apart = out.value(f"mul nsw i64 %count, {size}")
        weights = [out.value(f"xor {WORDS} {each}, {all_of('i32', SIGNS)}") for each in words]
        found = []
        for r in self.rows:
            block = out.element("i8", out.element("i8", "%floats", at), out.times(r, apart))
            found.append(
                [
                    self._product(block, weights[c], zeros[c] if zeros else "")
                    for c in self.columns
                ]
            )  # fmt: skip
        return found

    def _product(self, block: str, weights: str, zeros: str) -> str:
        out, found = self.out, "zeroinitializer"
        for digit in range(self.digits):
            if digit:
                found = out.value(f"shl {WORDS} {found}, {all_of('i32', 8)}")
            digits = out.value(f"load {WORDS}, ptr {out.element('i8', block, 64 * digit)}, align 64")
            found = out.value(
                f"call {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS} {found}, {WORDS} {weights}, {WORDS} {digits})"
            )
        sums = out.value(f"load {WORDS}, ptr {out.element('i8', block, 64 * self.digits)}, align 64")
        if zeros:
            sums = out.value(f"mul {WORDS} {sums}, {zeros}")
        found = out.value(f"sub {WORDS} {found}, {sums}")
        units = out.value(f"load {FLOATS}, ptr {out.element('i8', block, 64 * self.digits + 64)}, align 64")
        whole = out.value(f"sitofp {WORDS} {found} to {FLOATS}")
        return out.value(f"fmul {FLOATS} {whole}, {units}")

    def _few(self) -> None:
        """Several groups at a time: scales are spread over the lanes of their groups."""
        out = self.out
        out.line("%less = sub nsw i64 4, %shift")
        out.line("%per = shl i64 1, %less")
        out.line("%short = trunc i64 %shift to i32")
        picks = out.value(f"lshr {WORDS} {LANE_NUMBERS}, {self._same('i32', '%short')}")

        def step(i: str, masked: bool) -> tuple[list[list[str]], list[str]]:
            at = out.value(f"mul nsw i64 {i}, {LOADED}")
            mask = ""
            if masked:
                mask = self._below(out.value(f"ashr i64 {out.value(f'sub nsw i64 %bytes, {at}')}, 2"))
            words = [self._words(c, at, mask) for c in self.columns]
            group = out.value(f"mul nsw i64 {i}, %per")
            live = self._live(group, masked)
            zeros = [self._zeros(c, group, picks, live) for c in self.columns if self.shifted]
            if not masked:
                self._fetch(at, LOADED)
                self._fetch_of_groups(group, 2)
            products = self._products(words, i, zeros)
            return products, [self._scales(c, group, picks, live) for c in self.columns]

        self._blocks(step)

    def _spread(self, numbers: str, picks: str) -> str:
        return self.out.value(
            f"call {WORDS} @llvm.x86.avx512.permvar.si.512({WORDS} {numbers}, {WORDS} {picks})"
        )

    def _scales(self, c: int, group: str, picks: str, live: str) -> str:
        found = self.out.value(
            f"call {WORDS} @llvm.masked.load.v16i32.p0(ptr {self.out.element('float', f'%scale{c}', group)}, i32 4, "
            f"{MASK} {live}, {WORDS} zeroinitializer)"
        )
        return self.out.value(f"bitcast {WORDS} {self._spread(found, picks)} to {FLOATS}")

    def _zeros(self, c: int, group: str, picks: str, live: str) -> str:
        """Zero points and 128, of the groups of lanes."""
        found = self.out.value(
            f"call <16 x i8> @llvm.masked.load.v16i8.p0(ptr {self.out.element('i8', f'%zero{c}', group)}, i32 1, "
            f"{MASK} {live}, <16 x i8> zeroinitializer)"
        )
        wide = self.out.value(f"sext <16 x i8> {found} to {WORDS}")
        return self._spread(self.out.value(f"add {WORDS} {wide}, {all_of('i32', 128)}"), picks)

    def _many(self) -> None:
        """Group after group, each of whole vectors."""
        out = self.out
        out.line(f"%vectors = sdiv i64 %half, {LOADED}")
        self._begin("%groups")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %last ]")
        self._carried("before", "entry", "", "last")
        out.line("%first = mul nsw i64 %i, %vectors")
        scales, zeros = [], []
        for c in self.columns:
            scale = out.value(f"load float, ptr {out.element('float', f'%scale{c}', '%i')}, align 4")
            scales.append(self._same("float", scale))
            if self.shifted:
                zero = out.value(f"load i8, ptr {out.element('i8', f'%zero{c}', '%i')}, align 1")
                wide = out.value(f"sext i8 {zero} to i32")
                zeros.append(self._same("i32", out.value(f"add i32 {wide}, 128")))
        self._fetch_of_groups("%i", 1)
        out.line("br label %inner")
        out.label("inner")
        out.line("%v = phi i64 [ 0, %loop ], [ %v_next, %inner ]")
        self._carried("in", "loop", "%before", "inner")
        number = out.value("add nsw i64 %first, %v")
        at = out.value(f"mul nsw i64 {number}, {LOADED}")
        words = [self._words(c, at) for c in self.columns]
        self._fetch(at, LOADED)
        self._add(self._products(words, number, zeros), scales, "in")
        out.line("%v_next = add nuw nsw i64 %v, 1")
        out.line("%inside = icmp slt i64 %v_next, %vectors")
        out.line("br i1 %inside, label %inner, label %last")
        out.label("last")
        self._end("%groups")
