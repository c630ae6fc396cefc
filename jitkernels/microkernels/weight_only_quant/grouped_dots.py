"""Base class of dot products with weights whose groups are whole blocks, as LLVM IR text."""

from abc import abstractmethod
from typing import Any

from jitkernels.microkernels.weight_only_quant.dot_emitter import DotWriter


class BlockDots(DotWriter):
    """Loop over groups and their blocks: a subclass defines a block and its products."""

    @abstractmethod
    def _zero(self, zero: str) -> str:
        """Append the broadcast of the zero point of a group, a byte."""

    @abstractmethod
    def _loaded(self, c: int, at: str) -> Any:
        """Append a load of the words of a block of a column."""

    @abstractmethod
    def _products(self, words: list[Any], number: str, zeros: list[str]) -> list[list[str]]:
        """Append the dot products of block `number`: weights less zero points with floats, by row and column."""

    def _many(self) -> None:
        """Write the loop over groups, each of whole blocks."""
        out = self.out
        out.line(f"%blocks = sdiv i64 %half, {self.loaded}")
        self._begin("%groups")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %last ]")
        self._carried("before", "entry", "", "last")
        out.line("%first = mul nsw i64 %i, %blocks")
        scales, zeros = [], []
        for c in self.columns:
            scale = out.value(f"load float, ptr {out.element('float', f'%scale{c}', '%i')}, align 4")
            scales.append(self._same("float", scale))
            if self.shifted:
                zero = out.value(f"load i8, ptr {out.element('i8', f'%zero{c}', '%i')}, align 1")
                zeros.append(self._zero(zero))
        self._fetch_of_groups("%i", 1)
        out.line("br label %inner")
        out.label("inner")
        out.line("%v = phi i64 [ 0, %loop ], [ %v_next, %inner ]")
        self._carried("in", "loop", "%before", "inner")
        number = out.value("add nsw i64 %first, %v")
        at = out.value(f"mul nsw i64 {number}, {self.loaded}")
        words = [self._loaded(c, at) for c in self.columns]
        self._fetch(at, self.loaded)
        self._add(self._products(words, number, zeros), scales, "in")
        out.line("%v_next = add nuw nsw i64 %v, 1")
        out.line("%inside = icmp slt i64 %v_next, %blocks")
        out.line("br i1 %inside, label %inner, label %last")
        out.label("last")
        self._end("%groups")
