"""Dot products of floats and 4-bit weights, as LLVM IR text.

Words of weights shifted right by 4 * s have weight s of each word in their low bits, which a permutation of a table of
16 floats (VPERMPS) converts, on processors with AVX-512; other weights become floats by the bits of an exponent. So the
activations lie in this order: of each 128 first the elements 0, 8, 16..., then 1, 9, 17... The sum of products of a
word is multiplied by the scale of its group: groups are whole words.
"""

import struct
from typing import Any

from jitkernels.microkernels.weight_only_quant.dot_emitter import (
    FLOATS,
    LANE_NUMBERS,
    LANES,
    MASK,
    STEP_BYTES,
    STEP_NUMBERS,
    VECTORS_PER_STEP,
    WORDS,
    all_of,
)  # fmt: skip
from jitkernels.microkernels.weight_only_quant.grouped_dots import BlockDots

BY_TABLE = 4
"""How many of the eight weights of a word a table converts; other execution units convert the others."""


def _float(value: float) -> str:
    return "0x" + struct.pack(">d", value).hex().upper()


class FloatDots(BlockDots):
    """Of one row. permutes: the target has AVX-512."""

    kind = "floats"

    def __init__(self, permutes: bool, **tile: Any) -> None:
        super().__init__(**tile)
        self.permutes = permutes

    def declared(self) -> list[str]:
        lines = [
            *super().declared(),
            f"declare {FLOATS} @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, i32, {MASK}, {FLOATS})",
            f"declare <16 x i8> @llvm.masked.gather.v16i8.v16p0(<16 x ptr>, i32, {MASK}, <16 x i8>)",
        ]
        if self.permutes:
            lines.append(f"declare {FLOATS} @llvm.x86.avx512.permvar.sf.512({FLOATS}, {WORDS})")
        return lines

    def _permuted(self, vector: str, picks: str) -> str:
        return self.out.value(f"call {FLOATS} @llvm.x86.avx512.permvar.sf.512({FLOATS} {vector}, {WORDS} {picks})")

    def _sum_of_products(self, a: str, b: str, c: str) -> str:
        return self.out.value(f"call {FLOATS} @llvm.fmuladd.v16f32({FLOATS} {a}, {FLOATS} {b}, {FLOATS} {c})")

    def _products(self, words: list[str], number: str, zeros: list[str]) -> list[list[str]]:
        """Append the dot products of each word of a block of weights less zero points with their floats."""
        out, totals = self.out, [["zeroinitializer"] * 2 for _ in self.columns]
        first = out.value(f"mul nsw i64 {number}, {STEP_NUMBERS}")
        table = f"<{', '.join(f'float {_float(i - 8.0)}' for i in range(16))}>"
        by_table = BY_TABLE if self.permutes else 0
        high = [out.value(f"lshr {WORDS} {word}, {all_of('i32', 12)}") for word in words]
        for s in range(VECTORS_PER_STEP):
            at = out.value(f"add nsw i64 {first}, {LANES * s}")
            floats = out.value(f"load {FLOATS}, ptr {out.element('float', '%floats', at)}, align 64")
            for c in self.columns:
                if s < by_table:
                    moved = out.value(f"lshr {WORDS} {words[c]}, {all_of('i32', 4 * s)}") if s else words[c]
                    weights = self._permuted(table, moved)
                else:
                    weights = self._by_bits(words[c] if s < 5 else high[c], 4 * s - 12 * (s > 4))
                if self.shifted:
                    weights = out.value(f"fsub {FLOATS} {weights}, {zeros[c]}")
                totals[c][s % 2] = self._sum_of_products(weights, floats, totals[c][s % 2])
        return [[out.value(f"fadd {FLOATS} {left}, {right}") for left, right in totals]]

    def _by_bits(self, words: str, nibble: int) -> str:
        """Append four bits of words, less 8: they are the last bits of a float of a fixed exponent."""
        out = self.out
        there = out.value(f"and {WORDS} {words}, {all_of('i32', 15 << nibble)}")
        bits = out.value(f"or {WORDS} {there}, {all_of('i32', 127 + 23 - nibble << 23)}")
        floats = out.value(f"bitcast {WORDS} {bits} to {FLOATS}")
        return out.value(f"fsub {FLOATS} {floats}, {all_of('float', _float(2.0 ** (23 - nibble) + 8))}")

    def _numbers(self, zeros: str) -> str:
        """Append zero points as floats, less 8."""
        out = self.out
        wide = out.value(f"zext <16 x i8> {zeros} to {WORDS}")
        less = out.value(f"sub {WORDS} {wide}, {all_of('i32', 8)}")
        return out.value(f"sitofp {WORDS} {less} to {FLOATS}")

    def _few(self) -> None:
        """Write the loop over several groups at a time: scales are broadcast over the words of their groups."""
        out = self.out
        out.line("%less = sub nsw i64 4, %shift")
        out.line("%per = shl i64 1, %less")
        out.line("%short = trunc i64 %shift to i32")
        picks = out.value(f"lshr {WORDS} {LANE_NUMBERS}, {self._same('i32', '%short')}")

        def step(i: str, masked: bool) -> tuple[list[list[str]], list[str]]:
            at = out.value(f"mul nsw i64 {i}, {STEP_BYTES}")
            mask = ""
            if masked:
                mask = self._below(out.value(f"ashr i64 {out.value(f'sub nsw i64 %bytes, {at}')}, 2"))
            words = [self._words(c, at, mask) for c in self.columns]
            group = out.value(f"mul nsw i64 {i}, %per")
            # The mask of a table lookup is by groups, that of a gather by words.
            live = self._live(group, masked) if self.permutes else mask or all_of("i1", "true")
            zeros = [self._spread("i8", f"%zero{c}", group, picks, live) for c in self.columns if self.shifted]
            if not masked:
                self._fetch(at, STEP_BYTES)
                self._fetch_of_groups(group, 4)
            products = self._products(words, i, zeros)
            return products, [self._spread("float", f"%scale{c}", group, picks, live) for c in self.columns]

        self._blocks(step)

    def _spread(self, kind: str, base: str, group: str, picks: str, live: str) -> str:
        """Append the numbers of groups, from `group` on, broadcast over the words of their groups, as floats."""
        out = self.out
        address = out.element(kind, base, group)
        suffix, vector = ("v16f32", FLOATS) if kind == "float" else ("v16i8", "<16 x i8>")
        if not self.permutes:
            wide = out.value(f"zext {WORDS} {picks} to <{LANES} x i64>")
            addresses = out.value(f"getelementptr {kind}, ptr {address}, <{LANES} x i64> {wide}")
            result = out.value(
                f"call {vector} @llvm.masked.gather.{suffix}.v16p0(<16 x ptr> {addresses}, i32 1, {MASK} {live}, "
                f"{vector} zeroinitializer)"
            )
            return result if kind == "float" else self._numbers(result)
        result = out.value(
            f"call {vector} @llvm.masked.load.{suffix}.p0(ptr {address}, i32 1, {MASK} {live}, "
            f"{vector} zeroinitializer)"
        )
        return self._permuted(result if kind == "float" else self._numbers(result), picks)

    def _zero(self, zero: str) -> str:
        return self._numbers(self._same("i8", zero))

    def _loaded(self, c: int, at: str) -> str:
        return self._words(c, at)
