"""The writer of a convolution's register tile, see `jitkernels.microkernels.convolution.tile`.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitkernels.microkernels.gemm.microkernel import Text, element_size, element_type

if TYPE_CHECKING:
    from jitkernels.microkernels.convolution.tile import ConvolutionTile

#: IR arguments of a tile, in order.  Strides and offsets are in elements.
TILE_ARGUMENTS = (
    ("ptr", "x"), ("i64", "x_offset"), ("i64", "pixel_stride"), ("i64", "lead"), ("i64", "rows"), ("i64", "row_stride"),
    ("i64", "runs"), ("i64", "run_stride"), ("i64", "run"),
    ("ptr", "w"), ("i64", "w_offset"), ("i64", "w_stride"), ("i64", "ahead_offset"), ("i64", "ahead_stride"),
    ("ptr", "bias"), ("i64", "bias_offset"), ("ptr", "residual"),
    ("ptr", "y"), ("i64", "y_offset"), ("i64", "y_stride"), ("i64", "live"), ("i64", "pixels"), ("i64", "chunk"),
    ("i64", "skip_first"), ("i64", "skip_last"), ("ptr", "next"), ("i64", "next_offset"), ("i64", "next_stride"),
)  # fmt: skip
FIRST_CHUNK, LAST_CHUNK = 1, 2
"""Bits of `chunk`: whether these rows of the filter are the first, and the last, of those that are summed up in y."""
ROW_PIXELS = 7
"""Pixels in a row: those behind begin `lead` elements after the first one, so that two rows of seven fill a tile."""


def by_pixels(symbol: str, tiles: Sequence[str], arguments: Sequence[tuple[str, str]], *, jumps: bool = False) -> str:
    """Write the functions for 1, 2 and more pixels, and `symbol`, which calls the right one.

    It is inlined, unless it `jumps`: that takes as long, and less code where it is called in many places.
    """
    typed = ", ".join(f"{kind} %{name}" for kind, name in arguments)
    cases = range(1, len(tiles) + 1)
    attribute, call = ("noinline", "musttail call") if jumps else ("alwaysinline", "call")
    lines = [f"define void @{symbol}({typed}) {attribute} nounwind {{", "  switch i64 %pixels, label %done ["]
    lines += [f"    i64 {count}, label %of{count}" for count in cases]
    lines.append("  ]")
    for count in cases:
        after = "  ret void" if jumps else "  br label %done"
        lines += [f"of{count}:", f"  {call} void @{symbol}_{count}({typed})", after]
    lines += ["done:", "  ret void", "}\n"]
    return "\n".join([*tiles, *lines])


class ConvolutionTileText:
    """Writer of the tile of one number of pixels, block by block. `step`: the elements of a run that a step takes.

    `pointers`: what loops advance beside the pixels, weights, and what they prefetch of the weights and of the image.
    """

    arguments: Sequence[tuple[str, str]] = TILE_ARGUMENTS
    pointers: Sequence[str] = ("w", "ahead", "next")
    step = 1

    def __init__(self, tile: ConvolutionTile, pixels: int) -> None:
        self.tile, self.pixels = tile, pixels
        self.out = Text()
        self.kind = element_type(tile.dtype)
        self.align = element_size(tile.dtype)
        self.vector = f"<{tile.lanes} x {self.kind}>"
        self.suffix = f"v{tile.lanes}f{8 * self.align}"
        self.cells = [(r, j) for r in range(pixels) for j in range(tile.vectors)]
        self.bases = range(0, pixels, pixels if tile.strided_runs else ROW_PIXELS)
        self.width = tile.vectors * tile.lanes
        self.panel = tile.panel or self.width
        self.bordered = tile.bordered and pixels > 1 and 2 * pixels + 1 >= tile.pixels

    def build(self) -> str:
        out = self.out
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in self.arguments)
        self._entry()
        self._begin_loop("row", "rows", "begin", "row_end", "%{}_start", "%begin{}")
        out.line("br label %tap")
        self._begin_loop("tap", "runs", "row", "tap_end", "%{}_row", "%acc{}_row")
        if self.tile.depthwise:
            self._depthwise_tap()
        else:
            self._dense_run()
        self._end_loop("tap", "row_end", "%run_stride")
        out.label("row_end")
        self._end_loop("row", "done", "%row_stride")
        out.label("done")
        sums = "%acc{}_{}_end"
        if self.tile.has_residual:
            out.line("br i1 %is_last, label %add_residual, label %finish")
            self._add_rows("add_residual", self.residual_rows, ("finish", "done", sums), sums)
            sums = "%finish{}_{}"
        if self.tile.strided_runs:
            out.line("br i1 %is_first, label %finish, label %add")
            self._add_rows("add", self.y_rows, ("finish", "done", sums), sums)
            sums = "%finish{}_{}"
        self._store(sums)
        head = f"define internal void @{self.tile.symbol}_{self.pixels}({arguments}) noinline nounwind {{"
        return "\n".join([head, *out.lines, "}"])

    def _entry(self) -> None:
        out, tile = self.out, self.tile
        out.label("entry")
        for name in ("x", "w", "y"):
            out.lines.append(f"  %{name}_start = getelementptr {self.kind}, ptr %{name}, i64 %{name}_offset")
        out.lines.append(f"  %ahead_start = getelementptr {self.kind}, ptr %w, i64 %ahead_offset")
        out.lines.append(f"  %next_start = getelementptr {self.kind}, ptr %next, i64 %next_offset")
        self._offsets_of_pixels()
        self.y_rows = [out.element(self.kind, "%y_start", out.times(r, "%y_stride")) for r in range(self.pixels)]
        if tile.has_residual:
            out.lines.append(f"  %residual_start = getelementptr {self.kind}, ptr %residual, i64 %y_offset")
            self.residual_rows = [
                out.element(self.kind, "%residual_start", out.times(r, "%y_stride")) for r in range(self.pixels)
            ]
        self.masks = [out.lanes_below("%live", tile.lanes, j * tile.lanes) for j in range(tile.vectors)]
        for j in range(tile.vectors):
            start = "zeroinitializer"
            if tile.biased:
                base = out.element(self.kind, "%bias", "%bias_offset")
                start = self._masked_load(out.element(self.kind, base, j * tile.lanes), j)
            else:
                start = f"bitcast {self.vector} zeroinitializer to {self.vector}"
            out.lines.append(f"  %bias{j} = {start}")
        if not tile.depthwise:
            out.lines.append("  %has_run = icmp ne i64 %run, 0")
        if self.bordered:
            out.lines.append("  %unskipped = sub nsw i64 %runs, %skip_first")
        out.lines.append("  %is_first = trunc i64 %chunk to i1")
        out.lines.append(f"  %is_last = icmp uge i64 %chunk, {LAST_CHUNK}")
        out.lines.append(f"  %is_whole = icmp sge i64 %live, {self.width}")
        out.line("br label %prefetch" if tile.strided_runs else "br i1 %is_first, label %prefetch, label %resume")
        self._prefetch()
        if tile.strided_runs:
            out.label("begin")
            for r, j in self.cells:
                out.lines.append(f"  %begin{r}_{j} = phi {self.vector} [ %bias{j}, %prefetch ]")
        else:
            self._add_rows("resume", self.y_rows, ("begin", "prefetch", "%bias{1}"))
        out.line("br label %row")

    def _offsets_of_pixels(self) -> None:
        """Append where the pixels lie behind the first one."""
        out, tile = self.out, self.tile
        steps = [self._opaque(out.times(r, "%pixel_stride")) for r in range(min(ROW_PIXELS, self.pixels))]
        self.steps = [r if tile.strided_runs else steps[r % ROW_PIXELS] for r in range(self.pixels)]
        if not (tile.strided_runs or tile.depthwise):
            odd = range(1, min(ROW_PIXELS, self.pixels), 2)
            self.odd_steps = {k: self._opaque(out.times(k * self.align, "%pixel_stride")) for k in odd}
        self.leads = [self._opaque(out.times(group, "%lead")) for group in range(len(self.bases))]

    def _prefetch(self) -> None:
        """Append the block before the first sums: what the code behind the loops reads and writes arrives meanwhile."""
        out = self.out
        out.label("prefetch")
        targets = [(row, 1) for row in self.y_rows]
        if self.tile.has_residual:
            targets += [(row, 0) for row in self.residual_rows]
        for row, is_write in targets:
            for first in range(0, self.width * self.align, 64):
                address = out.element(self.kind, row, first // self.align)
                out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 {is_write}, i32 3, i32 1)")
        out.line("br label %begin")

    def _add_rows(self, name: str, rows: Sequence[str], after: tuple[str, str, str], sums: str = "") -> None:
        """Append the blocks that load values from `rows`, and add them to `sums` if there are any.

        `after`: the block that follows, which has phis of its name, the block beside these, and the values from there.
        """
        out, (end, beside, values) = self.out, after
        out.label(name)
        out.line(f"br i1 %is_whole, label %{name}_whole, label %{name}_part")
        for block in ("whole", "part"):
            out.label(f"{name}_{block}")
            for r, j in self.cells:
                address = out.element(self.kind, rows[r], j * self.tile.lanes)
                load = f"load {self.vector}, ptr {address}, align {self.align}"
                value, loaded = load if block == "whole" else self._masked_load(address, j), f"%{name}_{block}{r}_{j}"
                if sums:
                    value = f"fadd {self.vector} {out.value(value)}, {sums.format(r, j)}"
                out.lines.append(f"  {loaded} = {value}")
            out.line(f"br label %{end}")
        out.label(end)
        for r, j in self.cells:
            pairs = ", ".join(f"[ %{name}_{block}{r}_{j}, %{name}_{block} ]" for block in ("whole", "part"))
            beginning = f"[ {values.format(r, j)}, %{beside} ]"
            out.lines.append(f"  %{end}{r}_{j} = phi {self.vector} {beginning}, {pairs}")

    def _opaque(self, value: str | int) -> str | int:
        """Hide how an offset follows from others: LLVM would add them up in the loop, where registers are left."""
        return value if value == 0 else self.out.value(f'call i64 asm "", "=r,0"(i64 {value})')

    def _masked_load(self, address: str, j: int) -> str:
        return (
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.tile.lanes} x i1> {self.masks[j]}, {self.vector} zeroinitializer)"
        )

    def _sums(self, name: str, incoming: list[tuple[str, str]]) -> None:
        """Append one phi per sum; ``{}`` in an incoming value stands for the sum's number."""
        for r, j in self.cells:
            pairs = ", ".join(f"[ {value.format(f'{r}_{j}')}, %{block} ]" for value, block in incoming)
            self.out.lines.append(f"  %acc{r}_{j}_{name} = phi {self.vector} {pairs}")

    def _begin_loop(self, name: str, count: str, before: str, after: str, start: str, sums: str) -> None:
        """Begin a loop of `count` iterations, whose last block is `after`."""
        out = self.out
        out.label(name)
        out.lines.append(f"  %{name}_left = phi i64 [ %{count}, %{before} ], [ %{name}_next, %{after} ]")
        out.lines.append(f"  %x_{name} = phi ptr [ {start.format('x')}, %{before} ], [ %x_{name}_next, %{after} ]")
        for pointer in self.pointers:
            begin, end = start.format(pointer), f"%{pointer}_end"
            if pointer == "w" and self.tile.strided_runs:
                end = f"%w_{name}_next"
            out.lines.append(f"  %{pointer}_{name} = phi ptr [ {begin}, %{before} ], [ {end}, %{after} ]")
        self._sums(name, [(sums, before), ("%acc{}_end", after)])

    def _end_loop(self, name: str, after: str, stride: str) -> None:
        self.out.lines.append(f"  %x_{name}_next = getelementptr {self.kind}, ptr %x_{name}, i64 {stride}")
        if self.tile.strided_runs:
            apart = "%w_stride" if name == "tap" else "%lead"
            self.out.lines.append(f"  %w_{name}_next = getelementptr {self.kind}, ptr %w_{name}, i64 {apart}")
        self._next(name, after)

    def _next(self, name: str, after: str) -> None:
        """Count down, and begin the next iteration or go on."""
        out = self.out
        out.lines.append(f"  %{name}_next = add nsw i64 %{name}_left, -1")
        out.lines.append(f"  %{name}_more = icmp ne i64 %{name}_next, 0")
        out.line(f"br i1 %{name}_more, label %{name}, label %{after}")

    def _dense_run(self) -> None:
        """Append the loops over the elements of a run: of all pixels, of all but the first, of all but the last."""
        out, loops = self.out, {"step": range(self.pixels)}
        if self.bordered:
            loops |= {"not_first": range(1, self.pixels), "not_last": range(self.pixels - 1)}
            out.line("br i1 %has_run, label %choose, label %tap_end")
            self._choose_run()
        else:
            out.line("br i1 %has_run, label %step_begin, label %tap_end")
        for name, pixels in loops.items():
            self._run_loop(name, pixels)
        out.label("tap_end")
        for pointer in self.pointers:
            ends = "".join(f", [ %{pointer}_{name}_next, %{name} ]" for name in loops)
            out.lines.append(f"  %{pointer}_end = phi ptr [ %{pointer}_tap, %tap ]{ends}")
        for r, j in self.cells:
            ends = "".join(
                f", [ %acc{r}_{j}_{name if r in pixels else 'tap'}{'_next' if r in pixels else ''}, %{name} ]"
                for name, pixels in loops.items()
            )
            out.lines.append(f"  %acc{r}_{j}_end = phi {self.vector} [ %acc{r}_{j}_tap, %tap ]{ends}")

    def _address_of_pixel(self, name: str, r: int) -> str:
        """Append the address of pixel r, by scales of the odd multiples of a pixel, which are in few registers."""
        base = f"%x{r // self.bases.step}_{name}"
        if self.tile.strided_runs:
            return self.out.element(self.kind, base, r)
        place = r % ROW_PIXELS
        if place == 0:
            return base
        scale = place & -place
        return self.out.value(f"getelementptr i{8 * scale}, ptr {base}, i64 {self.odd_steps[place // scale]}")

    def _choose_run(self) -> None:
        """Append the choice among the loops of a run: `tap_left` counts the runs of a row down."""
        out = self.out
        out.label("choose")
        out.lines.append("  %is_left = icmp sgt i64 %tap_left, %unskipped")
        out.line("br i1 %is_left, label %not_first_begin, label %choose_last")
        out.label("choose_last")
        out.lines.append("  %is_right = icmp sle i64 %tap_left, %skip_last")
        out.line("br i1 %is_right, label %not_last_begin, label %step_begin")

    def _run_loop(self, name: str, pixels: range) -> None:
        """Append the loop over a run for some of the pixels, with a pointer for each group of them.

        It is not unrolled: a step of many multiply-adds hides the loop's own instructions, and code is built faster.
        """
        out, kind = self.out, self.kind
        out.label(f"{name}_begin")
        out.lines.append(f'  %x_{name}_run = call ptr asm "", "=r,0"(ptr %x_tap)')
        for group, lead in enumerate(self.leads):
            out.lines.append(f"  %x{group}_{name}_begin = getelementptr {kind}, ptr %x_{name}_run, i64 {lead}")
        out.line(f"br label %{name}")
        out.label(name)
        out.lines.append(f"  %{name}_left = phi i64 [ %run, %{name}_begin ], [ %{name}_next, %{name} ]")
        starts = {f"x{group}": f"%x{group}_{name}_begin" for group in range(len(self.leads))}
        for pointer, start in (starts | {pointer: f"%{pointer}_tap" for pointer in self.pointers}).items():
            ends = f"[ {start}, %{name}_begin ], [ %{pointer}_{name}_next, %{name} ]"
            out.lines.append(f"  %{pointer}_{name} = phi ptr {ends}")
        for r, j in self.cells:
            if r in pixels:
                ends = f"[ %acc{r}_{j}_tap, %{name}_begin ], [ %acc{r}_{j}_{name}_next, %{name} ]"
                out.lines.append(f"  %acc{r}_{j}_{name} = phi {self.vector} {ends}")
        self._dense_step(name, pixels)
        step = "%pixel_stride" if self.tile.strided_runs else self.step
        for group in range(len(self.leads)):
            # A pointer that LLVM cannot follow stays one: with an induction variable, each pixel would have its own.
            following = out.value(f"getelementptr {kind}, ptr %x{group}_{name}, i64 {step}")
            out.lines.append(f'  %x{group}_{name}_next = call ptr asm "", "=r,0"(ptr {following})')
        if not self.tile.strided_runs:
            for pointer in self.pointers[1:]:
                out.line(f"call void @llvm.prefetch.p0(ptr %{pointer}_{name}, i32 0, i32 2, i32 1)")
        for pointer, stride in zip(self.pointers, (self.panel, "%ahead_stride", "%next_stride"), strict=False):
            out.lines.append(f"  %{pointer}_{name}_next = getelementptr {kind}, ptr %{pointer}_{name}, i64 {stride}")
        self._next(name, "tap_end")

    def _dense_step(self, name: str, pixels: range) -> None:
        """Append one step of a loop: vectors of weights times an element of each pixel."""
        out, kind, lanes = self.out, self.kind, self.tile.lanes
        weights = [
            out.value(f"load {self.vector}, ptr {out.element(kind, f'%w_{name}', j * lanes)}, align {self.align}")
            for j in range(self.tile.vectors)
        ]
        for r in pixels:
            every = self._broadcast(out.value(f"load {kind}, ptr {self._address_of_pixel(name, r)}"))
            for j in range(self.tile.vectors):
                self._multiply_add(every, weights[j], f"%acc{r}_{j}_{name}", f"%acc{r}_{j}_{name}_next")

    def _depthwise_tap(self) -> None:
        """Append one tap: vectors of the image times vectors of weights."""
        out, tile = self.out, self.tile
        out.line("br label %tap_end")
        out.label("tap_end")
        weights = [self._load(out.element(self.kind, "%w_tap", j * tile.lanes), j) for j in range(tile.vectors)]
        for r in range(self.pixels):
            if r % ROW_PIXELS == 0:
                base = out.element(self.kind, "%x_tap", self.leads[r // ROW_PIXELS])
            at = out.element(self.kind, base, self.steps[r])
            for j in range(tile.vectors):
                value = self._load(out.element(self.kind, at, j * tile.lanes), j)
                self._multiply_add(value, weights[j], f"%acc{r}_{j}_tap", f"%acc{r}_{j}_end")
        out.lines.append(f"  %w_end = getelementptr {self.kind}, ptr %w_tap, i64 %w_stride")
        for pointer in self.pointers[1:]:
            out.lines.append(f"  %{pointer}_end = getelementptr {self.kind}, ptr %{pointer}_tap, i64 0")

    def _load(self, address: str, j: int) -> str:
        if self.tile.masked:
            return self.out.value(self._masked_load(address, j))
        return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")

    def _broadcast(self, scalar: str) -> str:
        first = self.out.value(f"insertelement {self.vector} poison, {self.kind} {scalar}, i64 0")
        return self.out.value(
            f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.tile.lanes} x i32> zeroinitializer"
        )

    def _multiply_add(self, left: str, right: str, total: str, name: str) -> None:
        vector = self.vector
        self.out.lines.append(
            f"  {name} = call {vector} @llvm.fmuladd.{self.suffix}({vector} {left}, {vector} {right}, {vector} {total})"
        )

    def _store(self, sums: str) -> None:
        """Append the activation and the stores: whole vectors, or those of the live columns."""
        out, tile = self.out, self.tile
        results = {}
        if tile.relu:
            infinite = f"<{', '.join([f'{self.kind} 0xFFF0000000000000'] * tile.lanes)}>"
            out.lines.append(f"  %least = select i1 %is_last, {self.vector} zeroinitializer, {self.vector} {infinite}")
        for r, j in self.cells:
            value = sums.format(r, j)
            if tile.relu:
                negative = out.value(f"fcmp olt {self.vector} {value}, %least")
                value = out.value(f"select <{tile.lanes} x i1> {negative}, {self.vector} %least, {self.vector} {value}")
            results[r, j] = value
        out.line("br i1 %is_whole, label %whole, label %part")
        for block in ("whole", "part"):
            out.label(block)
            for r, j in self.cells:
                address = out.element(self.kind, self.y_rows[r], j * tile.lanes)
                if block == "whole":
                    out.line(f"store {self.vector} {results[r, j]}, ptr {address}, align {self.align}")
                else:
                    out.line(
                        f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {results[r, j]}, ptr {address}, "
                        f"i32 {self.align}, <{tile.lanes} x i1> {self.masks[j]})"
                    )
            out.line("ret void")
