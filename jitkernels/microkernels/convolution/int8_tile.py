"""The register tile of a convolution of 8-bit integers, as LLVM IR text: four steps along a run per instruction.

The loops are those of the tile of floats (`jitkernels.microkernels.convolution.tile`) in units of bytes: a step
broadcasts a word of four neighbours of the image for each pixel, and multiplies it with words of packed weights, one
for each filter. Sums are exact in int32: VPDPBUSD and USDOT do not saturate, and without them PMADDWD gets bytes
widened to 16 bits, as the sums of two products of bytes do not fit into these. The epilogue scales, rounds and limits
the sums in their registers.
"""

from __future__ import annotations

import struct
from typing import Any

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.tile_text import ROW_PIXELS, ConvolutionTileText, by_pixels

WORD_BYTES = 4
COPIED_BYTES = 32
"""Bytes that each iteration of a copy moves."""
PANEL_BYTES = WORD_BYTES * 32
"""A word of weights of each of the 32 filters in a panel."""
INT8_TILE_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "pixel_stride"), ("i64", "lead"), ("i64", "rows"), ("i64", "row_stride"),
    ("i64", "runs"), ("i64", "run_stride"), ("i64", "run"),
    ("ptr", "w"), ("i64", "w_offset"), ("i64", "w_stride"), ("i64", "ahead_offset"), ("i64", "ahead_stride"),
    ("ptr", "start"), ("ptr", "scale"), ("i64", "first"), ("ptr", "limits"),
    ("ptr", "y"), ("i64", "y_offset"), ("i64", "y_stride"), ("ptr", "strip"), ("i64", "live"), ("i64", "pixels"),
)  # fmt: skip
"""As those of the tile of floats, with strides and offsets in bytes, and `run` in words. `start` and `scale` begin at
the filter `first`, and have numbers for all filters of a tile. `limits`: the least and the largest float before the
zero point of the result is added, and that, as int32. Results of less than all filters go to `strip`."""
COPY_ARGUMENTS = (
    ("ptr", "source"), ("i64", "source_offset"), ("ptr", "target"), ("i64", "target_offset"), ("i64", "count"),
    ("i64", "flip"),
)  # fmt: skip
FILL_ARGUMENTS = (("ptr", "target"), ("i64", "target_offset"), ("i64", "count"), ("i64", "value"))
INT8_C_ARGUMENTS, COPY_C_ARGUMENTS, FILL_C_ARGUMENTS = (
    tuple("void*" if kind == "ptr" else "int64" for kind, _ in arguments)
    for arguments in (INT8_TILE_ARGUMENTS, COPY_ARGUMENTS, FILL_ARGUMENTS)
)
INTEGER_PART = 1.5 * 2.0**23
"""A float whose last bit is 1: adding it rounds small numbers to integers, ties to even, in the last bits."""


@frozen_dataclass
class DotProduct:
    """How words are multiplied: the instruction, the lanes of a sum, and the pixels of a tile that registers hold."""

    name: str
    lanes: int
    pixels: int


@frozen_dataclass
class Int8Tile:
    """Compile-time parameters of the functions for 1 to `pixels` pixels, and of `symbol`, which calls the right one.

    y_dtype: the type of results. relu: those of int32 and float32 are 0 or more; bytes are limited by `limits` alone.
    """

    symbol: str
    dot: DotProduct
    vectors: int
    y_dtype: str
    relu: bool
    scaled: bool
    depthwise: bool = False
    strided_runs: bool = False
    dtype: str = "uint8"
    panel: int = PANEL_BYTES
    has_residual: bool = False
    bordered: bool = False

    @property
    def lanes(self) -> int:
        return self.dot.lanes

    def text(self) -> str:
        """Write the IR of `symbol`, and the declarations that it needs."""
        tiles = [_Int8TileText(self, count).build() for count in range(1, self.dot.pixels + 1)]
        declared = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n" + _declared(self.dot)
        return declared + by_pixels(self.symbol, tiles, INT8_TILE_ARGUMENTS, jumps=True)


def _intrinsic(dot: DotProduct) -> tuple[str, str]:
    """The intrinsic of a dot product, and the type of its factors."""
    if dot.name == "vpdpbusd":
        return f"@llvm.x86.avx512.vpdpbusd.{32 * dot.lanes}", f"<{4 * dot.lanes} x i8>"
    if dot.name == "usdot":
        return f"@llvm.aarch64.neon.usdot.v{dot.lanes}i32.v{4 * dot.lanes}i8", f"<{4 * dot.lanes} x i8>"
    names = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
    return f"@llvm.x86.{names[dot.lanes]}", f"<{2 * dot.lanes} x i16>"


def _declared(dot: DotProduct) -> str:
    if dot.name == "mul":
        return ""
    function, factors = _intrinsic(dot)
    sums = f"<{dot.lanes} x i32>"
    arguments = f"{factors}, {factors}" if dot.name == "pmaddwd" else f"{sums}, {factors}, {factors}"
    return f"declare {sums} {function}({arguments})\n"


class _Int8TileText(ConvolutionTileText):
    """Writer of the tile of one number of pixels: what differs from floats."""

    arguments = INT8_TILE_ARGUMENTS
    pointers = ("w", "ahead")
    step = WORD_BYTES
    tile: Any

    def __init__(self, tile: Int8Tile, pixels: int) -> None:
        super().__init__(tile, pixels)  # type: ignore[arg-type]  # it has all that the loops read
        self.vector, self.floats = f"<{tile.lanes} x i32>", f"<{tile.lanes} x float>"

    def _entry(self) -> None:
        out, tile = self.out, self.tile
        out.label("entry")
        for name in ("x", "w", "y"):
            out.lines.append(f"  %{name}_start = getelementptr i8, ptr %{name}, i64 %{name}_offset")
        out.lines.append("  %ahead_start = getelementptr i8, ptr %w, i64 %ahead_offset")
        self._offsets_of_pixels()
        if not tile.depthwise:
            out.lines.append("  %has_run = icmp ne i64 %run, 0")
        starts = self._of_filters("i32", "%start")
        out.line("br label %begin")
        out.label("begin")
        for r, j in self.cells:
            out.lines.append(f"  %begin{r}_{j} = bitcast {self.vector} {starts[j]} to {self.vector}")
        out.line("br label %row")

    def _of_filters(self, kind: str, base: str) -> list[str]:
        """Append loads of a number of each filter."""
        out, lanes = self.out, self.tile.lanes
        first = out.element(kind, base, "%first")
        addresses = [out.element(kind, first, j * lanes) for j in range(self.tile.vectors)]
        return [out.value(f"load <{lanes} x {kind}>, ptr {address}, align 4") for address in addresses]

    def _words(self, pointer: str) -> list[list[str]]:
        """Append loads of a word of weights of each filter, as factors of dot products."""
        addresses = [
            self.out.element("i8", pointer, WORD_BYTES * j * self.tile.lanes) for j in range(self.tile.vectors)
        ]
        return [self._weights(self.out.value(f"load {self.vector}, ptr {address}, align 1")) for address in addresses]

    def _cast(self, value: str, to: str) -> str:
        return self.out.value(f"bitcast {self.vector} {value} to {to}")

    def _weights(self, words: str) -> list[str]:
        """Append the factors that signed bytes make: all four at once, pairs of 16 bits, or each by itself."""
        out, lanes, name = self.out, self.tile.lanes, self.tile.dot.name
        if name == "mul":
            words_up = [out.value(f"shl {self.vector} {words}, splat (i32 {24 - 8 * i})") for i in range(4)]
            return [out.value(f"ashr {self.vector} {value}, splat (i32 24)") for value in words_up]
        factors = self._cast(words, _intrinsic(self.tile.dot)[1])
        if name != "pmaddwd":
            return [factors]
        halves = f"<{2 * lanes} x i16>"
        raised = out.value(f"shl {halves} {factors}, splat (i16 8)")
        return [out.value(f"ashr {halves} {value}, splat (i16 8)") for value in (raised, factors)]

    def _pixel(self, words: str) -> list[str]:
        """Append the factors that unsigned bytes make."""
        out, lanes, name = self.out, self.tile.lanes, self.tile.dot.name
        if name == "mul":
            moved = [out.value(f"lshr {self.vector} {words}, splat (i32 {8 * i})") for i in range(4)]
            return [out.value(f"and {self.vector} {value}, splat (i32 255)") for value in moved]
        factors = self._cast(words, _intrinsic(self.tile.dot)[1])
        if name != "pmaddwd":
            return [factors]
        halves = f"<{2 * lanes} x i16>"
        return [
            out.value(f"and {halves} {factors}, splat (i16 255)"),
            out.value(f"lshr {halves} {factors}, splat (i16 8)"),
        ]

    def _add_products(self, x: list[str], w: list[str], total: str, name: str) -> None:
        """Append ``name = total + x * w``, of the factors that both have."""
        out, dot = self.out, self.tile.dot
        for i, (left, right) in enumerate(zip(x, w, strict=False)):
            result = name if i + 1 == min(len(x), len(w)) else f"{name}_{i}"
            if dot.name in ("vpdpbusd", "usdot"):
                function, factors = _intrinsic(dot)
                out.line(
                    f"{result} = call {self.vector} {function}({self.vector} {total}, {factors} {left}, "
                    f"{factors} {right})"
                )
            else:
                if dot.name == "mul":
                    product = out.value(f"mul {self.vector} {left}, {right}")
                else:
                    function, factors = _intrinsic(dot)
                    product = out.value(f"call {self.vector} {function}({factors} {left}, {factors} {right})")
                out.line(f"{result} = add {self.vector} {total}, {product}")
            total = result

    def _dense_step(self, name: str, pixels: range) -> None:
        out, lanes = self.out, self.tile.lanes
        weights = self._words(f"%w_{name}")
        for r in pixels:
            word = out.value(f"load i32, ptr {self._address_of_pixel(name, r)}, align 1")
            first = out.value(f"insertelement {self.vector} poison, i32 {word}, i64 0")
            every = out.value(
                f"shufflevector {self.vector} {first}, {self.vector} poison, <{lanes} x i32> zeroinitializer"
            )
            pixel = self._pixel(every)
            for j in range(self.tile.vectors):
                self._add_products(pixel, weights[j], f"%acc{r}_{j}_{name}", f"%acc{r}_{j}_{name}_next")

    def _depthwise_tap(self) -> None:
        """Append one tap: words that hold one byte each, of the image and of the weights."""
        out, lanes = self.out, self.tile.lanes
        out.line("br label %tap_end")
        out.label("tap_end")
        weights = self._words("%w_tap")
        for r in range(self.pixels):
            if r % ROW_PIXELS == 0:
                base = out.element("i8", "%x_tap", self.leads[r // ROW_PIXELS])
            at = out.element("i8", base, self.steps[r])
            for j in range(self.tile.vectors):
                loaded = out.value(f"load <{lanes} x i8>, ptr {out.element('i8', at, j * lanes)}, align 1")
                words = out.value(f"zext <{lanes} x i8> {loaded} to {self.vector}")
                wide = [words] if self.tile.dot.name == "mul" else [self._cast(words, _intrinsic(self.tile.dot)[1])]
                self._add_products(wide, weights[j], f"%acc{r}_{j}_tap", f"%acc{r}_{j}_end")
        out.lines.append("  %w_end = getelementptr i8, ptr %w_tap, i64 %w_stride")
        out.lines.append("  %ahead_end = getelementptr i8, ptr %ahead_tap, i64 0")

    def _store(self, sums: str) -> None:
        """Append the epilogue, and stores of all filters of the tile."""
        out, tile = self.out, self.tile
        scales = self._of_filters("float", "%scale") if tile.scaled else []
        limits = self._limits() if tile.y_dtype in ("int8", "uint8") else []
        kind, size = {"int32": ("i32", 4), "float32": ("float", 4)}.get(tile.y_dtype, ("i8", 1))
        out.lines += [
            f"  %is_part = icmp slt i64 %live, {self.width}",
            "  %to = select i1 %is_part, ptr %strip, ptr %y_start",
            f"  %to_stride = select i1 %is_part, i64 {self.width * size}, i64 %y_stride",
        ]
        for r in range(self.pixels):
            row = out.element("i8", "%to", out.times(r, "%to_stride"))
            for j in range(tile.vectors):
                value = self._result(sums.format(r, j), scales[j] if scales else "", limits)
                out.line(
                    f"store <{tile.lanes} x {kind}> {value}, ptr {out.element(kind, row, j * tile.lanes)}, align 1"
                )
        out.line("ret void")

    def _limits(self) -> list[str]:
        """Append broadcasts of the least and the largest float, and of the zero point."""
        out, lanes, values = self.out, self.tile.lanes, []
        for i, kind in enumerate(("float", "float", "i32")):
            vector = f"<{lanes} x {kind}>"
            number = out.value(f"load {kind}, ptr {out.element('i32', '%limits', i)}, align 4")
            first = out.value(f"insertelement {vector} poison, {kind} {number}, i64 0")
            values.append(
                out.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")
            )
        return values

    def _select(self, comparison: str, vector: str, value: str, limit: str) -> str:
        """Append ``value if value < limit else limit``, of this comparison."""
        is_kept = self.out.value(f"{comparison} {vector} {value}, {limit}")
        return self.out.value(f"select <{self.tile.lanes} x i1> {is_kept}, {vector} {value}, {vector} {limit}")

    def _result(self, total: str, scale: str, limits: list[str]) -> str:
        """Append what becomes of a sum. NaN, of which no comparison holds, becomes the least number."""
        out, tile, floats = self.out, self.tile, self.floats
        if tile.y_dtype == "int32":
            return self._select("icmp sgt", self.vector, total, "zeroinitializer") if tile.relu else total
        value = out.value(f"sitofp {self.vector} {total} to {floats}")
        if scale:
            value = out.value(f"fmul {floats} {value}, {scale}")
        if tile.y_dtype == "float32":
            if not tile.relu:
                return value
            is_negative = out.value(f"fcmp olt {floats} {value}, zeroinitializer")
            return out.value(f"select <{tile.lanes} x i1> {is_negative}, {floats} zeroinitializer, {floats} {value}")
        least, most, zero = limits
        value = self._select("fcmp olt", floats, self._select("fcmp ogt", floats, value, least), most)
        bits = struct.unpack("<Q", struct.pack("<d", INTEGER_PART))[0]
        sum_ = out.value(f"fadd {floats} {value}, splat (float 0x{bits:016X})")
        steps = out.value(f"add {self.vector} {out.value(f'bitcast {floats} {sum_} to {self.vector}')}, {zero}")
        return out.value(f"trunc {self.vector} {steps} to <{tile.lanes} x i8>")


def byte_copy(symbol: str) -> str:
    """Write ``(source, source_offset, target, target_offset, count, flip)``: a copy of bytes, XORed with `flip`.

    The last vector overlaps the one before it, so that nothing behind the source is read.
    """
    vector, arguments = f"<{COPIED_BYTES} x i8>", ", ".join(f"{kind} %{name}" for kind, name in COPY_ARGUMENTS)
    return f"""define void @{symbol}({arguments}) noinline nounwind {{
entry:
  %from = getelementptr i8, ptr %source, i64 %source_offset
  %to = getelementptr i8, ptr %target, i64 %target_offset
  %bits = trunc i64 %flip to i8
  %first = insertelement {vector} poison, i8 %bits, i64 0
  %every = shufflevector {vector} %first, {vector} poison, <{COPIED_BYTES} x i32> zeroinitializer
  %last = sub i64 %count, {COPIED_BYTES}
  %is_short = icmp slt i64 %last, 0
  br i1 %is_short, label %bytes, label %vectors
vectors:
  %i = phi i64 [ 0, %entry ], [ %next, %vectors ]
  %is_end = icmp sgt i64 %i, %last
  %at = select i1 %is_end, i64 %last, i64 %i
  %x = getelementptr i8, ptr %from, i64 %at
  %y = getelementptr i8, ptr %to, i64 %at
  %loaded = load {vector}, ptr %x, align 1
  %flipped = xor {vector} %loaded, %every
  store {vector} %flipped, ptr %y, align 1
  %next = add i64 %i, {COPIED_BYTES}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %vectors, label %done
bytes:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %byte, label %done
byte:
  %k = phi i64 [ 0, %bytes ], [ %k_next, %byte ]
  %x1 = getelementptr i8, ptr %from, i64 %k
  %y1 = getelementptr i8, ptr %to, i64 %k
  %loaded1 = load i8, ptr %x1, align 1
  %flipped1 = xor i8 %loaded1, %bits
  store i8 %flipped1, ptr %y1, align 1
  %k_next = add i64 %k, 1
  %more1 = icmp slt i64 %k_next, %count
  br i1 %more1, label %byte, label %done
done:
  ret void
}}
"""


def byte_fill(symbol: str) -> str:
    """Write ``(target, target_offset, count, value)``: whole vectors of a byte, the last of which reaches beyond."""
    vector, arguments = f"<{COPIED_BYTES} x i8>", ", ".join(f"{kind} %{name}" for kind, name in FILL_ARGUMENTS)
    return f"""define void @{symbol}({arguments}) noinline nounwind {{
entry:
  %to = getelementptr i8, ptr %target, i64 %target_offset
  %byte = trunc i64 %value to i8
  %first = insertelement {vector} poison, i8 %byte, i64 0
  %every = shufflevector {vector} %first, {vector} poison, <{COPIED_BYTES} x i32> zeroinitializer
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %vectors, label %done
vectors:
  %i = phi i64 [ 0, %entry ], [ %next, %vectors ]
  %y = getelementptr i8, ptr %to, i64 %i
  store {vector} %every, ptr %y, align 1
  %next = add i64 %i, {COPIED_BYTES}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %vectors, label %done
done:
  ret void
}}
"""
