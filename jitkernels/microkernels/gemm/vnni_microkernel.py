"""The register tile of an int8 or bfloat16 GEMM, as LLVM IR text: several steps along k per instruction.

Four int8 numbers (two of bfloat16) that are adjacent along k form one word of 32 bits. A step takes a word of each row
of A and a word of each column of B and adds their dot products to the tile, one instruction for a vector of columns:
VPDPBUSD, VDPBF16PS. The epilogue scales and converts the sums before they leave their registers.

The text is made of strings alone, as that of `jitkernels.microkernels.gemm.microkernel` is.
"""

import struct

import numpy as np

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import Text

ARGUMENTS = (
    ("ptr", "a"), ("ptr", "b"), ("ptr", "start"), ("ptr", "row_scale"), ("ptr", "column_scale"), ("ptr", "c"),
    ("i64", "c_stride"), ("i64", "steps"), ("i64", "live_rows"), ("i64", "live_columns"),
)  # fmt: skip
C_ARGUMENTS = tuple("void*" if kind == "ptr" else "int64" for kind, _ in ARGUMENTS)
"""C types of the arguments: panels of words of A and B, initial int32 values of the sums, scales, and C."""
LANES = 16
"""Columns of a vector."""


@frozen_dataclass
class VnniTile:
    """``rows x (vectors * 16)`` sums.

    dots: "vpdpbusd" (unsigned A, signed B) or "vdpbf16ps". result: the LLVM type of elements of C. starts: sums begin
    with initial values of their columns. scaled: the epilogue multiplies sums by a scale of their row and one of their
    column, both of the type of C. edge: the last columns are masked. beta: the factor of the old C in sums of floats.
    """

    symbol: str
    dots: str
    rows: int
    vectors: int
    result: str
    starts: bool = False
    scaled: bool = False
    edge: bool = False
    beta: float = 0.0

    @property
    def width(self) -> int:
        return LANES * self.vectors

    def text(self) -> str:
        """Write the LLVM IR of the function and of what it calls."""
        return _VnniWriter(self).build()


class _VnniWriter:
    def __init__(self, tile: VnniTile) -> None:
        self.tile = tile
        self.out = Text()
        self.whole = tile.dots == "vpdpbusd"
        self.sum = f"<{LANES} x {'i32' if self.whole else 'float'}>"
        self.words = f"<{LANES} x i32>"
        self.packed = "<64 x i8>" if self.whole else "<32 x bfloat>"
        self.function = "@llvm.x86.avx512.vpdpbusd.512" if self.whole else "@llvm.x86.avx512bf16.dpbf16ps.512"
        self.cells = [(r, j) for r in range(tile.rows) for j in range(tile.vectors)]
        self.size = {"i32": 4, "float": 4, "double": 8, "bfloat": 2}[tile.result]
        self.element = f"<{LANES} x {tile.result}>"

    def build(self) -> str:
        tile, out = self.tile, self.out
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in ARGUMENTS)
        out.label("entry")
        begins = [self._start(j) for j in range(tile.vectors)]
        out.line("%some = icmp sgt i64 %steps, 0")
        out.line("br i1 %some, label %loop, label %done")
        out.label("loop")
        out.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
        for r, j in self.cells:
            out.line(f"%in{r}_{j} = phi {self.sum} [ {begins[j]}, %entry ], [ %acc{r}_{j}, %loop ]")
        self._step()
        out.line("%next = add nuw nsw i64 %i, 1")
        out.line("%more = icmp slt i64 %next, %steps")
        out.line("br i1 %more, label %loop, label %done")
        out.label("done")
        for r, j in self.cells:
            out.line(f"%total{r}_{j} = phi {self.sum} [ {begins[j]}, %entry ], [ %acc{r}_{j}, %loop ]")
        self._finish()
        body = "\n".join(out.lines)
        return f"{self._declared()}define void @{tile.symbol}({arguments}) noinline nounwind {{\n{body}\n}}\n"

    def _declared(self) -> str:
        mask = f"<{LANES} x i1>"
        lines = [f"declare {self.sum} {self.function}({self.sum}, {self.packed}, {self.packed})"]
        if self.tile.beta:
            lines.append(f"declare {self.sum} @llvm.fmuladd.v{LANES}f32({self.sum}, {self.sum}, {self.sum})")
        if self.tile.edge:
            name, vector = f"v{LANES}{_suffix(self.tile.result)}.p0", self.element
            lines += [
                f"declare void @llvm.masked.store.{name}({vector}, ptr, i32, {mask})",
                f"declare {vector} @llvm.masked.load.{name}(ptr, i32, {mask}, {vector})",
            ]
        return "\n".join(lines) + "\n"

    def _start(self, j: int) -> str:
        if not self.tile.starts:
            return "zeroinitializer"
        address = self.out.element("i32", "%start", LANES * j)
        return self.out.value(f"load {self.words}, ptr {address}, align 4")

    def _step(self) -> None:
        tile, out = self.tile, self.out
        at_b = out.value(f"mul nuw nsw i64 %i, {tile.width}")
        at_a = out.value(f"mul nuw nsw i64 %i, {tile.rows}")
        b_row, a_row = out.element("i32", "%b", at_b), out.element("i32", "%a", at_a)
        columns = []
        for j in range(tile.vectors):
            words = out.value(f"load {self.words}, ptr {out.element('i32', b_row, LANES * j)}, align 4")
            columns.append(out.value(f"bitcast {self.words} {words} to {self.packed}"))
        for r in range(tile.rows):
            word = out.value(f"load i32, ptr {out.element('i32', a_row, r)}, align 4")
            first_lane = out.value(f"insertelement {self.words} poison, i32 {word}, i64 0")
            every = out.value(
                f"shufflevector {self.words} {first_lane}, {self.words} poison, <{LANES} x i32> zeroinitializer"
            )
            row = out.value(f"bitcast {self.words} {every} to {self.packed}")
            for j in range(tile.vectors):
                out.line(
                    f"%acc{r}_{j} = call {self.sum} {self.function}({self.sum} %in{r}_{j}, {self.packed} {row}, "
                    f"{self.packed} {columns[j]})"
                )

    def _finish(self) -> None:
        tile, out = self.tile, self.out
        masks = [out.lanes_below("%live_columns", LANES, LANES * j) for j in range(tile.vectors) if tile.edge]
        columns = [self._column_scale(j, masks) for j in range(tile.vectors)] if tile.scaled else []
        for r in range(tile.rows):
            if r > 0:
                out.line(f"%live{r} = icmp slt i64 {r}, %live_rows")
                out.line(f"br i1 %live{r}, label %row{r}, label %end")
                out.label(f"row{r}")
            row = out.element(tile.result, "%c", out.times(r, "%c_stride"))
            scale = self._row_scale(r) if tile.scaled else ""
            for j in range(tile.vectors):
                address = out.element(tile.result, row, LANES * j)
                total = f"%total{r}_{j}"
                if tile.beta:
                    total = self._added(total, address, masks[j] if masks else "")
                value = self._result(total, scale, columns[j] if columns else "")
                if tile.edge:
                    out.line(
                        f"call void @llvm.masked.store.v{LANES}{_suffix(tile.result)}.p0({self.element} {value}, "
                        f"ptr {address}, i32 {self.size}, <{LANES} x i1> {masks[j]})"
                    )
                else:
                    out.line(f"store {self.element} {value}, ptr {address}, align {self.size}")
        out.line("br label %end")
        out.label("end")
        out.line("ret void")

    def _added(self, total: str, address: str, mask: str) -> str:
        """Append ``total + beta * C``."""
        out, bits = self.out, struct.unpack("<Q", struct.pack("<d", float(np.float32(self.tile.beta))))[0]
        old = self._loaded(address, mask)
        wide = out.value(f"fpext {self.element} {old} to {self.sum}")
        return out.value(
            f"call {self.sum} @llvm.fmuladd.v{LANES}f32({self.sum} {wide}, {self.sum} splat (float 0x{bits:016X}), "
            f"{self.sum} {total})"
        )

    def _loaded(self, address: str, mask: str) -> str:
        """Append a load of elements of C; masked lanes are zeros."""
        kind = self.tile.result
        if not mask:
            return self.out.value(f"load {self.element}, ptr {address}, align {self.size}")
        return self.out.value(
            f"call {self.element} @llvm.masked.load.v{LANES}{_suffix(kind)}.p0(ptr {address}, i32 {self.size}, "
            f"<{LANES} x i1> {mask}, {self.element} zeroinitializer)"
        )

    def _column_scale(self, j: int, masks: list[str]) -> str:
        out, kind = self.out, self.tile.result
        address = out.element(kind, "%column_scale", LANES * j)
        return self._loaded(address, masks[j] if masks else "")

    def _row_scale(self, r: int) -> str:
        out, kind = self.out, self.tile.result
        number = out.value(f"load {kind}, ptr {out.element(kind, '%row_scale', r)}, align {self.size}")
        first_lane = out.value(f"insertelement {self.element} poison, {kind} {number}, i64 0")
        return out.value(
            f"shufflevector {self.element} {first_lane}, {self.element} poison, <{LANES} x i32> zeroinitializer"
        )

    def _result(self, total: str, row: str, column: str) -> str:
        out = self.out
        if self.tile.scaled:
            factor = out.value(f"fmul {self.element} {row}, {column}")
            number = out.value(f"sitofp {self.words} {total} to {self.element}")
            return out.value(f"fmul {self.element} {number}, {factor}")
        if self.tile.result == "bfloat":
            return out.value(f"fptrunc {self.sum} {total} to {self.element}")
        return total


def _suffix(kind: str) -> str:
    return {"i32": "i32", "float": "f32", "double": "f64", "bfloat": "bf16"}[kind]
