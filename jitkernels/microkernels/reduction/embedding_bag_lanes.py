"""Embedding-bag reduction of rows narrower than a vector: a horizontal reduction by halves, as LLVM IR."""

from dataclasses import replace

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.reduction.embedding_bag_strip import Rows, Strip, rows_of


def pool_lanes(pool: str, dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n, y, w, factor)``: reduce n elements, a full vector at least, to a row of w, a power of two.

    `factor` scales the result of a mean.
    """
    rows = rows_of(pool, dtype, vector_bytes)
    symbol = f"lanes_of_{pool}_{dtype}_{rows.lanes}"
    arguments = (f"{dtype}*", "int64", f"{dtype}*", "int64", dtype)
    return IRFunction(symbol, "int64", arguments, _Lanes(rows).text(symbol))


@frozen_dataclass
class _Lanes:
    """Writer: one vector of all elements, the tail included, whose upper half is folded into the lower repeatedly."""

    rows: Rows

    @property
    def vector(self) -> str:
        return f"<{self.rows.lanes} x {self.rows.number}>"

    def join(self, result: str, a: str, b: str) -> str:
        """Append the reduction of two vectors; a maximum is NaN where either is."""
        if not self.rows.is_max:
            return f"  {result} = fadd {self.vector} {a}, {b}\n"
        flags, nan = f"<{self.rows.lanes} x i1>", f"splat ({self.rows.number} 0x7FF8000000000000)"
        return f"""  {result}.is = fcmp ogt {self.vector} {a}, {b}
  {result}.greater = select {flags} {result}.is, {self.vector} {a}, {self.vector} {b}
  {result}.met = fcmp uno {self.vector} {a}, {b}
  {result} = select {flags} {result}.met, {self.vector} {nan}, {self.vector} {result}.greater
"""

    def halving(self, half: int, before: str) -> str:
        """Append the reduction of the upper half with the lower half."""
        order = ", ".join(f"i32 {i if i < self.rows.lanes else 'poison'}" for i in range(half, half + self.rows.lanes))
        return f"""  %is{half} = icmp sle i64 %w, {half}
  br i1 %is{half}, label %half{half}, label %end
half{half}:
  %u{half} = shufflevector {self.vector} {before}, {self.vector} poison, <{self.rows.lanes} x i32> <{order}>
{self.join(f"%v{half}", before, f"%u{half}")}"""

    def text(self, symbol: str) -> str:
        """Write the LLVM IR, for processors with masked vectors."""
        rows, vector = self.rows, self.vector
        kind, flags = f"v{rows.lanes}f{8 * rows.size}", f"<{rows.lanes} x i1>"
        halves = [1 << n for n in reversed(range(rows.lanes.bit_length() - 1))]
        operands = ["%all", *(f"%v{half}" for half in halves)]
        predecessors = ["joined", *(f"half{half}" for half in halves)]
        values = ", ".join(f"[ {v}, %{at} ]" for v, at in zip(operands, predecessors, strict=True))
        steps = "".join(map(self.halving, halves, operands))
        strip = Strip(replace(rows, is_scaled=False), "v", 1, rows.lanes, is_masked=False)
        (whole,), code = strip.results()
        identity = f"splat ({rows.number} {rows.identity})"
        then = f"""{code}
  %some = icmp sgt i64 %rest, 0
  br i1 %some, label %more, label %joined
more:
  %few = trunc i64 %rest to i32
  %on = call {flags} @llvm.get.active.lane.mask.v{rows.lanes}i1.i32(i32 0, i32 %few)
  %part.at = getelementptr {rows.number}, ptr %x, i64 %most
  %part = call {vector} @llvm.masked.load.{kind}.p0(ptr %part.at, i32 1, {flags} %on, {vector} {identity})
{self.join("%both", whole, "%part")}  br label %joined
joined:
  %all = phi {vector} [ {whole}, %v.put ], [ %both, %more ]
{steps}  br label %end"""
        result = "%scaled" if rows.is_scaled else "%row"
        scaled = (
            f"""  %factor.one = insertelement {vector} poison, {rows.number} %factor, i32 0
  %factors = shufflevector {vector} %factor.one, {vector} poison, <{rows.lanes} x i32> zeroinitializer
  %scaled = fmul {vector} %row, %factors
"""
            if rows.is_scaled
            else ""
        )
        return f"""{rows.identity_constant}
declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {flags}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {flags})
declare {flags} @llvm.get.active.lane.mask.v{rows.lanes}i1.i32(i32, i32)
define i64 @{symbol}(ptr %x, i64 %n, ptr %y, i64 %w, {rows.number} %factor) noinline nounwind {{
start:
  %most = and i64 %n, {-rows.lanes}
  %rest = sub nsw i64 %n, %most
  %rows = lshr i64 %n, {rows.lanes.bit_length() - 1}
{rows.strides(str(rows.lanes))}  %joins = icmp ne i64 0, 0
  br label %v
{strip.text(then)}end:
  %row = phi {vector} {values}
{scaled}  %width = trunc i64 %w to i32
  %to = call {flags} @llvm.get.active.lane.mask.v{rows.lanes}i1.i32(i32 0, i32 %width)
  call void @llvm.masked.store.{kind}.p0({vector} {result}, ptr %y, i32 1, {flags} %to)
  ret i64 0
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""
