"""The register tile of convolutions with few filters, as LLVM IR text: several pixels share a vector.

Each has a segment of the vector, with a lane for each filter. The elements of the image are repeated, once for each
lane of a segment, so that one load takes those of all pixels of a vector, which are neighbours: per tap the tile loads
one vector of weights, the same in each segment, and issues a fused multiply-add with a vector of the image for each of
its sums. Lanes that belong to no filter are computed and not stored.

Two rows of the result share the rows of the image between their first and last ones: each vector of these is loaded
once for two multiply-adds. Half of the loads cross a cache line, and would take longer than the arithmetic.

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
    ("ptr", "y"), ("i64", "y_offset"), ("i64", "filters"), ("i64", "pixels"), ("i64", "lead"), ("i64", "y_below"),
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
    vector has one pixel at least. With `results` of 2, a second row of the result begins `lead` rows of repeated
    elements further down, fewer than there are rows, and `y_below` elements further on.
    """

    symbol: str
    dtype: str
    lanes: int
    segment: int
    vectors: int
    relu: bool
    results: int = 1

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
        out, kind, results = self.out, self.kind, range(self.tile.results)
        arguments = ", ".join(f"{one} {'noalias ' if one == 'ptr' else ''}%{n}" for one, n in SHARED_TILE_ARGUMENTS)
        out.label("entry")
        for name in ("x", "w", "bias", "y"):
            out.lines.append(f"  %{name}_start = getelementptr {kind}, ptr %{name}, i64 %{name}_offset")
        out.lines.append(f"  %bias_vector = load {self.vector}, ptr %bias_start, align {self.align}")
        state = {"x": "%x_start"} | {f"w{r}": "%w_start" for r in results}
        state |= {f"acc{r}_{i}": "%bias_vector" for r in results for i in range(self.count)}
        if len(results) == 1:
            phases = [("only", "%rows", results)]
        else:
            out.lines.append("  %both = sub nsw i64 %rows, %lead")
            phases = [("upper", "%lead", results[:1]), ("shared", "%both", results), ("lower", "%lead", results[1:])]
        before = "entry"
        for name, count, live in phases:
            out.line(f"br label %{name}_row")
            self._phase(name, count, live, state, before)
            before = f"{name}_end"
            out.label(before)
        for r in results:
            below = "%y_start" if r == 0 else out.element(kind, "%y_start", "%y_below")
            self._store(r, [state[f"acc{r}_{i}"] for i in range(self.count)], below)
        out.line("ret void")
        head = f"define internal void @{self.tile.symbol}_{self.count}({arguments}) noinline nounwind {{"
        return "\n".join([head, *out.lines, "}"])

    def _phase(self, name: str, count: str, live: range, state: dict[str, str], before: str) -> None:
        """Append the loops over `count` rows, which the `live` rows of the result read, and over the taps of each."""
        out, kind = self.out, self.kind
        weights = [f"w{r}" for r in live]
        sums = [f"acc{r}_{i}" for r in live for i in range(self.count)]
        steps = {"x": f"%x_{name}_down"} | {one: f"%{one}_{name}_right" for one in weights}
        steps |= {one: f"%{one}_{name}_next" for one in sums}
        out.label(f"{name}_row")
        self._phis(name, "row", {one: (state[one], before, steps[one], f"{name}_row_end") for one in steps}, count)
        out.line(f"br label %{name}_tap")
        out.label(f"{name}_tap")
        inner = {**steps, "x": f"%x_{name}_right"}
        from_row = {one: (f"%{one}_{name}_row", f"{name}_row", inner[one], f"{name}_tap") for one in inner}
        self._phis(name, "tap", from_row, "%taps")
        taps = [out.value(f"load {self.vector}, ptr %{one}_{name}_tap, align {self.align}") for one in weights]
        for i in range(self.count):
            at = out.element(kind, f"%x_{name}_tap", i * self.tile.lanes)
            value = out.value(f"load {self.vector}, ptr {at}, align {self.align}")
            for r, weight in zip(live, taps, strict=True):
                out.lines.append(
                    f"  %acc{r}_{i}_{name}_next = call {self.vector} @llvm.fmuladd.v{self.tile.lanes}f{8 * self.align}"
                    f"({self.vector} {value}, {self.vector} {weight}, {self.vector} %acc{r}_{i}_{name}_tap)"
                )
        out.lines.append(f"  %x_{name}_right = getelementptr {kind}, ptr %x_{name}_tap, i64 {self.tile.segment}")
        for one in weights:
            out.lines.append(
                f"  %{one}_{name}_right = getelementptr {kind}, ptr %{one}_{name}_tap, i64 {self.tile.lanes}"
            )
        self._next(name, "tap", f"{name}_row_end")
        out.label(f"{name}_row_end")
        out.lines.append(f"  %x_{name}_down = getelementptr {kind}, ptr %x_{name}_row, i64 %row_stride")
        self._next(name, "row", f"{name}_end")
        state.update(steps)

    def _phis(self, name: str, loop: str, values: dict[str, tuple[str, str, str, str]], count: str) -> None:
        """Append the phis of a loop: its countdown, and what its iterations carry: first value, block, next, block."""
        _, before, _, after = next(iter(values.values()))
        self.out.lines.append(
            f"  %{name}_{loop}_left = phi i64 [ {count}, %{before} ], [ %{name}_{loop}_next, %{after} ]"
        )
        for one, (start, _, following, _) in values.items():
            type_ = self.vector if one.startswith("acc") else "ptr"
            self.out.lines.append(
                f"  %{one}_{name}_{loop} = phi {type_} [ {start}, %{before} ], [ {following}, %{after} ]"
            )

    def _next(self, name: str, loop: str, after: str) -> None:
        out, counter = self.out, f"{name}_{loop}"
        out.lines.append(f"  %{counter}_next = add nsw i64 %{counter}_left, -1")
        out.lines.append(f"  %{counter}_more = icmp ne i64 %{counter}_next, 0")
        out.line(f"br i1 %{counter}_more, label %{counter}, label %{after}")

    def _store(self, result: int, values: list[str], y: str) -> None:
        """Append the activation and the stores: whole vectors where no lane is unused, else pixel by pixel."""
        out, tile, per, end = self.out, self.tile, self.per, f"stored{result}"
        if tile.relu:
            zero = f"{self.vector} zeroinitializer"
            for i, value in enumerate(values):
                negative = out.value(f"fcmp olt {self.vector} {value}, zeroinitializer")
                values[i] = out.value(f"select <{tile.lanes} x i1> {negative}, {zero}, {self.vector} {value}")
        whole = (self.count - 1) * per
        rest = out.value(f"sub nsw i64 %pixels, {whole}")
        is_full = out.value(f"icmp eq i64 %filters, {tile.segment}")
        out.line(f"br i1 {is_full}, label %full{result}, label %parts{result}")
        out.label(f"full{result}")
        for i, value in enumerate(values[:-1]):
            address = out.element(self.kind, y, i * tile.lanes)
            out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")
        live = out.value(f"mul nsw i64 {rest}, {tile.segment}")
        self._masked_store(values[-1], out.element(self.kind, y, whole * tile.segment), tile.lanes, live)
        out.line(f"br label %{end}")
        out.label(f"parts{result}")
        for pixel in range(whole):
            part, place = self._segment(values, pixel), self._place(y, pixel)
            out.line(f"store {self.part} {part}, ptr {place}, align {self.align}")
        for pixel in range(whole, whole + per):
            if pixel > whole:
                has_pixel = out.value(f"icmp sgt i64 {rest}, {pixel - whole}")
                out.line(f"br i1 {has_pixel}, label %pixel{result}_{pixel}, label %{end}")
                out.label(f"pixel{result}_{pixel}")
            self._masked_store(self._segment(values, pixel), self._place(y, pixel), tile.segment, "%filters")
        out.line(f"br label %{end}")
        out.label(end)

    def _place(self, y: str, pixel: int) -> str:
        return self.out.element(self.kind, y, self.out.times(pixel, "%filters"))

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
