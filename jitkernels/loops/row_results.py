"""The results of rows in vectors whose lines go past the caches: ``(x * unit - mean) * factor``, and like it.

What comes before the first line of the result, and behind its last one, are vectors of which some lanes are off.
"""

from dataclasses import dataclass

from jitkernels import dtypes, machine
from jitkernels.loops.variants import STREAM_BYTES
from jitkernels.native.source import IRFunction
from jitkernels.registry import Variant
from jitkernels.signature import Array

LINE = 64
"""Bytes of a line of the caches."""
ARRAYS, NUMBERS = "arrays", "numbers"
"""What results are multiplied by and what is added to them: arrays as long as the row, or a number each."""
COPIES = "copies"
"""Results are what is read, and what will be read next is fetched."""
CHANNELS, PLAIN_CHANNELS = "channels", "plain_channels"
"""``(x - mean) * factor`` with arrays as long as the row for both, and one of what is then added, or none.

What will be read later is fetched, as of copies.
"""


def streams(variants: list[Variant], result: Array) -> list[Variant]:
    """The variants, and those in the widest vectors that write large results past the caches."""
    target = machine.target()
    widest = target.widths[0]
    if result.nbytes < STREAM_BYTES or not target.masked_lanes(result.dtype, widest) or not target.fuses:
        return variants
    return [*variants, *({**v, "stream": True} for v in variants if v.get("vector_bytes") == widest)]


def results_past_caches(dtype: str, vector_bytes: int, affine: str = "") -> IRFunction:
    """``(x, y, n, unit, mean, factor)``; affine ones take scale and bias in front of y.

    Of channels it is ``(x, next, mean, factor, bias, y, n)``, and the same without bias; of copies
    ``(x, next, y, n)``.
    """
    return _Results(dtype, vector_bytes, affine).function()


visible = IRFunction(
    "what_streams_is_visible",
    "void",
    (),
    """define void @what_streams_is_visible() alwaysinline nounwind {
  fence seq_cst
  ret void
}
""",
)
"""Others may see from here on what was written past the caches."""

asked_for = IRFunction(
    "asked_for",
    "void",
    ("void*",),
    """declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @asked_for(ptr %line) alwaysinline nounwind {
  call void @llvm.prefetch.p0(ptr %line, i32 1, i32 3, i32 1)
  ret void
}
""",
)
"""Brings a line that is going to be written in part, as that is where a row ends: all stores would wait for it."""


def lines_before(dtype: str) -> IRFunction:
    """``(to, step)``: elements before the first line of the caches, where it is that of all rows; else -1."""
    element = dtypes.named(dtype)
    symbol = f"lines_before_{dtype}"
    return IRFunction(
        symbol,
        "int64",
        (f"{element.c}*", "int64"),
        f"""define i64 @{symbol}(ptr %to, i64 %step) alwaysinline nounwind {{
  %address = ptrtoint ptr %to to i64
  %back = sub i64 0, %address
  %left = and i64 %back, {LINE - 1}
  %before = udiv i64 %left, {element.size}
  %bytes = mul i64 %step, {element.size}
  %over = and i64 %bytes, {LINE - 1}
  %is.same = icmp eq i64 %over, 0
  %found = select i1 %is.same, i64 %before, i64 -1
  ret i64 %found
}}
""",
    )


@dataclass(frozen=True)
class _Results:
    dtype: str
    vector_bytes: int
    affine: str

    @property
    def given(self) -> list[tuple[str, bool]]:
        """What stands between x and y, and whether it is an array."""
        names = {
            ARRAYS: ("scale", "bias"),
            NUMBERS: ("scale", "bias"),
            CHANNELS: ("next", "mean", "scale", "bias"),
            PLAIN_CHANNELS: ("next", "mean", "scale"),
            COPIES: ("next",),
        }
        return [(name, self.affine != NUMBERS) for name in names.get(self.affine, ())]

    @property
    def numbers(self) -> tuple[str, ...]:
        """What stands behind n."""
        return () if self.affine in (COPIES, CHANNELS, PLAIN_CHANNELS) else ("unit", "mean", "factor")

    def function(self) -> IRFunction:
        element = dtypes.named(self.dtype)
        lanes = min(self.vector_bytes, machine.target().vector_bytes) // element.size
        symbol = f"results_past_caches_{self.dtype}_{lanes}{self.affine}"
        pointer = f"{self.dtype}*"
        kinds = [pointer if is_array else self.dtype for _, is_array in self.given]
        arguments = (pointer, *kinds, pointer, "int64", *[self.dtype for _ in self.numbers])
        return IRFunction(symbol, "void", arguments, self.text(symbol, element.llvm, element.size, lanes))

    def text(self, symbol: str, number: str, size: int, lanes: int) -> str:
        """LLVM IR: three loops over vectors."""
        vector, kind = f"<{lanes} x {number}>", f"v{lanes}f{8 * size}"
        given = "".join(f"{'ptr' if is_array else number} %{name}, " for name, is_array in self.given)
        last = "".join(f", {number} %{name}" for name in self.numbers)
        names = [*self.numbers, *(name for name, is_array in self.given if not is_array)]
        everywhere = "".join(
            f"  %{name}.one = insertelement {vector} poison, {number} %{name}, i32 0\n"
            f"  %{name}.all = shufflevector {vector} %{name}.one, {vector} poison, "
            f"<{lanes} x i32> zeroinitializer\n"
            for name in names
        )
        return f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {vector} @llvm.fma.{kind}({vector}, {vector}, {vector})
declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, <{lanes} x i1>, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, <{lanes} x i1>)
declare <{lanes} x i1> @llvm.get.active.lane.mask.v{lanes}i1.i64(i64, i64)
define void @{symbol}(ptr %x, {given}ptr %y, i64 %n{last}) alwaysinline nounwind {{
start:
{everywhere}  %address = ptrtoint ptr %y to i64
  %back = sub i64 0, %address
  %left = and i64 %back, {LINE - 1}
  %before = udiv i64 %left, {size}
  %is.in = icmp slt i64 %before, %n
  %first = select i1 %is.in, i64 %before, i64 %n
  %rest = sub nsw i64 %n, %first
  %most = and i64 %rest, {-lanes}
  %end = add nsw i64 %first, %most
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %i.next, %some ]
  %i.more = icmp slt i64 %i, %first
  br i1 %i.more, label %some, label %lines
some:
{self.step("i", number, vector, kind, size, lanes, end="%first")}  %i.next = add nsw i64 %i, {lanes}
  br label %head, !llvm.loop !0
lines:
  %j = phi i64 [ %first, %head ], [ %j.next, %whole ]
  %j.more = icmp slt i64 %j, %end
  br i1 %j.more, label %whole, label %tail
whole:
{self.step("j", number, vector, kind, size, lanes)}  %j.next = add nsw i64 %j, {lanes}
  br label %lines, !llvm.loop !1
tail:
  %is.part = icmp slt i64 %end, %n
  br i1 %is.part, label %last, label %done
last:
{self.step("end", number, vector, kind, size, lanes, end="%n")}  br label %done
done:
  ret void
}}
!0 = distinct !{{!0, !2}}
!1 = distinct !{{!1, !3}}
!2 = !{{!"llvm.loop.unroll.disable"}}
!3 = !{{!"llvm.loop.unroll.count", i32 4}}
!4 = !{{i32 1}}
"""

    def step(self, at: str, number: str, vector: str, kind: str, size: int, lanes: int, end: str = "") -> str:
        """One vector at a place; what is behind an end is off, and without one it fills a line or a part of one."""
        read = ["x", *(name for name, is_array in self.given if is_array and name != "next")]
        lines = ""
        if end:
            mask = f"<{lanes} x i1> @llvm.get.active.lane.mask.v{lanes}i1.i64"
            lines += f"  %{at}.on = call {mask}(i64 %{at}, i64 {end})\n"
        for name in [*read, "y"]:
            lines += f"  %{at}.{name}.at = getelementptr {number}, ptr %{name}, i64 %{at}\n"
        for name in read:
            lines += f"  %{at}.{name} = " + (
                f"call {vector} @llvm.masked.load.{kind}.p0(ptr %{at}.{name}.at, i32 {size}, <{lanes} x i1> %{at}.on, "
                f"{vector} zeroinitializer)\n"
                if end
                else f"load {vector}, ptr %{at}.{name}.at, align {size}\n"
            )
        if ("next", True) in self.given:
            lines += f"  %{at}.next.at = getelementptr {number}, ptr %next, i64 %{at}\n"
            lines += f"  call void @llvm.prefetch.p0(ptr %{at}.next.at, i32 0, i32 2, i32 1)\n"
        if self.affine in (CHANNELS, PLAIN_CHANNELS):
            lines += f"  %{at}.z = fsub {vector} %{at}.x, %{at}.mean\n"
        elif self.numbers:
            lines += f"""  %{at}.far = fmul contract {vector} %{at}.x, %unit.all
  %{at}.off = fsub contract {vector} %{at}.far, %mean.all
  %{at}.z = fmul {vector} %{at}.off, %factor.all
"""
        value = f"%{at}.x" if self.affine == COPIES else f"%{at}.z"
        if self.affine == PLAIN_CHANNELS:
            value = f"%{at}.result"
            lines += f"  {value} = fmul {vector} %{at}.z, %{at}.scale\n"
        elif self.affine and self.affine != COPIES:
            scale, bias = (
                f"%{at}.{one}" if self.affine != NUMBERS else f"%{one}.all" for one in ("scale", "bias")
            )
            value = f"%{at}.result"
            taken = f"{vector} %{at}.z, {vector} {scale}, {vector} {bias}"
            lines += f"  {value} = call {vector} @llvm.fma.{kind}({taken})\n"
        if end:
            return lines + (
                f"  call void @llvm.masked.store.{kind}.p0({vector} {value}, ptr %{at}.y.at, i32 {size}, "
                f"<{lanes} x i1> %{at}.on)\n"
            )
        return (
            lines
            + f"  store {vector} {value}, ptr %{at}.y.at, align {min(lanes * size, LINE)}, !nontemporal !4\n"
        )
