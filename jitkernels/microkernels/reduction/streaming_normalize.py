"""Normalization of rows with streaming stores: ``(x * unit - mean) * factor``, and similar.

The elements before the first cache line boundary of a row, and behind its last one, are masked vectors. Where rows are
contiguous, the end of one row and the start of the next are merged into one line.
"""

from dataclasses import dataclass
from typing import NamedTuple

from jitkernels.attrs.schema.registry import Variant
from jitkernels.attrs.schema.signature import Array
from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.tuning_space import STREAM_CANDIDATE_BYTES

MAX_PREFETCHED_ROW_BYTES = 1 << 16
"""Rows of up to so many bytes: the next row is prefetched into the second-level cache while results are written."""
FIRST_ROW, LAST_ROW = 1, 2
"""Flags `sides` of contiguous rows: the first has no row before it, the last has none behind it."""
ARRAYS, NUMBERS = "arrays", "numbers"
"""Kinds of scale and bias: arrays as long as the row, or scalars."""
COPIES = "copies"
"""Kind without arithmetic: results are copies of x."""
CHANNELS, PLAIN_CHANNELS = "channels", "plain_channels"
"""Kinds of ``(x - mean) * factor`` with arrays as long as the row for both, and one for a bias, or none."""


def streams(variants: list[Variant], result: Array) -> list[Variant]:
    """Add variants in the widest vectors that write large results with streaming stores."""
    target = cpu_target.target()
    widest = target.widths[0]
    if result.nbytes < STREAM_CANDIDATE_BYTES or not target.masked_lanes(result.dtype, widest) or not target.fuses:
        return variants
    return [*variants, *({**v, "stream": True} for v in variants if v.get("vector_bytes") == widest)]


def streaming_results(dtype: str, vector_bytes: int, affine: str = "") -> IRFunction:
    """``(x, next, y, n, line, sides, unit, mean, factor)``; affine kinds take scale and bias in front of y.

    For channels: ``(x, next, mean, factor, bias, y, n, line, sides)``, and the same without bias; for copies ``(x,
    next, y, n, line, sides)``. `next` is the address of the next input, which is prefetched. `line` is scratch of one
    cache line, for the line in which one row ends and the next begins: partial stores to it would stall on the read of
    that line. `sides`: FIRST_ROW, LAST_ROW or their sum, or 0 for a row between two others.
    """
    return _Results(dtype, vector_bytes, affine).function()


store_fence = IRFunction(
    "streaming_store_fence",
    "void",
    (),
    """define void @streaming_store_fence() alwaysinline nounwind {
  fence seq_cst
  ret void
}
""",
)
"""Fence: makes the streaming stores visible to other threads."""

prefetch_line = IRFunction(
    "prefetch_line",
    "void",
    ("void*",),
    """declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @prefetch_line(ptr %line) alwaysinline nounwind {
  call void @llvm.prefetch.p0(ptr %line, i32 1, i32 3, i32 1)
  ret void
}
""",
)
"""Prefetch for writing the line in which a row ends, which is written in part: all stores would wait for it."""


def elements_before_line(dtype: str) -> IRFunction:
    """``(to, step)``: elements before the first cache line boundary, if it is the same for all rows; else -1."""
    element = dtypes.named(dtype)
    symbol = f"elements_before_line_{dtype}"
    return IRFunction(
        symbol,
        "int64",
        (f"{element.c}*", "int64"),
        f"""define i64 @{symbol}(ptr %to, i64 %step) alwaysinline nounwind {{
  %address = ptrtoint ptr %to to i64
  %back = sub i64 0, %address
  %left = and i64 %back, {CACHE_LINE_BYTES - 1}
  %before = udiv i64 %left, {element.size}
  %bytes = mul i64 %step, {element.size}
  %over = and i64 %bytes, {CACHE_LINE_BYTES - 1}
  %is.same = icmp eq i64 %over, 0
  %same = select i1 %is.same, i64 %before, i64 -1
  ret i64 %same
}}
""",
    )


class _Vector(NamedTuple):
    """The type of the vectors: LLVM's name and the bytes of an element, and how many there are."""

    number: str
    size: int
    lanes: int

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.number}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """Return the type as names of intrinsics contain it."""
        return f"v{self.lanes}f{8 * self.size}"

    @property
    def store_alignment(self) -> int:
        """Return the alignment of non-temporal stores in bytes."""
        return min(self.lanes * self.size, CACHE_LINE_BYTES)


@dataclass(frozen=True)
class _Results:
    dtype: str
    vector_bytes: int
    affine: str

    @property
    def parameters(self) -> list[tuple[str, bool]]:
        """Return the arguments between x and y, and whether each is an array."""
        names = {
            ARRAYS: ("scale", "bias"),
            NUMBERS: ("scale", "bias"),
            CHANNELS: ("mean", "scale", "bias"),
            PLAIN_CHANNELS: ("mean", "scale"),
        }
        others = names.get(self.affine, ())
        return [("next", True), *((name, self.affine != NUMBERS) for name in others)]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the arguments behind n."""
        return () if self.affine in (COPIES, CHANNELS, PLAIN_CHANNELS) else ("unit", "mean", "factor")

    def function(self) -> IRFunction:
        element = dtypes.named(self.dtype)
        lanes = min(self.vector_bytes, cpu_target.target().vector_bytes) // element.size
        symbol = f"results_past_caches_{self.dtype}_{lanes}{self.affine}"
        pointer = f"{self.dtype}*"
        kinds = [pointer if is_array else self.dtype for _, is_array in self.parameters]
        arguments = (pointer, *kinds, pointer, "int64", pointer, "int64", *[self.dtype for _ in self.numbers])
        return IRFunction(symbol, "void", arguments, self.text(symbol, _Vector(element.llvm, element.size, lanes)))

    def text(self, symbol: str, vector: _Vector) -> str:
        """Write the LLVM IR: three loops, the middle one over whole cache lines."""
        number, kind, mask = vector.number, vector.suffix, vector.mask
        parameters = "".join(f"{'ptr' if is_array else number} %{name}, " for name, is_array in self.parameters)
        last = "".join(f", {number} %{name}" for name in self.numbers)
        return f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {vector} @llvm.fma.{kind}({vector}, {vector}, {vector})
declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {mask}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {mask})
define void @{symbol}(ptr %x, {parameters}ptr %y, i64 %n, ptr %line, i64 %sides{last}) alwaysinline nounwind {{
start:
{self.everywhere(vector)}{_bounds(vector)}  br label %head
{self.first_line(vector)}{self.whole_lines(vector)}{self.last_line(vector)}done:
  ret void
}}
!0 = distinct !{{!0, !3}}
!1 = distinct !{{!1, !4}}
!2 = distinct !{{!2, !3}}
!3 = !{{!"llvm.loop.unroll.disable"}}
!4 = !{{!"llvm.loop.unroll.count", i32 4}}
!5 = !{{i32 1}}
"""

    def everywhere(self, vector: _Vector) -> str:
        """Write the broadcasts of the scalar arguments into vectors."""
        names = [*self.numbers, *(name for name, is_array in self.parameters if not is_array)]
        return "".join(
            f"  %{name}.one = insertelement {vector} poison, {vector.number} %{name}, i32 0\n"
            f"  %{name}.all = shufflevector {vector} %{name}.one, {vector} poison, "
            f"<{vector.lanes} x i32> zeroinitializer\n"
            for name in names
        )

    def first_line(self, vector: _Vector) -> str:
        """Write the loop up to the first cache line boundary; contiguous rows merge `%line` into it."""
        return f"""head:
  %i = phi i64 [ %begin, %start ], [ %i.next, %written ]
  %i.more = icmp slt i64 %i, %first
  br i1 %i.more, label %some, label %lines
some:
{self.step("i", vector, end="%first")}  br i1 %continues, label %joined, label %alone
joined:
  %i.place = sub nsw i64 %i, %begin
  %i.kept.at = getelementptr {vector.number}, ptr %line, i64 %i.place
  %i.kept = load {vector}, ptr %i.kept.at, align {vector.size}
  %i.both = select {vector.mask} %i.on, {vector} {self.value("i")}, {vector} %i.kept
  store {vector} %i.both, ptr %i.y.at, align {vector.store_alignment}, !nontemporal !5
  br label %written
alone:
{self.masked("i", vector)}  br label %written
written:
  %i.next = add nsw i64 %i, {vector.lanes}
  br label %head, !llvm.loop !0
"""

    def whole_lines(self, vector: _Vector) -> str:
        """Write the loop over whole cache lines."""
        return f"""lines:
  %j = phi i64 [ %first, %head ], [ %j.next, %whole ]
  %j.more = icmp slt i64 %j, %end
  br i1 %j.more, label %whole, label %tail
whole:
{self.step("j", vector)}  %j.next = add nsw i64 %j, {vector.lanes}
  br label %lines, !llvm.loop !1
"""

    def last_line(self, vector: _Vector) -> str:
        """Write the loop behind the last cache line boundary; contiguous rows leave its results in `%line`."""
        return f"""tail:
  %k = phi i64 [ %end, %lines ], [ %k.next, %further ]
  %k.more = icmp slt i64 %k, %n
  br i1 %k.more, label %last, label %done
last:
{self.step("k", vector, end="%n")}  br i1 %leaves, label %kept, label %ended
kept:
  %k.place = sub nsw i64 %k, %end
  %k.line.at = getelementptr {vector.number}, ptr %line, i64 %k.place
  store {vector} {self.value("k")}, ptr %k.line.at, align {vector.size}
  br label %further
ended:
{self.masked("k", vector)}  br label %further
further:
  %k.next = add nsw i64 %k, {vector.lanes}
  br label %tail, !llvm.loop !2
"""

    def step(self, at: str, vector: _Vector, end: str = "") -> str:
        """Append one vector at an index; lanes behind `end` are masked, and without it none are."""
        read = ["x", *(name for name, is_array in self.parameters if is_array and name != "next")]
        lines = _lanes_before(at, vector, end) if end else ""
        for name in [*read, "y"]:
            lines += f"  %{at}.{name}.at = getelementptr {vector.number}, ptr %{name}, i64 %{at}\n"
        for name in read:
            lines += f"  %{at}.{name} = " + (
                f"call {vector} @llvm.masked.load.{vector.suffix}.p0(ptr %{at}.{name}.at, i32 {vector.size}, "
                f"{vector.mask} %{at}.on, {vector} zeroinitializer)\n"
                if end
                else f"load {vector}, ptr %{at}.{name}.at, align {vector.size}\n"
            )
        if not end:
            lines += f"  %{at}.next.at = getelementptr {vector.number}, ptr %next, i64 %{at}\n"
            lines += f"  call void @llvm.prefetch.p0(ptr %{at}.next.at, i32 0, i32 2, i32 1)\n"
        lines += self.results(at, vector)
        if end:
            return lines
        store = f"store {vector} {self.value(at)}, ptr %{at}.y.at, align {vector.store_alignment}, !nontemporal !5"
        return f"{lines}  {store}\n"

    def results(self, at: str, vector: _Vector) -> str:
        """Write the arithmetic between the vectors loaded at an index and the result."""
        lines = ""
        if self.affine in (CHANNELS, PLAIN_CHANNELS):
            lines += f"  %{at}.z = fsub {vector} %{at}.x, %{at}.mean\n"
        elif self.numbers:
            lines += f"""  %{at}.far = fmul contract {vector} %{at}.x, %unit.all
  %{at}.off = fsub contract {vector} %{at}.far, %mean.all
  %{at}.z = fmul {vector} %{at}.off, %factor.all
"""
        if self.affine == PLAIN_CHANNELS:
            lines += f"  {self.value(at)} = fmul {vector} %{at}.z, %{at}.scale\n"
        elif self.affine and self.affine != COPIES:
            scale, bias = (
                f"%{at}.{array}" if self.affine != NUMBERS else f"%{array}.all" for array in ("scale", "bias")
            )
            operands = f"{vector} %{at}.z, {vector} {scale}, {vector} {bias}"
            lines += f"  {self.value(at)} = call {vector} @llvm.fma.{vector.suffix}({operands})\n"
        return lines

    def value(self, at: str) -> str:
        """Return the name of the results at an index."""
        return f"%{at}.x" if self.affine == COPIES else f"%{at}.result" if self.affine else f"%{at}.z"

    def masked(self, at: str, vector: _Vector) -> str:
        """Append a masked store of the results."""
        return (
            f"  call void @llvm.masked.store.{vector.suffix}.p0({vector} {self.value(at)}, ptr %{at}.y.at, "
            f"i32 {vector.size}, {vector.mask} %{at}.on)\n"
        )


def _bounds(vector: _Vector) -> str:
    """Write the first and last cache line boundary of a row, `%first` and `%end`, and whether rows share a line."""
    return f"""  %address = ptrtoint ptr %y to i64
  %back = sub i64 0, %address
  %left = and i64 %back, {CACHE_LINE_BYTES - 1}
  %before = udiv i64 %left, {vector.size}
  %is.in = icmp slt i64 %before, %n
  %first = select i1 %is.in, i64 %before, i64 %n
  %rest = sub nsw i64 %n, %first
  %most = and i64 %rest, {-CACHE_LINE_BYTES // vector.size}
  %end = add nsw i64 %first, %most
  %is.long = icmp sge i64 %n, {2 * CACHE_LINE_BYTES // vector.size}
  %is.first = trunc i64 %sides to i1
  %takes.on = xor i1 %is.first, true
  %continues = and i1 %is.long, %takes.on
  %is.last = icmp sge i64 %sides, {LAST_ROW}
  %goes.on = xor i1 %is.last, true
  %leaves = and i1 %is.long, %goes.on
  %missing = sub nsw i64 {CACHE_LINE_BYTES // vector.size}, %first
  %has.some = icmp sgt i64 %first, 0
  %back.to = select i1 %has.some, i64 %missing, i64 0
  %begin = sub nsw i64 0, %back.to
"""


def _lanes_before(at: str, vector: _Vector, end: str) -> str:
    """Write the mask of the lanes from an index on that lie in the row, from 0 up to `end`."""
    numbers = ", ".join(f"i64 {lane}" for lane in range(vector.lanes))
    indices = f"<{vector.lanes} x i64>"
    return f"""  %{at}.one = insertelement {indices} poison, i64 %{at}, i32 0
  %{at}.all = shufflevector {indices} %{at}.one, {indices} poison, <{vector.lanes} x i32> zeroinitializer
  %{at}.places = add nsw {indices} %{at}.all, <{numbers}>
  %{at}.end.one = insertelement {indices} poison, i64 {end}, i32 0
  %{at}.end.all = shufflevector {indices} %{at}.end.one, {indices} poison, <{vector.lanes} x i32> zeroinitializer
  %{at}.ends = icmp slt {indices} %{at}.places, %{at}.end.all
  %{at}.begins = icmp sge {indices} %{at}.places, zeroinitializer
  %{at}.on = and {vector.mask} %{at}.ends, %{at}.begins
"""
