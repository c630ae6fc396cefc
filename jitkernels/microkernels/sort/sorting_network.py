"""Bitonic sorting networks over integers in vector registers, as LLVM IR, and merges of what they have sorted.

Elements compare with those whose place differs in one bit: between registers that is a minimum and a maximum, within
one a shuffle more, and a choice which lanes take which (Batcher, 1968). What is longer than the registers hold is
merged by the same steps, which go through memory as long as those that compare are further apart.
"""

from collections.abc import Callable

from jitkernels.native.source import IRFunction


class _Registers:
    """Vectors that lie one behind another, and the text of what is done with them."""

    def __init__(self, bits: int, count: int, lanes: int) -> None:
        self.bits, self.lanes = bits, lanes
        self.vector = f"<{lanes} x i{bits}>"
        self.lines: list[str] = []
        self.rows = [f"%x{i}" for i in range(count // lanes)]
        for i in range(count // lanes):
            self.lines += [f"  %at{i} = getelementptr i{bits}, ptr %p, i64 {i * lanes}"]
            self.lines += [f"  %x{i} = load {self.vector}, ptr %at{i}, align {bits // 8}"]

    def new(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def extremes(self, one: str, other: str) -> tuple[str, str]:
        """The minimum and the maximum of two registers, lane by lane.

        Those of 64 bits are two steps each on Intel's processors, and none of others': one comparison serves both.
        """
        if self.bits == 64:
            larger = self.new(f"icmp sgt {self.vector} {one}, {other}")
            low, high = (
                self.new(f"select <{self.lanes} x i1> {larger}, {self.vector} {a}, {self.vector} {b}")
                for a, b in ((other, one), (one, other))
            )
            return low, high
        low, high = (
            self.new(f"call {self.vector} @llvm.{which}.v{self.lanes}i{self.bits}({both})")
            for which in ("smin", "smax")
            for both in [f"{self.vector} {one}, {self.vector} {other}"]
        )
        return low, high

    def compare(self, distance: int, falls: Callable[[int], bool]) -> None:
        """Elements with those at a distance, the lesser first, but where places `falls`."""
        lanes = self.lanes
        for i, row in enumerate(list(self.rows)):
            other = i ^ distance // lanes
            if distance >= lanes and other > i:
                low, high = self.extremes(self.rows[i], self.rows[other])
                self.rows[i], self.rows[other] = (high, low) if falls(i * lanes) else (low, high)
            elif distance < lanes:
                turned = self.shuffled(row, "poison", [lane ^ distance for lane in range(lanes)])
                is_low = [bool(lane & distance) == falls(i * lanes + lane) for lane in range(lanes)]
                if self.bits == 64:
                    self.rows[i] = self.one_of_both(row, turned, is_low)
                    continue
                low, high = self.extremes(row, turned)
                places = [lane + lanes * (not least) for lane, least in enumerate(is_low)]
                self.rows[i] = self.shuffled(low, high, places)

    def one_of_both(self, one: str, other: str, is_low: list[bool]) -> str:
        """The lesser of two in some lanes, the larger in the others, which is the opposite of the same comparison."""
        bits = ", ".join(f"i1 {'false' if low else 'true'}" for low in is_low)
        lanes = f"<{self.lanes} x i1>"
        larger = self.new(f"icmp sgt {self.vector} {one}, {other}")
        wanted = self.new(f"xor {lanes} {larger}, <{bits}>")
        return self.new(f"select {lanes} {wanted}, {self.vector} {other}, {self.vector} {one}")

    def shuffled(self, one: str, other: str, places: list[int]) -> str:
        mask = ", ".join(f"i32 {place}" for place in places)
        return self.new(
            f"shufflevector {self.vector} {one}, {self.vector} {other}, <{self.lanes} x i32> <{mask}>"
        )

    def function(self, symbol: str) -> IRFunction:
        """All of it as a function of a pointer, which stores the registers where they were loaded."""
        stores = [
            f"  store {self.vector} {row}, ptr %at{i}, align {self.bits // 8}"
            for i, row in enumerate(self.rows)
        ]
        head = f"define void @{symbol}(ptr %p) noinline nounwind {{"
        return IRFunction(
            symbol,
            "void",
            (f"int{self.bits}*",),
            "\n".join([head, *self.lines, *stores, "  ret void", "}", ""]),
        )


def network(bits: int, count: int, lanes: int) -> IRFunction:
    """A function that sorts `count` integers of so many bits in memory, a power of two of vectors of `lanes`."""
    registers = _Registers(bits, count, lanes)
    size = 2
    while size <= count:
        distance = size // 2
        while distance:
            registers.compare(distance, lambda place, size=size: bool(place & size))  # type: ignore[misc]
            distance //= 2
        size *= 2
    return registers.function(f"sorted_{count}_of_{bits}")


def merge(bits: int, count: int, lanes: int) -> IRFunction:
    """The same for what rises and then falls, or the other way round."""
    registers, distance = _Registers(bits, count, lanes), count // 2
    while distance:
        registers.compare(distance, lambda _: False)
        distance //= 2
    return registers.function(f"merged_{count}_of_{bits}")


def against(bits: int, lanes: int, *, turned: bool) -> IRFunction:
    """``(p, n)``: n elements with the n behind them, the lesser first; the first with the last if `turned`."""
    symbol, kind, vector = f"{'turned' if turned else 'compared'}_{bits}", f"i{bits}", f"<{lanes} x i{bits}>"
    both = f"{vector} %a, {vector} %c"
    places = ", ".join(f"i32 {lanes - 1 - lane if turned else lane}" for lane in range(lanes))
    place = "%mirrored" if turned else "%beside"
    text = f"""define void @{symbol}(ptr %p, i64 %n) nounwind {{
start:
  %twice = shl i64 %n, 1
  %last = sub i64 %twice, {lanes}
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %mirrored = sub i64 %last, %i
  %beside = add i64 %n, %i
  %at = getelementptr {kind}, ptr %p, i64 %i
  %to = getelementptr {kind}, ptr %p, i64 {place}
  %a = load {vector}, ptr %at, align {bits // 8}
  %b = load {vector}, ptr %to, align {bits // 8}
  %c = shufflevector {vector} %b, {vector} poison, <{lanes} x i32> <{places}>
  %low = call {vector} @llvm.smin.v{lanes}i{bits}({both})
  %high = call {vector} @llvm.smax.v{lanes}i{bits}({both})
  %back = shufflevector {vector} %high, {vector} poison, <{lanes} x i32> <{places}>
  store {vector} %low, ptr %at, align {bits // 8}
  store {vector} %back, ptr %to, align {bits // 8}
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    return IRFunction(symbol, "void", (f"int{bits}*", "int64"), text)
