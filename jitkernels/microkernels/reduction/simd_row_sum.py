"""Sum of a row in vector code: four vectors per iteration, then single vectors, then a masked tail.

Four accumulators are combined after `ADDS` additions to each; a row of `MAX_PLAIN_ROW` elements is a few such blocks.

LLVM's vectorizer leaves up to 63 elements to an epilogue of half a vector and to scalar code, each with a horizontal
sum of its own. That takes longer than the rest where rows are short.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, inlined, offset
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.maths.blocked_summation import ADDS
from jitkernels.microkernels.maths.strict_arithmetic import compensated, plus, two_sum_error

ACCUMULATORS = 4
"""Vectors per iteration of the first loop, each with an accumulator of its own."""
MAX_PLAIN_ROW = 4096
"""Longest row of the plain kernel; sums of longer rows are compensated."""


def row_sum(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n)``: the sum of a row, in unspecified order; -0.0 for an empty row."""
    return _Reduction(dtype, vector_bytes, squares=False).function("row_sum")


def long_row_sum(dtype: str) -> Any:
    """Return the function ``(x, n)``: the sum of a row of any length without infinities."""
    zero, sum_of = np.dtype(dtype).type(0), row_sum(dtype, cpu_target.target().vector_bytes)

    @inlined()
    def sum_of_all(x: Any, n: int) -> Any:
        if n <= MAX_PLAIN_ROW:
            return sum_of(x, n)
        total, lost = zero, zero
        for begin in range(0, n, MAX_PLAIN_ROW):
            part = sum_of(offset(x, begin), min(MAX_PLAIN_ROW, n - begin))
            lost += two_sum_error(total, part)
            total = plus(total, part)
        return compensated(total, lost)

    return sum_of_all


def row_squares(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n, mean)``: the sum of squared deviations of a row from its mean."""
    return _Reduction(dtype, vector_bytes, squares=True).function("row_squares")


@frozen_dataclass
class _Reduction:
    """Writer of the sum of a row, or of the `squares` of its deviations."""

    dtype: str
    vector_bytes: int
    squares: bool

    def function(self, name: str) -> IRFunction:
        element, target = dtypes.named(self.dtype), cpu_target.target()
        lanes = min(self.vector_bytes, target.vector_bytes) // element.size
        symbol = f"{name}_{self.dtype}_{lanes}"
        arguments = (f"{self.dtype}*", "int64", *((self.dtype,) if self.squares else ()))
        masks = target.masked_lanes(self.dtype, self.vector_bytes) > 0
        return IRFunction(symbol, self.dtype, arguments, self.text(symbol, element.llvm, element.size, lanes, masks))

    def text(self, symbol: str, number: str, size: int, lanes: int, masks: bool) -> str:
        """Write the LLVM IR. Sums start at -0.0, the identity of addition, which keeps a negative zero."""
        vector, kind, numbers = f"<{lanes} x {number}>", f"v{lanes}f{8 * size}", range(ACCUMULATORS)
        sums = "\n".join(
            f"  %s{v} = phi {vector} [ splat ({number} -0.0), %part ], [ %t{v}, %together ]" for v in numbers
        )
        steps = "\n".join(
            f"  %i{v} = add nsw i64 %i, {v * lanes}\n"
            + self.load(f"x{v}", f"%i{v}", number, vector, size)
            + self.add(f"t{v}", f"%s{v}", f"%x{v}", vector, "%means")
            for v in numbers
        )
        rest = self.masked(number, vector, kind, lanes) if masks else self.one_by_one(number, vector, kind)
        return f"""declare {number} @llvm.vector.reduce.fadd.{kind}({number}, {vector})
declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, <{lanes} x i1>, {vector})
declare <{lanes} x i1> @llvm.get.active.lane.mask.v{lanes}i1.i32(i32, i32)
define {number} @{symbol}(ptr %x, i64 %n{f", {number} %mean" if self.squares else ""}) alwaysinline nounwind {{
start:
  %most = and i64 %n, {-ACCUMULATORS * lanes}
  %whole = and i64 %n, {-lanes}
  %left = sub nsw i64 %n, %whole
{self.everywhere(number, vector, lanes)}  %is_long = icmp sgt i64 %most, 0
  br i1 %is_long, label %part, label %singles
part:
  %begin = phi i64 [ 0, %start ], [ %until, %joined ]
  %total = phi {vector} [ splat ({number} -0.0), %start ], [ %all, %joined ]
  %ahead = add nsw i64 %begin, {ADDS * ACCUMULATORS * lanes}
  %is_last = icmp sge i64 %ahead, %most
  %until = select i1 %is_last, i64 %most, i64 %ahead
  br label %together
together:
  %i = phi i64 [ %begin, %part ], [ %i.next, %together ]
{sums}
{steps}
  %i.next = add nsw i64 %i, {ACCUMULATORS * lanes}
  %more = icmp slt i64 %i.next, %until
  br i1 %more, label %together, label %joined, !llvm.loop !0
joined:
  %low = fadd {vector} %t0, %t1
  %high = fadd {vector} %t2, %t3
  %both = fadd {vector} %low, %high
  %all = fadd {vector} %total, %both
  br i1 %is_last, label %singles, label %part, !llvm.loop !3
singles:
  %j = phi i64 [ 0, %start ], [ %most, %joined ], [ %j.next, %single ]
  %s = phi {vector} [ splat ({number} -0.0), %start ], [ %all, %joined ], [ %t, %single ]
  %again = icmp slt i64 %j, %whole
  br i1 %again, label %single, label %rest
single:
{self.load("y", "%j", number, vector, size)}{self.add("t", "%s", "%y", vector, "%means")}
  %j.next = add nsw i64 %j, {lanes}
  br label %singles, !llvm.loop !1
rest:
  %some = icmp sgt i64 %left, 0
{rest}}}
!0 = distinct !{{!0, !2}}
!1 = distinct !{{!1, !2}}
!2 = !{{!"llvm.loop.unroll.disable"}}
!3 = distinct !{{!3, !2}}
"""

    def everywhere(self, number: str, vector: str, lanes: int) -> str:
        """Append the broadcast of the mean."""
        if not self.squares:
            return ""
        return (
            f"  %one = insertelement {vector} poison, {number} %mean, i32 0\n"
            f"  %means = shufflevector {vector} %one, {vector} poison, <{lanes} x i32> zeroinitializer\n"
        )

    def load(self, name: str, at: str, number: str, vector: str, size: int) -> str:
        return (
            f"  %{name}.at = getelementptr {number}, ptr %x, i64 {at}\n"
            f"  %{name} = load {vector}, ptr %{name}.at, align {size}\n"
        )

    def add(self, name: str, before: str, element: str, kind: str, mean: str) -> str:
        """Append the addition of the term of one more element or vector."""
        if not self.squares:
            return f"  %{name} = fadd reassoc {kind} {before}, {element}"
        return (
            f"  %{name}.far = fsub {kind} {element}, {mean}\n"
            f"  %{name}.square = fmul contract {kind} %{name}.far, %{name}.far\n"
            f"  %{name} = fadd reassoc contract {kind} {before}, %{name}.square"
        )

    def masked(self, number: str, vector: str, kind: str, lanes: int) -> str:
        """Append the masked last vector, whose masked lanes contribute zero."""
        identity = "%means" if self.squares else f"splat ({number} -0.0)"
        return f"""  br i1 %some, label %last, label %end
last:
  %count = trunc i64 %left to i32
  %on = call <{lanes} x i1> @llvm.get.active.lane.mask.v{lanes}i1.i32(i32 0, i32 %count)
  %z.at = getelementptr {number}, ptr %x, i64 %whole
  %z = call {vector} @llvm.masked.load.{kind}.p0(ptr %z.at, i32 1, <{lanes} x i1> %on, {vector} {identity})
{self.add("u", "%s", "%z", vector, "%means")}
  br label %end
end:
  %sum = phi {vector} [ %s, %rest ], [ %u, %last ]
  %result = call reassoc {number} @llvm.vector.reduce.fadd.{kind}({number} -0.0, {vector} %sum)
  ret {number} %result
"""

    def one_by_one(self, number: str, vector: str, kind: str) -> str:
        """Append the scalar loop over the tail where vectors have no masks."""
        return f"""  %sum = call reassoc {number} @llvm.vector.reduce.fadd.{kind}({number} -0.0, {vector} %s)
  br i1 %some, label %last, label %end
last:
  %k = phi i64 [ %whole, %rest ], [ %k.next, %last ]
  %v = phi {number} [ %sum, %rest ], [ %u, %last ]
  %z.at = getelementptr {number}, ptr %x, i64 %k
  %z = load {number}, ptr %z.at
{self.add("u", "%v", "%z", number, "%mean")}
  %k.next = add nsw i64 %k, 1
  %on = icmp slt i64 %k.next, %n
  br i1 %on, label %last, label %end
end:
  %result = phi {number} [ %sum, %rest ], [ %u, %last ]
  ret {number} %result
"""
