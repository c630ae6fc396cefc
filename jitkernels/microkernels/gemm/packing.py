"""Packing of GEMM operands into panels, as LLVM IR text.

A panel is ``count`` steps of ``width`` consecutive elements: the layout in which the register tile of
``jitkernels.microkernels.gemm.microkernel`` reads both operands (Goto & van de Geijn 2008).  Two functions pack it: one
copies where the source already holds the ``width`` elements side by side, one transposes blocks of ``lanes x lanes`` in
registers where they lie ``source_stride`` apart.  Missing elements (``live < width``) become zeros and are never read,
so that no load leaves the matrix.

Stores are whole vectors even where ``width`` is no multiple of ``lanes``: the surplus lands in the next step or the
next panel, which is written later.  Panels must therefore be packed in ascending order, into a buffer with
``packing_slack`` spare elements behind the last one.
"""

from __future__ import annotations

from typing import Protocol

from jitkernels.microkernels.gemm.microkernel import LINE_BYTES, Text, declarations, element_size, element_type

PREFETCHED_STEPS = 8
"""How many steps ahead of a panel that is copied its source is prefetched: processors look ahead in one page only."""

#: IR arguments of both functions, in order.  Strides, offsets and counts are in elements.
PACK_ARGUMENTS = (
    ("ptr", "source"), ("i64", "source_offset"), ("i64", "source_stride"),
    ("ptr", "target"), ("i64", "target_offset"), ("i64", "live"), ("i64", "count"),
)  # fmt: skip


TRANSPOSE_ARGUMENTS = (
    ("ptr", "source"),
    ("i64", "source_offset"),
    ("ptr", "target"),
    ("i64", "depth"),
    ("i64", "whole"),
)
"""IR arguments of `transpose_columns`."""


def packing_slack(lanes: int, width: int) -> int:
    """Return how many elements behind the last panel packing may overwrite."""
    return lanes * (width + lanes)


def transposed_lanes(lanes: int, width: int) -> int:
    """Return the lanes of the vectors that a panel is transposed in: few rows fill half of the widest vectors."""
    return min(lanes, 1 << (width - 1).bit_length())


def _header(symbol: str, dtype: str, lanes: int) -> str:
    arguments = ", ".join(f"{kind} {'noalias ' if kind == 'ptr' else ''}%{name}" for kind, name in PACK_ARGUMENTS)
    return f"{declarations(dtype, lanes)}define void @{symbol}({arguments}) noinline nounwind {{\n"


class _Packer:
    """The code that both packing functions share: names of types, masks, masked loads."""

    def __init__(self, dtype: str, lanes: int, width: int, pitch: int | None = None) -> None:
        self.lanes, self.width, self.pitch = lanes, width, pitch or width
        self.align = element_size(dtype)
        self.kind = element_type(dtype)
        self.vector = f"<{lanes} x {self.kind}>"
        self.suffix = f"v{lanes}f{8 * self.align}"
        self.groups = list(range(0, width, lanes))
        self.out = Text()

    def load(self, address: str, mask: str | None) -> str:
        """Append a load of a vector; lanes outside the mask are zeros."""
        if mask is None:
            return self.out.value(f"load {self.vector}, ptr {address}, align {self.align}")
        return self.out.value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {address}, i32 {self.align}, "
            f"<{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def store(self, value: str, address: str) -> None:
        """Append a store of a whole vector."""
        self.out.line(f"store {self.vector} {value}, ptr {address}, align {self.align}")

    def shuffle(self, left: str, right: str, picks: list[int]) -> str:
        """Append a ``shufflevector`` of two vectors of this type."""
        numbers = ", ".join(f"i32 {pick}" for pick in picks)
        return self.out.value(
            f"shufflevector {self.vector} {left}, {self.vector} {right}, <{self.lanes} x i32> <{numbers}>"
        )


def copy_panel(symbol: str, dtype: str, lanes: int, width: int) -> str:
    """IR of ``target[p * width + w] = source[p * source_stride + w] if w < live else 0`` for ``p < count``."""
    make = _Packer(dtype, lanes, width)
    out = make.out
    out.label("entry")
    out.lines.append(f"  %source_start = getelementptr {make.kind}, ptr %source, i64 %source_offset")
    out.lines.append(f"  %target_start = getelementptr {make.kind}, ptr %target, i64 %target_offset")
    out.lines.append(f"  %limit = call i64 @llvm.smin.i64(i64 %live, i64 {width})")
    masks = [out.lanes_below("%limit", lanes, group) for group in make.groups]
    out.lines.append(f"  %whole = icmp sge i64 %live, {width}")
    out.lines.append("  %some = icmp sgt i64 %count, 0")
    out.line("br i1 %some, label %choose, label %done")
    out.label("choose")
    out.line("br i1 %whole, label %fast, label %slow")
    for name in ("fast", "slow"):
        out.label(name)
        for side in ("source", "target"):
            out.lines.append(f"  %{side}_{name} = phi ptr [ %{side}_start, %choose ], [ %{side}_next_{name}, %{name} ]")
        out.lines.append(f"  %p_{name} = phi i64 [ 0, %choose ], [ %p_next_{name}, %{name} ]")
        values = []
        ahead = out.value(f"mul i64 %source_stride, {PREFETCHED_STEPS}")
        later = out.element(make.kind, f"%source_{name}", ahead)
        for at in range(0, width, LINE_BYTES // make.align):
            out.line(f"call void @llvm.prefetch.p0(ptr {out.element(make.kind, later, at)}, i32 0, i32 3, i32 1)")
        for group, mask in zip(make.groups, masks, strict=True):
            address = out.element(make.kind, f"%source_{name}", group)
            exact = name == "fast" and group + lanes <= width
            values.append(make.load(address, None if exact else mask))
        for group, value in zip(make.groups, values, strict=True):
            make.store(value, out.element(make.kind, f"%target_{name}", group))
        out.lines.append(f"  %source_next_{name} = getelementptr {make.kind}, ptr %source_{name}, i64 %source_stride")
        out.lines.append(f"  %target_next_{name} = getelementptr {make.kind}, ptr %target_{name}, i64 {width}")
        out.lines.append(f"  %p_next_{name} = add nsw i64 %p_{name}, 1")
        out.lines.append(f"  %more_{name} = icmp slt i64 %p_next_{name}, %count")
        out.line(f"br i1 %more_{name}, label %{name}, label %done")
    out.label("done")
    out.line("ret void")
    return _header(symbol, dtype, lanes) + "\n".join(out.lines) + "\n}\n"


def transpose_panel(symbol: str, dtype: str, lanes: int, width: int, pitch: int | None = None) -> str:
    """IR of ``target[p * pitch + w] = source[w * source_stride + p] if w < live else 0`` for ``p < count``.

    `pitch` is the width, unless several panels lie side by side.
    """
    make = _Packer(dtype, lanes, width, pitch)
    out = make.out
    out.label("entry")
    out.lines.append(f"  %source_start = getelementptr {make.kind}, ptr %source, i64 %source_offset")
    out.lines.append(f"  %target_start = getelementptr {make.kind}, ptr %target, i64 %target_offset")
    out.lines.append(f"  %whole = icmp sge i64 %live, {width}")
    out.lines.append("  %some = icmp sgt i64 %count, 0")
    out.line("br i1 %some, label %head, label %done")
    out.label("head")
    out.lines.append("  %p = phi i64 [ 0, %entry ], [ %p_next, %join ]")
    out.lines.append("  %left = sub nsw i64 %count, %p")
    out.lines.append(f"  %enough = icmp sge i64 %left, {lanes}")
    out.lines.append("  %plain = and i1 %whole, %enough")
    out.lines.append(f"  %from = getelementptr {make.kind}, ptr %source_start, i64 %p")
    out.lines.append(f"  %start = mul nsw i64 %p, {make.pitch}")
    out.lines.append(f"  %to = getelementptr {make.kind}, ptr %target_start, i64 %start")
    out.line("br i1 %plain, label %fast, label %slow")
    for name in ("fast", "slow"):
        out.label(name)
        mask = out.lanes_below("%left", lanes) if name == "slow" else None
        # Highest rows first: their surplus lanes land where lower rows of the next step are written later.
        for group in reversed(make.groups):
            _transpose_block(make, group, mask)
        out.line("br label %join")
    out.label("join")
    out.lines.append(f"  %p_next = add nsw i64 %p, {lanes}")
    out.lines.append("  %more = icmp slt i64 %p_next, %count")
    out.line("br i1 %more, label %head, label %done")
    out.label("done")
    out.line("ret void")
    return _header(symbol, dtype, lanes) + "\n".join(out.lines) + "\n}\n"


def _transpose_block(make: _Packer, group: int, mask: str | None) -> None:
    """Transpose ``lanes`` steps of the rows ``group .. group + lanes`` of a panel."""
    out, lanes = make.out, make.lanes
    rows: list[str] = []
    for row in range(group, group + lanes):
        if row >= make.width:
            rows.append("zeroinitializer")
            continue
        distance, row_mask = out.times(row, "%source_stride"), None
        if mask is not None:
            # No lane of a missing row is read, but a masked load from an unmapped page takes hundreds of cycles: load
            # from another row's address instead.
            live = out.value(f"icmp slt i64 {row}, %live")
            row_mask = out.value(f"select i1 {live}, <{lanes} x i1> {mask}, <{lanes} x i1> zeroinitializer")
            distance = out.value(f"select i1 {live}, i64 {distance}, i64 0")
        rows.append(make.load(out.element(make.kind, "%from", distance), row_mask))
    for step, value in enumerate(transpose_registers(make, rows)):
        make.store(value, out.element(make.kind, "%to", step * make.pitch + group))


class Shuffler(Protocol):
    """What writes shuffles of vectors of `lanes` elements, of `align` bytes each."""

    @property
    def lanes(self) -> int: ...
    @property
    def align(self) -> int: ...
    def shuffle(self, left: str, right: str, picks: list[int]) -> str:
        """Append a ``shufflevector`` of two vectors."""


def transpose_registers(make: Shuffler, rows: list[str]) -> list[str]:
    """Transpose ``lanes`` vectors: unpack within 128-bit parts, then exchange the parts."""
    lanes = make.lanes
    part = 16 // make.align
    # Within the 128-bit lanes: afterwards vector q + i holds, in its part L, column L * part + i of the rows q .. q +
    # part.
    unit = 1
    while unit < part:
        result = list(rows)
        for base in range(0, lanes, 2 * unit):
            for i in range(unit):
                left, right = rows[base + i], rows[base + unit + i]
                low: list[int] = []
                high: list[int] = []
                for begin in range(0, lanes, part):
                    low += _unpack(begin, unit, part, lanes, 0)
                    high += _unpack(begin, unit, part, lanes, 1)
                result[base + 2 * i] = make.shuffle(left, right, low)
                result[base + 2 * i + 1] = make.shuffle(left, right, high)
        rows = result
        unit *= 2
    parts = lanes // part
    whole = [list(range(part * number, part * number + part)) for number in range(2 * parts)]

    def exchange(left: str, right: str, numbers: list[int]) -> str:
        return make.shuffle(left, right, [lane for number in numbers for lane in whole[number]])

    columns = [""] * lanes
    for i in range(part):
        u = [rows[q * part + i] for q in range(parts)]
        if parts == 1:
            columns[i] = u[0]
        elif parts == 2:
            columns[i] = exchange(u[0], u[1], [0, 2])
            columns[part + i] = exchange(u[0], u[1], [1, 3])
        else:
            low_01, high_01 = exchange(u[0], u[1], [0, 1, 4, 5]), exchange(u[0], u[1], [2, 3, 6, 7])
            low_23, high_23 = exchange(u[2], u[3], [0, 1, 4, 5]), exchange(u[2], u[3], [2, 3, 6, 7])
            for number, (left, right) in enumerate(((low_01, low_23), (high_01, high_23))):
                columns[2 * number * part + i] = exchange(left, right, [0, 2, 4, 6])
                columns[(2 * number + 1) * part + i] = exchange(left, right, [1, 3, 5, 7])
    return columns


def _unpack(begin: int, unit: int, part: int, lanes: int, odd: int) -> list[int]:
    """Return the shuffle mask of one 128-bit part: alternating runs of ``unit`` elements, low or high half."""
    picks: list[int] = []
    half = part // 2
    for run in range(begin + odd * half, begin + odd * half + half, unit):
        picks += list(range(run, run + unit)) + list(range(lanes + run, lanes + run + unit))
    return picks


def transpose_columns(symbol: str, dtype: str, lanes: int, few: int) -> str:
    """IR of ``target[r * depth + q] = source[q * few + r]`` for ``r < few`` and ``q < whole * lanes``."""
    make = _Packer(dtype, lanes, lanes)
    out, kind = make.out, make.kind
    all_of_them = f"<{few * lanes} x {kind}>"
    out.label("entry")
    out.lines.append(f"  %source_start = getelementptr {kind}, ptr %source, i64 %source_offset")
    out.lines.append("  %some = icmp sgt i64 %whole, 0")
    out.line("br i1 %some, label %step, label %done")
    out.label("step")
    out.lines.append("  %i = phi i64 [ 0, %entry ], [ %next, %step ]")
    read, written = out.value(f"mul nsw i64 %i, {few * lanes}"), out.value(f"mul nsw i64 %i, {lanes}")
    address = out.element(kind, "%source_start", read)
    value = out.value(f"load {all_of_them}, ptr {address}, align {make.align}")
    to = out.element(kind, "%target", written)
    for r in range(few):
        picks = ", ".join(f"i32 {few * lane + r}" for lane in range(lanes))
        column = out.value(f"shufflevector {all_of_them} {value}, {all_of_them} poison, <{lanes} x i32> <{picks}>")
        make.store(column, out.element(kind, to, out.times(r, "%depth")))
    out.lines.append("  %next = add nsw i64 %i, 1")
    out.lines.append("  %more = icmp slt i64 %next, %whole")
    out.line("br i1 %more, label %step, label %done")
    out.label("done")
    out.line("ret void")
    arguments = ", ".join(f"{kind} %{name}" for kind, name in TRANSPOSE_ARGUMENTS)
    return f"define void @{symbol}({arguments}) alwaysinline nounwind {{\n" + "\n".join(out.lines) + "\n}\n"
