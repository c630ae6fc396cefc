"""Integer dot products (VPDPBUSD) of quantized weights with activations quantized to base-256 digits, as LLVM IR text.

`jitkernels.microkernels.weight_only_quant.quantize_activations` describes the layout of the digits. 128 bytes of a
column are two vectors of words; of each 16 bytes the first two words go to one vector, the last two to another, so that
both have words of the same group in each lane. VPDPBUSD adds the products of four unsigned bytes by digits: of 4-bit
weights the lower halves, then the upper ones, of 8-bit weights plus 128. Sums are exact until that of a lane, 16 or 8
products, becomes a float, which is multiplied by its unit and by its scale. The last digit has an accumulator of its
own, which starts with the correction of zero points, to shorten dependence chains.
"""

from typing import Any

from jitkernels.microkernels.weight_only_quant.dot_emitter import FLOATS, LANES, MASK, WORDS, all_of
from jitkernels.microkernels.weight_only_quant.grouped_dots import BlockDots
from jitkernels.microkernels.weight_only_quant.quantize_activations import LOADED, Layout

CHUNKS = [lane // 4 + 4 * (lane % 4 // 2) for lane in range(LANES)]
"""Which 16 of 128 bytes the words of lanes come from."""
FIRST = [lane // 4 * 4 + lane % 2 + 16 * (lane % 4 // 2) for lane in range(LANES)]
"""Shuffle mask of the first of the two vectors; that of the second is two words further."""
SIGNS = -2139062144
"""0x80 in each byte."""


class DigitDots(BlockDots):
    """Groups have 16, 32 or 64 bytes, or a multiple of 128; a single group has whole words."""

    kind = "digits"
    loaded = LOADED

    def __init__(self, layout: Layout, **tile: Any) -> None:
        super().__init__(**tile)
        self.layout = layout

    def declared(self) -> list[str]:
        return [
            *super().declared(),
            f"declare {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS}, {WORDS}, {WORDS})",
            f"declare {WORDS} @llvm.x86.avx512.permvar.si.512({WORDS}, {WORDS})",
        ]

    def _products(self, words: list[tuple[str, str]], number: str, zeros: list[str]) -> list[list[str]]:
        """Append the dot products, in one block, of weights less zero points with their floats, by row and column."""
        out, size = self.out, self.layout.bytes
        at = out.value(f"mul nsw i64 {number}, {size}")
        apart = out.value(f"mul nsw i64 %count, {size}")
        weights = [self._bytes(*pair) for pair in words]
        blocks = [
            out.element("i8", out.element("i8", "%floats", at), out.times(r, apart) if r else 0) for r in self.rows
        ]
        return [[self._product(block, weights[c], zeros[c] if zeros else "") for c in self.columns] for block in blocks]

    def _bytes(self, left: str, right: str) -> list[str]:
        """Append the weights as unsigned bytes, in the order of the vectors of digits."""
        out, result = self.out, []
        for later in (0, 2):
            picks = ", ".join(f"i32 {word + later}" for word in FIRST)
            words = out.value(f"shufflevector {WORDS} {left}, {WORDS} {right}, {WORDS} <{picks}>")
            if self.layout.bits == 8:
                result.append(out.value(f"xor {WORDS} {words}, {all_of('i32', SIGNS)}"))
                continue
            result.append(out.value(f"and {WORDS} {words}, {all_of('i32', 0x0F0F0F0F)}"))
            moved = out.value(f"lshr {WORDS} {words}, {all_of('i32', 4)}")
            result.append(out.value(f"and {WORDS} {moved}, {all_of('i32', 0x0F0F0F0F)}"))
        return result

    def _product(self, block: str, weights: list[str], zeros: str) -> str:
        out, layout = self.out, self.layout
        less = [self._less(block, sum_index, zeros) for sum_index in range(2 if layout.parted else 1)]
        above = ""
        for digit in range(layout.digits - 1):
            begin = out.value(f"shl {WORDS} {above}, {all_of('i32', 8)}") if above else "zeroinitializer"
            above = self._by_digit(block, digit, weights, begin)
        total = self._by_digit(block, layout.digits - 1, weights, less[-1])
        if above and not layout.parted:
            above = out.value(f"shl {WORDS} {above}, {all_of('i32', 8)}")
            total = out.value(f"add {WORDS} {above}, {total}")
        whole = out.value(f"sitofp {WORDS} {total} to {FLOATS}")
        if layout.parted:
            above = out.value(f"add {WORDS} {above}, {less[0]}")
            more = out.value(f"sitofp {WORDS} {above} to {FLOATS}")
            whole = out.value(
                f"call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {more}, {FLOATS} {all_of('float', 256.0)}, "
                f"{FLOATS} {whole})"
            )
        units = out.value(f"load {FLOATS}, ptr {out.element('i8', block, layout.units)}, align 64")
        return out.value(f"fmul {FLOATS} {whole}, {units}")

    def _less(self, block: str, sum_index: int, zeros: str) -> str:
        address = self.out.element("i8", block, self.layout.sums + 64 * sum_index)
        sums = self.out.value(f"load {WORDS}, ptr {address}, align 64")
        return self.out.value(f"mul {WORDS} {sums}, {zeros}") if zeros else sums

    def _by_digit(self, block: str, digit: int, weights: list[str], begin: str) -> str:
        out, total = self.out, begin
        for index, weight_bytes in enumerate(weights):
            address = out.element("i8", block, (len(weights) * digit + index) * 64)
            digits = out.value(f"load {WORDS}, ptr {address}, align 64")
            total = out.value(
                f"call {WORDS} @llvm.x86.avx512.vpdpbusd.512({WORDS} {total}, {WORDS} {weight_bytes}, {WORDS} {digits})"
            )
        return total

    def _few(self) -> None:
        """Write the loop over several groups at a time: scales are broadcast over the lanes of their groups."""
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
        return self.out.value(f"call {WORDS} @llvm.x86.avx512.permvar.si.512({WORDS} {numbers}, {WORDS} {picks})")

    def _scales(self, c: int, group: str, picks: str, live: str) -> str:
        scales = self.out.value(
            f"call {WORDS} @llvm.masked.load.v16i32.p0(ptr {self.out.element('float', f'%scale{c}', group)}, i32 4, "
            f"{MASK} {live}, {WORDS} zeroinitializer)"
        )
        return self.out.value(f"bitcast {WORDS} {self._spread(scales, picks)} to {FLOATS}")

    def _zeros(self, c: int, group: str, picks: str, live: str) -> str:
        zeros = self.out.value(
            f"call <16 x i8> @llvm.masked.load.v16i8.p0(ptr {self.out.element('i8', f'%zero{c}', group)}, i32 1, "
            f"{MASK} {live}, <16 x i8> zeroinitializer)"
        )
        return self._spread(self._plain(f"<16 x i8> {zeros}", WORDS), picks)

    def _plain(self, zero: str, kind: str) -> str:
        """Append zero points as those of unsigned bytes."""
        if self.layout.bits == 4:
            return self.out.value(f"zext {zero} to {kind}")
        wide = self.out.value(f"sext {zero} to {kind}")
        return self.out.value(f"add {kind} {wide}, {all_of('i32', 128) if kind == WORDS else 128}")

    def _zero(self, zero: str) -> str:
        return self._same("i32", self._plain(f"i8 {zero}", "i32"))

    def _loaded(self, c: int, at: str) -> tuple[str, str]:
        return self._words(c, at), self._words(c, self.out.value(f"add nsw i64 {at}, 64"))
