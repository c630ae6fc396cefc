"""Bitonic sorting networks over integers in vector registers, and merges of their results, as LLVM IR.

Elements are compared with those whose index differs in one bit: between registers that is a minimum and a maximum,
within one register a shuffle and a blend more (Batcher, 1968). The same steps merge what is longer than the registers
hold; they go through memory as long as the compared elements lie further apart.
"""

from collections.abc import Callable

from jitkernels.codegen.source_protocol import IRFunction


class _Registers:
    """Vectors of adjacent elements, and the text of the operations on them."""

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

    def extremes(self, left: str, right: str) -> tuple[str, str]:
        """Append the minimum and the maximum of two registers, lane by lane.

        Those of 64 bits are two instructions each on Intel's processors, and one on others: one comparison serves both.
        """
        if self.bits == 64:
            larger = self.new(f"icmp sgt {self.vector} {left}, {right}")
            low, high = (
                self.new(f"select <{self.lanes} x i1> {larger}, {self.vector} {a}, {self.vector} {b}")
                for a, b in ((right, left), (left, right))
            )
            return low, high
        low, high = (
            self.new(f"call {self.vector} @llvm.{intrinsic}.v{self.lanes}i{self.bits}({both})")
            for intrinsic in ("smin", "smax")
            for both in [f"{self.vector} {left}, {self.vector} {right}"]
        )
        return low, high

    def compare(self, distance: int, falls: Callable[[int], bool]) -> None:
        """Compare-exchange of elements at a distance, ascending except at indices where `falls`."""
        lanes = self.lanes
        for i, row in enumerate(list(self.rows)):
            partner = i ^ distance // lanes
            if distance >= lanes and partner > i:
                low, high = self.extremes(self.rows[i], self.rows[partner])
                self.rows[i], self.rows[partner] = (high, low) if falls(i * lanes) else (low, high)
            elif distance < lanes:
                partner_lanes = self.shuffled(row, "poison", [lane ^ distance for lane in range(lanes)])
                is_low = [bool(lane & distance) == falls(i * lanes + lane) for lane in range(lanes)]
                if self.bits == 64:
                    self.rows[i] = self.one_of_both(row, partner_lanes, is_low)
                    continue
                low, high = self.extremes(row, partner_lanes)
                picks = [lane + lanes * (not least) for lane, least in enumerate(is_low)]
                self.rows[i] = self.shuffled(low, high, picks)

    def one_of_both(self, a: str, b: str, is_low: list[bool]) -> str:
        """Append the minimum in some lanes and the maximum in the others, from one comparison."""
        bits = ", ".join(f"i1 {'false' if low else 'true'}" for low in is_low)
        lanes = f"<{self.lanes} x i1>"
        larger = self.new(f"icmp sgt {self.vector} {a}, {b}")
        selected = self.new(f"xor {lanes} {larger}, <{bits}>")
        return self.new(f"select {lanes} {selected}, {self.vector} {b}, {self.vector} {a}")

    def shuffled(self, a: str, b: str, picks: list[int]) -> str:
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        return self.new(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{mask}>")

    def function(self, symbol: str) -> IRFunction:
        """Write the function of a pointer, which stores the registers where it loaded them."""
        stores = [f"  store {self.vector} {row}, ptr %at{i}, align {self.bits // 8}" for i, row in enumerate(self.rows)]
        head = f"define void @{symbol}(ptr %p) noinline nounwind {{"
        return IRFunction(
            symbol, "void", (f"int{self.bits}*",), "\n".join([head, *self.lines, *stores, "  ret void", "}", ""])
        )


def network(bits: int, count: int, lanes: int) -> IRFunction:
    """Return a function that sorts `count` integers of `bits` bits in memory, a power of two of vectors of `lanes`."""
    registers = _Registers(bits, count, lanes)
    size = 2
    while size <= count:
        distance = size // 2
        while distance:
            registers.compare(distance, lambda index, size=size: bool(index & size))  # type: ignore[misc]
            distance //= 2
        size *= 2
    return registers.function(f"sorted_{count}_of_{bits}")


def merge(bits: int, count: int, lanes: int) -> IRFunction:
    """Return the same for a bitonic sequence: rising then falling, or the other way round."""
    registers, distance = _Registers(bits, count, lanes), count // 2
    while distance:
        registers.compare(distance, lambda _: False)
        distance //= 2
    return registers.function(f"merged_{count}_of_{bits}")


def compare_exchange(bits: int, lanes: int, *, reverses: bool) -> IRFunction:
    """``(p, n)``: compare-exchange of n elements with the n behind them; `reverses` reverses the second half."""
    symbol, kind, vector = (f"{'reversed' if reverses else 'compared'}_{bits}", f"i{bits}", f"<{lanes} x i{bits}>")
    both = f"{vector} %a, {vector} %c"
    picks = ", ".join(f"i32 {lanes - 1 - lane if reverses else lane}" for lane in range(lanes))
    partner = "%mirrored" if reverses else "%beside"
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
  %to = getelementptr {kind}, ptr %p, i64 {partner}
  %a = load {vector}, ptr %at, align {bits // 8}
  %b = load {vector}, ptr %to, align {bits // 8}
  %c = shufflevector {vector} %b, {vector} poison, <{lanes} x i32> <{picks}>
  %low = call {vector} @llvm.smin.v{lanes}i{bits}({both})
  %high = call {vector} @llvm.smax.v{lanes}i{bits}({both})
  %back = shufflevector {vector} %high, {vector} poison, <{lanes} x i32> <{picks}>
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
