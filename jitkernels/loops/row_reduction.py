"""Sums over a row in vector code: four vectors at a time, then one, then one of which some lanes are off.

LLVM's own vectors leave up to 63 elements to half a vector at a time and to single elements, and add the lanes of each
of these loops up for themselves. That takes longer than the row where rows are short.
"""

from jitkernels import dtypes, machine
from jitkernels.native.source import IRFunction

TOGETHER = 4
"""Vectors per step of the first loop, each in an accumulator of its own."""

LOOPS = """!0 = distinct !{!0, !2}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.unroll.disable"}
"""


def row_sum(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n)``: the sum of a row, in no certain order."""
    return _function("row_sum", dtype, vector_bytes, squares=False)


def row_squares(dtype: str, vector_bytes: int) -> IRFunction:
    """``(x, n, mean)``: the sum of the squares of the distances of a row from its mean."""
    return _function("row_squares", dtype, vector_bytes, squares=True)


def _function(name: str, dtype: str, vector_bytes: int, *, squares: bool) -> IRFunction:
    target, element = machine.target(), dtypes.named(dtype)
    lanes = min(vector_bytes, target.vector_bytes) // element.size
    symbol = f"{name}_{dtype}_{lanes}"
    writer = _Writer(element.llvm, 8 * element.size, lanes, squares)
    arguments = (f"{dtype}*", "int64", *((dtype,) if squares else ()))
    return IRFunction(symbol, dtype, arguments, writer.text(symbol, target.masked_lanes(dtype, vector_bytes) > 0))


class _Writer:
    """LLVM IR of the sum of a row or of its squares."""

    def __init__(self, number: str, bits: int, lanes: int, squares: bool) -> None:
        self.number, self.lanes, self.squares = number, lanes, squares
        self.vector = f"<{lanes} x {number}>"
        self.size = bits // 8
        self.kind = f"v{lanes}f{bits}"
        self.index = f"i{bits}"
        self.nothing = f"splat ({number} -0.0)"

    def added(self, name: str, before: str, element: str, kind: str, mean: str) -> list[str]:
        """``%name = before + term of element``."""
        if not self.squares:
            return [f"  %{name} = fadd reassoc {kind} {before}, {element}"]
        return [
            f"  %{name}.far = fsub {kind} {element}, {mean}",
            f"  %{name}.square = fmul contract {kind} %{name}.far, %{name}.far",
            f"  %{name} = fadd reassoc contract {kind} {before}, %{name}.square",
        ]

    def loaded(self, name: str, at: str) -> list[str]:
        return [
            f"  %{name}.at = getelementptr {self.number}, ptr %x, i64 {at}",
            f"  %{name} = load {self.vector}, ptr %{name}.at, align {self.size}",
        ]

    def text(self, symbol: str, masks: bool) -> str:
        vector, number, lanes = self.vector, self.number, self.lanes
        step = TOGETHER * lanes
        mean = f", {number} %mean" if self.squares else ""
        lines = [
            f"define {number} @{symbol}(ptr %x, i64 %n{mean}) alwaysinline nounwind {{",
            "start:",
            f"  %most = and i64 %n, {-step}",
            f"  %whole = and i64 %n, {-lanes}",
        ]
        if self.squares:
            lines += [
                f"  %one = insertelement {vector} poison, {number} %mean, i32 0",
                f"  %means = shufflevector {vector} %one, {vector} poison, <{lanes} x i32> zeroinitializer",
            ]
        lines += [
            "  %is_long = icmp sgt i64 %most, 0",
            "  br i1 %is_long, label %together, label %singles",
            "together:",
            "  %i = phi i64 [ 0, %start ], [ %i.next, %together ]",
        ]
        lines += [
            f"  %s{v} = phi {vector} [ {self.nothing}, %start ], [ %t{v}, %together ]" for v in range(TOGETHER)
        ]
        for v in range(TOGETHER):
            lines += [f"  %i{v} = add nsw i64 %i, {v * lanes}", *self.loaded(f"x{v}", f"%i{v}")]
            lines += self.added(f"t{v}", f"%s{v}", f"%x{v}", vector, "%means")
        lines += [
            f"  %i.next = add nsw i64 %i, {step}",
            "  %more = icmp slt i64 %i.next, %most",
            "  br i1 %more, label %together, label %joined, !llvm.loop !0",
            "joined:",
            f"  %low = fadd reassoc {vector} %t0, %t1",
            f"  %high = fadd reassoc {vector} %t2, %t3",
            f"  %all = fadd reassoc {vector} %low, %high",
            "  br label %singles",
            "singles:",
            "  %j = phi i64 [ 0, %start ], [ %most, %joined ], [ %j.next, %single ]",
            f"  %s = phi {vector} [ {self.nothing}, %start ], [ %all, %joined ], [ %t, %single ]",
            "  %again = icmp slt i64 %j, %whole",
            "  br i1 %again, label %single, label %rest",
            "single:",
            *self.loaded("y", "%j"),
            *self.added("t", "%s", "%y", vector, "%means"),
            f"  %j.next = add nsw i64 %j, {lanes}",
            "  br label %singles, !llvm.loop !1",
            "rest:",
            "  %left = sub nsw i64 %n, %whole",
            "  %some = icmp sgt i64 %left, 0",
        ]
        reduced = f"call reassoc {number} @llvm.vector.reduce.fadd.{self.kind}({number} -0.0, {vector}"
        declared = [f"declare {number} @llvm.vector.reduce.fadd.{self.kind}({number}, {vector})"]
        if masks:
            numbers = ", ".join(f"{self.index} {i}" for i in range(lanes))
            mask = f"<{lanes} x i1>"
            declared += [f"declare {vector} @llvm.masked.load.{self.kind}.p0(ptr, i32, {mask}, {vector})"]
            lines += [
                "  br i1 %some, label %last, label %end",
                "last:",
                f"  %left.small = trunc i64 %left to {self.index}" if self.index != "i64" else "  %left.small = add i64 %left, 0",
                f"  %left.one = insertelement <{lanes} x {self.index}> poison, {self.index} %left.small, i32 0",
                f"  %left.all = shufflevector <{lanes} x {self.index}> %left.one, <{lanes} x {self.index}> poison, "
                f"<{lanes} x i32> zeroinitializer",
                f"  %mask = icmp ult <{lanes} x {self.index}> <{numbers}>, %left.all",
                f"  %z.at = getelementptr {number}, ptr %x, i64 %whole",
                f"  %z = call {vector} @llvm.masked.load.{self.kind}.p0(ptr %z.at, i32 {self.size}, {mask} %mask, "
                f"{vector} {'%means' if self.squares else self.nothing})",
                *self.added("u", "%s", "%z", vector, "%means"),
                "  br label %end",
                "end:",
                f"  %sum = phi {vector} [ %s, %rest ], [ %u, %last ]",
                f"  %result = {reduced} %sum)",
                f"  ret {number} %result",
            ]
        else:
            lines += [
                f"  %sum = {reduced} %s)",
                "  br i1 %some, label %last, label %end",
                "last:",
                "  %k = phi i64 [ %whole, %rest ], [ %k.next, %last ]",
                f"  %v = phi {number} [ %sum, %rest ], [ %w, %last ]",
                f"  %z.at = getelementptr {number}, ptr %x, i64 %k",
                f"  %z = load {number}, ptr %z.at, align {self.size}",
                *self.added("w", "%v", "%z", number, "%mean"),
                "  %k.next = add nsw i64 %k, 1",
                "  %on = icmp slt i64 %k.next, %n",
                "  br i1 %on, label %last, label %end",
                "end:",
                f"  %result = phi {number} [ %sum, %rest ], [ %w, %last ]",
                f"  ret {number} %result",
            ]
        return "\n".join([*declared, *lines, "}", LOOPS])
