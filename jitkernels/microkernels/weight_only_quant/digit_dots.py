"""Dot products of quantized weights and of floats that lie as whole numbers of one to three digits, as LLVM IR text.

How the floats lie is told by `jitkernels.loops.weight_arranged`. 128 bytes of a column are two vectors of words; of
each 16 bytes the first two words are put into one vector, the last two into another, so that both have words of the
same group in each lane. VPDPBUSD adds up the products of four bytes without signs by digits: of 4-bit weights the lower
halves, then the upper ones, of 8-bit weights with 128 more. Sums are exact until that of a lane, 16 or 8 products,
becomes a float, which is multiplied by its unit and by its scale. The last digit has a sum of its own, which begins
with what zero points take off, as each sum waits for itself.
"""

from jitkernels.loops.int4_writer import FLOATS, LANES, MASK, WORDS, all_of
from jitkernels.loops.weight_arranged import LOADED, Layout
from jitkernels.loops.weight_blocks import BlockDots

CHUNKS = [lane // 4 + 4 * (lane % 4 // 2) for lane in range(LANES)]
"""Which 16 of 128 bytes the words of lanes are from."""
FIRST = [lane // 4 * 4 + lane % 2 + 16 * (lane % 4 // 2) for lane in range(LANES)]
"""Which words of two vectors are in the first one of the other two; those in the second follow two words later."""
SIGNS = -2139062144
"""0x80 in each byte."""


class DigitDots(BlockDots):
    """Groups have 16, 32 or 64 bytes, or a multiple of 128; a single one has whole words."""

    kind = "digits"
    loaded = LOADED

    def __init__(self, layout: Layout, *, few: bool, shifted: bool, columns: int, rows: int = 1) -> None:
        super().__init__(few=few, shifted=shifted, columns=columns, rows=rows)
        self.layout = layout

    def declared(self) -> list[str]:
        return [
            *super().declared(),
            f"declare {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS}, {WORDS}, {WORDS})",
            f"declare {WORDS} @llvm.x86.avx512.permvar.si.512({WORDS}, {WORDS})",
        ]

    def _products(self, words: list[tuple[str, str]], number: str, zeros: list[str]) -> list[list[str]]:
        """What weights less zero points and their floats, in one block, add up to for each row and column."""
        out, size = self.out, self.layout.bytes
        at = out.value(f"mul nsw i64 {number}, {size}")
        apart = out.value(f"mul nsw i64 %count, {size}")
        weights = [self._bytes(*pair) for pair in words]
        blocks = [
            out.element("i8", out.element("i8", "%floats", at), out.times(r, apart) if r else 0)
            for r in self.rows
        ]
        return [
            [self._product(block, weights[c], zeros[c] if zeros else "") for c in self.columns]
            for block in blocks
        ]

    def _bytes(self, left: str, right: str) -> list[str]:
        """Weights as bytes without signs, in the order of the vectors of digits."""
        out, found = self.out, []
        for later in (0, 2):
            picks = ", ".join(f"i32 {place + later}" for place in FIRST)
            words = out.value(f"shufflevector {WORDS} {left}, {WORDS} {right}, {WORDS} <{picks}>")
            if self.layout.bits == 8:
                found.append(out.value(f"xor {WORDS} {words}, {all_of('i32', SIGNS)}"))
                continue
            found.append(out.value(f"and {WORDS} {words}, {all_of('i32', 0x0F0F0F0F)}"))
            moved = out.value(f"lshr {WORDS} {words}, {all_of('i32', 4)}")
            found.append(out.value(f"and {WORDS} {moved}, {all_of('i32', 0x0F0F0F0F)}"))
        return found

    def _product(self, block: str, weights: list[str], zeros: str) -> str:
        out, layout = self.out, self.layout
        less = [self._less(block, place, zeros) for place in range(2 if layout.parted else 1)]
        above = ""
        for digit in range(layout.digits - 1):
            begin = out.value(f"shl {WORDS} {above}, {all_of('i32', 8)}") if above else "zeroinitializer"
            above = self._by_digit(block, digit, weights, begin)
        found = self._by_digit(block, layout.digits - 1, weights, less[-1])
        if above and not layout.parted:
            above = out.value(f"shl {WORDS} {above}, {all_of('i32', 8)}")
            found = out.value(f"add {WORDS} {above}, {found}")
        whole = out.value(f"sitofp {WORDS} {found} to {FLOATS}")
        if layout.parted:
            above = out.value(f"add {WORDS} {above}, {less[0]}")
            more = out.value(f"sitofp {WORDS} {above} to {FLOATS}")
            whole = out.value(
                f"call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {more}, {FLOATS} {all_of('float', 256.0)}, "
                f"{FLOATS} {whole})"
            )
        units = out.value(f"load {FLOATS}, ptr {out.element('i8', block, layout.units)}, align 64")
        return out.value(f"fmul {FLOATS} {whole}, {units}")

    def _less(self, block: str, place: int, zeros: str) -> str:
        address = self.out.element("i8", block, self.layout.sums + 64 * place)
        sums = self.out.value(f"load {WORDS}, ptr {address}, align 64")
        return self.out.value(f"mul {WORDS} {sums}, {zeros}") if zeros else sums

    def _by_digit(self, block: str, digit: int, weights: list[str], begin: str) -> str:
        out, found = self.out, begin
        for place, each in enumerate(weights):
            address = out.element("i8", block, (len(weights) * digit + place) * 64)
            digits = out.value(f"load {WORDS}, ptr {address}, align 64")
            found = out.value(
                f"call {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS} {found}, {WORDS} {each}, {WORDS} {digits})"
            )
        return found

    def _few(self) -> None:
        """Several groups at a time: scales are spread over the lanes of their groups."""
        out = self.out
        out.line("%per = lshr i64 32, %shift")
        out.line("%short = trunc i64 %shift to i32")
        by = out.value(f"sub {WORDS} {self._same('i32', '%short')}, {all_of('i32', 2)}")
        chunks = f"<{', '.join(f'i32 {chunk}' for chunk in CHUNKS)}>"
        picks = out.value(f"lshr {WORDS} {chunks}, {by}")

        def step(i: str, masked: bool) -> tuple[list[list[str]], list[str]]:
            at = out.value(f"mul nsw i64 {i}, {LOADED}")
            after = out.value(f"add nsw i64 {at}, 64")
            masks = ["", ""]
            if masked:
                words = out.value(f"ashr i64 {out.value(f'sub nsw i64 %bytes, {at}')}, 2")
                masks = [self._below(words), self._below(out.value(f"sub nsw i64 {words}, {LANES}"))]
            pairs = [(self._words(c, at, masks[0]), self._words(c, after, masks[1])) for c in self.columns]
            group = out.value(f"mul nsw i64 {i}, %per")
            live = self._live(group, masked)
            zeros = [self._zeros(c, group, picks, live) for c in self.columns if self.shifted]
            if not masked:
                self._fetch(at, LOADED)
                self._fetch_of_groups(group, 8)
            products = self._products(pairs, i, zeros)
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
        found = self.out.value(
            f"call <16 x i8> @llvm.masked.load.v16i8.p0(ptr {self.out.element('i8', f'%zero{c}', group)}, i32 1, "
            f"{MASK} {live}, <16 x i8> zeroinitializer)"
        )
        return self._spread(self._plain(f"<16 x i8> {found}", WORDS), picks)

    def _plain(self, zero: str, kind: str) -> str:
        """Zero points as those of bytes without signs."""
        if self.layout.bits == 4:
            return self.out.value(f"zext {zero} to {kind}")
        wide = self.out.value(f"sext {zero} to {kind}")
        return self.out.value(f"add {kind} {wide}, {all_of('i32', 128) if kind == WORDS else 128}")

    def _zero(self, zero: str) -> str:
        return self._same("i32", self._plain(f"i8 {zero}", "i32"))

    def _loaded(self, c: int, at: str) -> tuple[str, str]:
        return self._words(c, at), self._words(c, self.out.value(f"add nsw i64 {at}, 64"))
