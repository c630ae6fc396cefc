"""The GEMM microkernel (register tile), as LLVM IR text.

A tile is ``C[rows, vectors * lanes] (+)= A[rows, k] @ B[k, vectors * lanes]`` with every element of C in a vector
register while ``k`` runs: per step it loads ``vectors`` vectors of B, broadcasts ``rows`` scalars of A and issues
``rows * vectors`` fused multiply-adds (Goto & van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication";
BLIS calls it the micro-kernel).  LLVM's vectorizers do not find this form from scalar loops, so this module writes the
text; everything around it is written in Python.

Every process builds the text again at its start to compute the cache key of the object, so this module must not import
a compiler.
"""

from __future__ import annotations

import struct

from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass

LINE_BYTES = 64
"""Of a cache line; a constant of this module, which is in the keys of objects."""
FMAS_IN_FLIGHT = 8
"""Fused multiply-adds that a core computes at once: two of them in each cycle, with a latency of four."""

#: IR arguments of every tile, in order.  Strides and offsets are in elements.
TILE_ARGUMENTS = (
    ("ptr", "a"), ("i64", "a_offset"), ("i64", "a_stride"),
    ("ptr", "b"), ("i64", "b_offset"), ("i64", "b_stride"),
    ("ptr", "c"), ("i64", "c_offset"), ("i64", "c_stride"),
    ("i64", "k"), ("i64", "first"), ("i64", "live_rows"), ("i64", "live_columns"),
)  # fmt: skip


def element_type(dtype: str) -> str:
    """Return the LLVM name of a NumPy floating type."""
    return dtypes.named(dtype).llvm


def element_size(dtype: str) -> int:
    return dtypes.named(dtype).size


def float_literal(value: float, dtype: str) -> str:
    """Return an exact IR literal: LLVM writes float and double constants alike, as the bits of a double."""
    if dtype == "float32":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return "0x" + struct.pack(">d", value).hex().upper()


class Text:
    """Lines of one IR function and a counter for its value names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def value(self, expression: str) -> str:
        """Append ``%vN = expression`` and return ``%vN``."""
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {expression}")
        return name

    def line(self, text: str) -> None:
        """Append one instruction that has no result."""
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(name + ":")

    def element(self, kind: str, base: str, index: str | int) -> str:
        """Append the address ``base + index`` in elements of type ``kind``."""
        return base if index == 0 else self.value(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def times(self, factor: int, stride: str) -> str | int:
        """Append ``factor * stride``, where the stride may be an integer literal or a name."""
        if factor == 0:
            return 0
        if not stride.startswith("%"):
            return factor * int(stride)
        return stride if factor == 1 else self.value(f"mul i64 {stride}, {factor}")

    def splat(self, kind: str, lanes: int, scalar: str) -> str:
        """Append a vector with the scalar in all lanes."""
        first = self.value(f"insertelement <{lanes} x {kind}> poison, {kind} {scalar}, i64 0")
        return self.value(
            f"shufflevector <{lanes} x {kind}> {first}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer"
        )

    def lanes_below(self, limit: str, lanes: int, first: int = 0, kind: str = "i64") -> str:
        """Append the mask of lanes whose index, counted from `first`, is below the `limit`."""
        numbers = ", ".join(f"{kind} {first + lane}" for lane in range(lanes))
        return self.value(f"icmp slt <{lanes} x {kind}> <{numbers}>, {self.splat(kind, lanes, limit)}")


@frozen_dataclass
class Tile:
    """Compile-time parameters of one tile function; every other quantity is an argument of the function.

    ``a_by_column``: A's element (r, p) lies at ``p * a_stride + r`` (a packed panel, or a transposed A) and not at ``r
    * a_stride + p``.  Integer strides here replace the arguments.  ``panel_vectors``: so many vectors
    of a row of B are neighbours, and further ones lie ``panel_stride`` elements behind these, or the argument b_stride
    where that is None.  ``mask_b`` and ``mask_c`` limit loads and stores to
    ``live_columns``; ``guard_rows`` stores only ``live_rows`` rows. ``clamp_rows`` reads the last live row in place of
    rows beyond it.  ``prefetch`` prefetches C before the loop. ``prefetch_panel`` prefetches the next packed panel of
    A, into the cache of that level. ``prefetch_beside`` prefetches what lies to the right of the rows of B, as many
    elements as the tile has columns, from the second line on: of rows that are not aligned, the
    tile reads the beginning of the first one. ``prefetch_ahead`` prefetches what lies so many elements behind the rows,
    the next rows of a packed B. ``squares`` sums squared differences instead of products,
    which lose no digits where the operands are close. Tiles of few cells sum each of them in several chains, as one
    chain would wait for each of its fused multiply-adds. ``descending``: ``k`` runs from its end to 0, where b_stride
    is an integer and A is not by column.
    """

    symbol: str
    dtype: str
    lanes: int
    rows: int
    vectors: int
    beta: float
    a_by_column: bool
    a_stride: int | None = None
    b_stride: int | None = None
    panel_vectors: int = 0
    panel_stride: int | None = None
    mask_b: bool = False
    mask_c: bool = False
    guard_rows: bool = False
    clamp_rows: bool = False
    inline: bool = False
    unroll: int = 4
    prefetch: bool = False
    prefetch_panel: int = 0
    prefetch_beside: bool = False
    prefetch_ahead: int = 0
    squares: bool = False
    descending: bool = False

    def text(self, *, declared: bool = False) -> str:
        """Write the IR of ``symbol``, and the declarations that it needs unless the module has them."""
        return ("" if declared else declarations(self.dtype, self.lanes)) + _TileText(self).build()


class _TileText:
    """Writer of one tile, block by block."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        self.out = Text()
        self.kind = element_type(tile.dtype)
        self.vector = f"<{tile.lanes} x {self.kind}>"
        self.suffix = f"v{tile.lanes}f{8 * element_size(tile.dtype)}"
        self.a_stride = "%a_stride" if tile.a_stride is None else str(tile.a_stride)
        self.b_stride = "%b_stride" if tile.b_stride is None else str(tile.b_stride)
        self.panel_stride = "%b_stride" if tile.panel_stride is None else str(tile.panel_stride)
        self.cells = [(r, j) for r in range(tile.rows) for j in range(tile.vectors)]
        self.chains = 1
        while self.chains < tile.unroll and 2 * len(self.cells) * self.chains <= FMAS_IN_FLIGHT:
            self.chains *= 2
        self.align = element_size(tile.dtype)
        self.masks: list[str] = []

    def build(self) -> str:
        tile, out = self.tile, self.out
        arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in TILE_ARGUMENTS)
        attribute = "alwaysinline" if tile.inline else "noinline"
        self._entry()
        self._loop("main", tile.unroll, "entry", "middle")
        out.label("middle")
        self._phis("half", [("zeroinitializer", "entry"), ("%{}_main", "main")])
        a, b = self._pointer_phis([("%a_start", "%b_start", "entry"), ("%a_main", "%b_main", "main")])
        out.lines.append(f"  %left = and i64 %k, {tile.unroll - 1}")
        out.lines.append("  %has_left = icmp ne i64 %left, 0")
        out.line("br i1 %has_left, label %rest, label %done")
        self._loop("rest", 1, "middle", "done", start=(a, b))
        out.label("done")
        self._phis("total", [("%{}_half", "middle"), ("%{}_rest", "rest")])
        self._join_chains()
        self._finish()
        body = "\n".join(out.lines)
        return f"define void @{tile.symbol}({arguments}) {attribute} nounwind {{\n{body}\n}}\n"

    def _entry(self) -> None:
        tile, out = self.tile, self.out
        out.label("entry")
        a_offset, b_offset = "%a_offset", "%b_offset"
        if tile.descending:
            last = out.value("add nsw i64 %k, -1")
            a_offset = out.value(f"add nsw i64 {a_offset}, {last}")
            b_offset = out.value(f"add nsw i64 {b_offset}, {out.value(f'mul nsw i64 {last}, {self.b_stride}')}")
        out.lines.append(f"  %a_start = getelementptr {self.kind}, ptr %a, i64 {a_offset}")
        out.lines.append(f"  %b_start = getelementptr {self.kind}, ptr %b, i64 {b_offset}")
        out.lines.append(f"  %c_start = getelementptr {self.kind}, ptr %c, i64 %c_offset")
        self.c_rows = [out.element(self.kind, "%c_start", out.times(r, "%c_stride")) for r in range(tile.rows)]
        if tile.mask_b or tile.mask_c:
            self._make_masks()
        if tile.prefetch:
            # Only the code after the loop touches C: prefetching it here hides the whole miss behind the arithmetic. A
            # row that is not aligned ends in one line more.
            width, line = tile.vectors * tile.lanes, LINE_BYTES // self.align
            for row in self.c_rows:
                for j in sorted({*range(0, width, line), width - 1}):
                    address = out.element(self.kind, row, j)
                    out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 1, i32 3, i32 1)")
        if tile.prefetch_panel:
            self.next_panel = out.value(f"mul i64 %k, {tile.rows}")
        self.a_rows: list[str | int] = list(range(tile.rows))
        if tile.clamp_rows:
            last = out.value("add nsw i64 %live_rows, -1")
            live = [out.value(f"call i64 @llvm.smin.i64(i64 {last}, i64 {r})") for r in range(1, tile.rows)]
            self.a_rows = [0, *live]
            if not tile.a_by_column:
                self.a_rows = [0, *(out.value(f"mul nsw i64 {row}, {self.a_stride}") for row in live)]
        elif not tile.a_by_column:
            self.a_rows = [out.times(r, self.a_stride) for r in range(tile.rows)]
        steps = range(0, -tile.unroll - 1, -1) if tile.descending else range(tile.unroll + 1)
        self.a_steps = [out.times(u, self.a_stride) if tile.a_by_column else u for u in steps]
        self.b_steps = [out.times(u, self.b_stride) for u in steps]
        panels = range(tile.vectors // tile.panel_vectors) if tile.panel_vectors else range(1)
        self.b_panels = [out.times(panel, self.panel_stride) for panel in panels]
        shift = tile.unroll.bit_length() - 1
        out.lines.append(f"  %rounds = lshr i64 %k, {shift}")
        out.lines.append("  %has_rounds = icmp ne i64 %rounds, 0")
        out.line("br i1 %has_rounds, label %main, label %middle")

    def _make_masks(self) -> None:
        lanes = self.tile.lanes
        self.masks += [self.out.lanes_below("%live_columns", lanes, j * lanes) for j in range(self.tile.vectors)]

    def _phis(self, suffix: str, incoming: list[tuple[str, str]]) -> None:
        """One phi per accumulator; ``{}`` in an incoming value stands for the accumulator's name."""
        for name in self._accumulators():
            pairs = ", ".join(f"[ {value.format(name)}, %{block} ]" for value, block in incoming)
            self.out.lines.append(f"  %{name}_{suffix} = phi {self.vector} {pairs}")

    def _accumulators(self) -> list[str]:
        return [_accumulator(r, j, chain) for chain in range(self.chains) for r, j in self.cells]

    def _join_chains(self) -> None:
        """Add the chains of each cell, in pairs."""
        self.totals = {}
        for r, j in self.cells:
            sums = [f"%{_accumulator(r, j, chain)}_total" for chain in range(self.chains)]
            while len(sums) > 1:
                pairs = zip(sums[::2], sums[1::2], strict=True)
                sums = [self.out.value(f"fadd {self.vector} {left}, {right}") for left, right in pairs]
            self.totals[r, j] = sums[0]

    def _pointer_phis(self, incoming: list[tuple[str, str, str]]) -> tuple[str, str]:
        a = ", ".join(f"[ {a}, %{block} ]" for a, _, block in incoming)
        b = ", ".join(f"[ {b}, %{block} ]" for _, b, block in incoming)
        return self.out.value(f"phi ptr {a}"), self.out.value(f"phi ptr {b}")

    def _loop(self, name: str, steps: int, before: str, after: str, start: tuple[str, str] | None = None) -> None:
        """Write a loop of ``steps`` unrolled steps of k; it defines ``%acc*_name``, ``%a_name`` and ``%b_name``."""
        out = self.out
        a_start, b_start = start or ("%a_start", "%b_start")
        initial = "zeroinitializer" if start is None else "%{}_half"
        count = "%rounds" if start is None else "%left"
        out.label(name)
        out.lines.append(f"  %i_{name} = phi i64 [ {count}, %{before} ], [ %next_{name}, %{name} ]")
        out.lines.append(f"  %a_in_{name} = phi ptr [ {a_start}, %{before} ], [ %a_{name}, %{name} ]")
        out.lines.append(f"  %b_in_{name} = phi ptr [ {b_start}, %{before} ], [ %b_{name}, %{name} ]")
        self._phis("in_" + name, [(initial, before), ("%{}_" + name, name)])
        current = {one: f"%{one}_in_{name}" for one in self._accumulators()}
        if self.tile.prefetch_panel and steps > 1:
            self._prefetch_panel(name, steps)
        for step in range(steps):
            self._step(name, step, current)
        for one, value in current.items():
            out.lines.append(f"  %{one}_{name} = bitcast {self.vector} {value} to {self.vector}")
        for side, ahead in (("a", self.a_steps[steps]), ("b", self.b_steps[steps])):
            out.lines.append(f"  %{side}_{name} = getelementptr {self.kind}, ptr %{side}_in_{name}, i64 {ahead}")
        out.lines.append(f"  %next_{name} = add nsw i64 %i_{name}, -1")
        out.lines.append(f"  %more_{name} = icmp ne i64 %next_{name}, 0")
        out.line(f"br i1 %more_{name}, label %{name}, label %{after}")

    def _prefetch_panel(self, name: str, steps: int) -> None:
        """Prefetch what these steps of the next panel of A read: the first tile on it would wait for each line."""
        out, locality = self.out, 4 - self.tile.prefetch_panel
        later = out.element(self.kind, f"%a_in_{name}", self.next_panel)
        for ahead in range(0, steps * self.tile.rows, LINE_BYTES // self.align):
            address = out.element(self.kind, later, ahead)
            out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 {locality}, i32 1)")

    def _step(self, name: str, step: int, current: dict[str, str]) -> None:
        tile, out = self.tile, self.out
        b_row = out.element(self.kind, f"%b_in_{name}", self.b_steps[step])
        b_values = []
        for j in range(tile.vectors):
            panel, vector = divmod(j, tile.panel_vectors or tile.vectors)
            address = out.element(self.kind, out.element(self.kind, b_row, self.b_panels[panel]), vector * tile.lanes)
            if tile.mask_b:
                b_values.append(out.value(self._masked_load(address, self.masks[j])))
            else:
                b_values.append(out.value(f"load {self.vector}, ptr {address}, align {self.align}"))
        width = tile.vectors * tile.lanes
        line = LINE_BYTES // self.align
        distance = tile.prefetch_ahead or (width + line if tile.prefetch_beside else 0)
        for ahead in range(distance, distance + width if distance else 0, line):
            address = out.element(self.kind, b_row, ahead)
            out.line(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")
        a_step = out.element(self.kind, f"%a_in_{name}", self.a_steps[step])
        for r in range(tile.rows):
            scalar = out.value(f"load {self.kind}, ptr {out.element(self.kind, a_step, self.a_rows[r])}")
            first_lane = out.value(f"insertelement {self.vector} poison, {self.kind} {scalar}, i64 0")
            every = out.value(
                f"shufflevector {self.vector} {first_lane}, {self.vector} poison, <{tile.lanes} x i32> zeroinitializer"
            )
            for j in range(tile.vectors):
                left, right = every, b_values[j]
                if tile.squares:
                    left = right = out.value(f"fsub {self.vector} {every}, {right}")
                sum_so_far = _accumulator(r, j, step % self.chains)
                current[sum_so_far] = out.value(
                    f"call {self.vector} @llvm.fmuladd.{self.suffix}({self.vector} {left}, "
                    f"{self.vector} {right}, {self.vector} {current[sum_so_far]})"
                )

    def _finish(self) -> None:
        """Write C: the first block of k applies beta, later blocks accumulate."""
        tile, out = self.tile, self.out
        out.lines.append("  %is_first = icmp ne i64 %first, 0")
        if tile.beta == 1.0:
            out.line("br label %later")
        else:
            out.line("br i1 %is_first, label %begin, label %later")
            out.label("begin")
            self._store_rows("begin", tile.beta)
        out.label("later")
        self._store_rows("later", 1.0)

    def _store_rows(self, block: str, scale: float) -> None:
        tile, out = self.tile, self.out
        for r in range(tile.rows):
            if tile.guard_rows and r > 0:
                out.lines.append(f"  %live_{block}{r} = icmp slt i64 {r}, %live_rows")
                out.line(f"br i1 %live_{block}{r}, label %{block}{r}, label %{block}_end")
                out.label(f"{block}{r}")
            for j in range(tile.vectors):
                address = out.element(self.kind, self.c_rows[r], j * tile.lanes)
                self._store(address, self.totals[r, j], scale, j)
        if tile.guard_rows:
            out.line(f"br label %{block}_end")
            out.label(f"{block}_end")
        out.line("ret void")

    def _store(self, address: str, value: str, scale: float, j: int) -> None:
        tile, out = self.tile, self.out
        if scale != 0.0:
            if tile.mask_c:
                old = out.value(self._masked_load(address, self.masks[j]))
            else:
                old = out.value(f"load {self.vector}, ptr {address}, align {self.align}")
            if scale == 1.0:
                value = out.value(f"fadd {self.vector} {old}, {value}")
            else:
                literal = float_literal(scale, tile.dtype)
                splat = "<" + ", ".join([f"{self.kind} {literal}"] * tile.lanes) + ">"
                value = out.value(
                    f"call {self.vector} @llvm.fmuladd.{self.suffix}({self.vector} {splat}, "
                    f"{self.vector} {old}, {self.vector} {value})"
                )
        if tile.mask_c:
            out.line(
                f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {address}, "
                f"i32 {self.align}, <{tile.lanes} x i1> {self.masks[j]})"
            )
        else:
            out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")

    def _masked_load(self, address: str, mask: str) -> str:
        return (
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.tile.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )


def _accumulator(row: int, vector: int, chain: int) -> str:
    return f"acc{row}_{vector}_{chain}"


def declarations(dtype: str, lanes: int) -> str:
    """Declare the intrinsics that tiles and packing use; one module of IR needs each once."""
    kind = element_type(dtype)
    vector = f"<{lanes} x {kind}>"
    suffix = f"v{lanes}f{8 * element_size(dtype)}"
    mask = f"<{lanes} x i1>"
    return (
        f"declare {vector} @llvm.fmuladd.{suffix}({vector}, {vector}, {vector})\n"
        f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {vector})\n"
        f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, i32, {mask})\n"
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        f"declare {kind} @llvm.vector.reduce.fadd.{suffix}({kind}, {vector})\n"
        "declare i64 @llvm.smin.i64(i64, i64)\n"
    )
