"""The register tile of convolutions with few filters, as LLVM IR text: several pixels share a vector.

Each has a segment of the vector, with a lane for each filter. The elements of the image are repeated, once for each
lane of a segment, so that one load takes those of all pixels of a vector, which are neighbours: per tap the tile loads
one vector of weights, the same in each segment, and issues a fused multiply-add with a vector of the image for each of
its sums. Lanes that belong to no filter are computed and not stored.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import Text, element_size, element_type

#: IR arguments of a tile, in order.  Strides and offsets are in elements.
SHARED_TILE_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "rows"), ("i64", "row_stride"), ("i64", "taps"),
    ("ptr", "w"), ("i64", "w_offset"), ("ptr", "bias"), ("i64", "bias_offset"),
    ("ptr", "y"), ("i64", "y_offset"), ("i64", "filters"), ("i64", "pixels"),
)  # fmt: skip

REPETITION_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "x_stride"), ("ptr", "y"), ("i64", "y_offset"), ("i64", "count"),
)  # fmt: skip


def repetition(symbol: str, dtype: str, elements: int, lanes: int) -> str:
    """Write a function that copies `count` groups of so many elements, `x_stride` apart, repeated to so many lanes."""
    kind, align, out = element_type(dtype), element_size(dtype), Text()
    out.label("entry")
    for name in ("x", "y"):
        out.lines.append(f"  %{name}_start = getelementptr {kind}, ptr %{name}, i64 %{name}_offset")
    out.lines.append("  %has_any = icmp sgt i64 %count, 0")
    out.line("br i1 %has_any, label %copy, label %return")
    out.label("copy")
    out.lines.append("  %left = phi i64 [ %count, %entry ], [ %left_next, %copy ]")
    for name in ("x", "y"):
        out.lines.append(f"  %{name}_at = phi ptr [ %{name}_start, %entry ], [ %{name}_next, %copy ]")
    group = f"<{elements} x {kind}>"
    value = out.value(f"load {group}, ptr %x_at, align {align}")
    numbers = ", ".join(f"i32 {lane % elements}" for lane in range(lanes))
    every = out.value(f"shufflevector {group} {value}, {group} poison, <{lanes} x i32> <{numbers}>")
    out.line(f"store <{lanes} x {kind}> {every}, ptr %y_at, align {align}")
    out.lines.append(f"  %x_next = getelementptr {kind}, ptr %x_at, i64 %x_stride")
    out.lines.append(f"  %y_next = getelementptr {kind}, ptr %y_at, i64 {lanes}")
    out.lines.append("  %left_next = add nsw i64 %left, -1")
    out.lines.append("  %more = icmp ne i64 %left_next, 0")
    out.line("br i1 %more, label %copy, label %return")
    out.label("return")
    out.line("ret void")
    arguments = ", ".join(f"{one} {'noalias ' if one == 'ptr' else ''}%{name}" for one, name in REPETITION_ARGUMENTS)
    return "\n".join([f"define void @{symbol}({arguments}) noinline nounwind {{", *out.lines, "}\n"])


@frozen_dataclass
class SharedVectorTile:
    """Compile-time parameters of the functions for 1 to `vectors` vectors, and of `symbol`, which calls the right one.

    For each of `rows` rows of repeated elements, and each of `taps` taps in it, a vector of weights is multiplied; the
    next tap begins a segment further on. The sums begin with a vector of biases. `pixels` pixels are stored, with
    `filters` elements each: in their order, as the unused lanes of a segment lie where the next pixel does. The last
    vector has one pixel at least.
    """

    symbol: str
    dtype: str
    lanes: int
    segment: int
    vectors: int
    relu: bool

    def text(self) -> str:
        """Write the IR of `symbol`, and the declarations that it needs."""
        kind, size = element_type(self.dtype), 8 * element_size(self.dtype)
        typed = ", ".join(f"{one} %{name}" for one, name in SHARED_TILE_ARGUMENTS)
        whole = f"<{self.lanes} x {kind}>"
        lines = [f"declare {whole} @llvm.fmuladd.v{self.lanes}f{size}({whole}, {whole}, {whole})"]
        for lanes in dict.fromkeys((self.lanes, self.segment)):
            vector = f"<{lanes} x {kind}>"
            lines.append(f"declare void @llvm.masked.store.v{lanes}f{size}.p0({vector}, ptr, i32, <{lanes} x i1>)")
        cases = range(1, self.vectors + 1)
        lines += [_SharedTileText(self, count).build() for count in cases]
        per = self.lanes // self.segment
        lines += [f"define void @{self.symbol}({typed}) alwaysinline nounwind {{"]
        lines += [
            f"  %more = add i64 %pixels, {per - 1}",
            f"  %count = udiv i64 %more, {per}",
            "  switch i64 %count, label %done [",
        ]
        lines += [f"    i64 {count}, label %of{count}" for count in cases]
        lines.append("  ]")
        for count in cases:
            lines += [f"of{count}:", f"  call void @{self.symbol}_{count}({typed})", "  br label %done"]
        return "\n".join([*lines, "done:", "  ret void", "}\n"])


class _SharedTileText:
    """Writer of the tile of one number of vectors."""

    def __init__(self, tile: SharedVectorTile, count: int) -> None:
        self.tile, self.count, self.out = tile, count, Text()
        self.kind, self.align = element_type(tile.dtype), element_size(tile.dtype)
        self.vector, self.part = f"<{tile.lanes} x {self.kind}>", f"<{tile.segment} x {self.kind}>"
        self.per = tile.lanes // tile.segment

    def build(self) -> str:
        out, kind = self.out, self.kind
        arguments = ", ".join(f"{one} {'noalias ' if one == 'ptr' else ''}%{n}" for one, n in SHARED_TILE_ARGUMENTS)
        out.label("entry")
        for name in ("x", "w", "bias", "y"):
            out.lines.append(f"  %{name}_start = getelementptr {kind}, ptr %{name}, i64 %{name}_offset")
        out.lines.append(f"  %bias_vector = load {self.vector}, ptr %bias_start, align {self.align}")
        out.line("br label %row")
        self._begin("row", "rows", "entry", {"x": "%x_start", "w": "%w_start"}, "%bias_vector", "tap")
        out.line("br label %tap")
        self._begin("tap", "taps", "row", {"x": "%x_row", "w": "%w_row"}, "%acc{}_row", "tap")
        weights = out.value(f"load {self.vector}, ptr %w_tap, align {self.align}")
        for i in range(self.count):
            at = out.element(kind, "%x_tap", i * self.tile.lanes)
            value = out.value(f"load {self.vector}, ptr {at}, align {self.align}")
            out.lines.append(
                f"  %acc{i}_next = call {self.vector} @llvm.fmuladd.v{self.tile.lanes}f{8 * self.align}"
                f"({self.vector} {value}, {self.vector} {weights}, {self.vector} %acc{i}_tap)"
            )
        out.lines.append(f"  %x_tap_next = getelementptr {kind}, ptr %x_tap, i64 {self.tile.segment}")
        out.lines.append(f"  %w_tap_next = getelementptr {kind}, ptr %w_tap, i64 {self.tile.lanes}")
        self._next("tap", "row_end")
        out.label("row_end")
        out.lines.append(f"  %x_row_next = getelementptr {kind}, ptr %x_row, i64 %row_stride")
        self._next("row", "store")
        out.label("store")
        self._store()
        head = f"define internal void @{self.tile.symbol}_{self.count}({arguments}) noinline nounwind {{"
        return "\n".join([head, *out.lines, "}"])

    def _begin(self, name: str, count: str, before: str, starts: dict[str, str], sums: str, inner: str) -> None:
        """Begin a loop of `count` iterations, which ends with the block that jumps back to it."""
        out, after = self.out, name if name == inner else f"{name}_end"
        out.label(name)
        out.lines.append(f"  %{name}_left = phi i64 [ %{count}, %{before} ], [ %{name}_next, %{after} ]")
        for pointer, start in starts.items():
            ends = f"%{pointer}_{inner}_next" if pointer == "w" else f"%{pointer}_{name}_next"
            out.lines.append(f"  %{pointer}_{name} = phi ptr [ {start}, %{before} ], [ {ends}, %{after} ]")
        for i in range(self.count):
            pairs = f"[ {sums.format(i)}, %{before} ], [ %acc{i}_next, %{after} ]"
            out.lines.append(f"  %acc{i}_{name} = phi {self.vector} {pairs}")

    def _next(self, name: str, after: str) -> None:
        out = self.out
        out.lines.append(f"  %{name}_next = add nsw i64 %{name}_left, -1")
        out.lines.append(f"  %{name}_more = icmp ne i64 %{name}_next, 0")
        out.line(f"br i1 %{name}_more, label %{name}, label %{after}")

    def _store(self) -> None:
        """Append the activation and the stores: whole vectors where no lane is unused, else pixel by pixel."""
        out, tile, per = self.out, self.tile, self.per
        values = [f"%acc{i}_next" for i in range(self.count)]
        if tile.relu:
            zero = f"{self.vector} zeroinitializer"
            for i, value in enumerate(values):
                negative = out.value(f"fcmp olt {self.vector} {value}, zeroinitializer")
                values[i] = out.value(f"select <{tile.lanes} x i1> {negative}, {zero}, {self.vector} {value}")
        whole = (self.count - 1) * per
        out.lines.append(f"  %rest = sub nsw i64 %pixels, {whole}")
        out.lines.append(f"  %is_full = icmp eq i64 %filters, {tile.segment}")
        out.line("br i1 %is_full, label %full, label %parts")
        out.label("full")
        for i, value in enumerate(values[:-1]):
            address = out.element(self.kind, "%y_start", i * tile.lanes)
            out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")
        live = out.value(f"mul nsw i64 %rest, {tile.segment}")
        self._masked_store(values[-1], out.element(self.kind, "%y_start", whole * tile.segment), tile.lanes, live)
        out.line("ret void")
        out.label("parts")
        for pixel in range(whole):
            out.line(f"store {self.part} {self._segment(values, pixel)}, ptr {self._place(pixel)}, align {self.align}")
        for pixel in range(whole, whole + per):
            if pixel > whole:
                has_pixel = out.value(f"icmp sgt i64 %rest, {pixel - whole}")
                out.line(f"br i1 {has_pixel}, label %pixel{pixel}, label %return")
                out.label(f"pixel{pixel}")
            self._masked_store(self._segment(values, pixel), self._place(pixel), tile.segment, "%filters")
        out.line("br label %return")
        out.label("return")
        out.line("ret void")

    def _place(self, pixel: int) -> str:
        return self.out.element(self.kind, "%y_start", self.out.times(pixel, "%filters"))

    def _segment(self, values: list[str], pixel: int) -> str:
        i, part = divmod(pixel, self.per)
        lanes = ", ".join(f"i32 {part * self.tile.segment + lane}" for lane in range(self.tile.segment))
        return self.out.value(
            f"shufflevector {self.vector} {values[i]}, {self.vector} poison, <{self.tile.segment} x i32> <{lanes}>"
        )

    def _masked_store(self, value: str, address: str, lanes: int, live: str) -> None:
        out, wide = self.out, f"<{lanes} x i64>"
        first = out.value(f"insertelement {wide} poison, i64 {live}, i64 0")
        every = out.value(f"shufflevector {wide} {first}, {wide} poison, <{lanes} x i32> zeroinitializer")
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        mask = out.value(f"icmp slt {wide} <{numbers}>, {every}")
        vector = f"<{lanes} x {self.kind}>"
        out.line(
            f"call void @llvm.masked.store.v{lanes}f{8 * self.align}.p0({vector} {value}, ptr {address}, "
            f"i32 {self.align}, <{lanes} x i1> {mask})"
        )
