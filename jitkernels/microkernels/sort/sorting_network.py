"""Sorting networks over integers in vector registers, and merges of their results, as LLVM IR.

A network takes element i as row i % rows of column i // rows, where a row is a register and a column a lane: most
compare-exchanges are then a minimum and a maximum of two registers. Columns are sorted by Batcher's odd-even merges,
pairs of columns merged by bitonic ones (Batcher, 1968), and the rows transposed into memory.
What is longer than the registers hold is merged through memory, by steps over adjacent elements.
"""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.microkernels.sort.key_vectors import KeyVectors


class _Registers(KeyVectors):
    """Vectors of adjacent elements, and the text of compare-exchanges of them."""

    def __init__(self, bits: int, count: int, lanes: int) -> None:
        super().__init__(bits, lanes)
        self.count = count
        self.rows: list[str] = []

    def load(self, pointer: str = "%p") -> None:
        self.rows = [self.loaded(pointer, i * self.lanes) for i in range(self.count // self.lanes)]

    def extremes(self, left: str, right: str, falls: list[bool] | None = None) -> tuple[str, str]:
        """Append the minimum and the maximum of two registers, lane by lane, or the two swapped in lanes that fall.

        Those of 64 bits are two instructions each on Intel's processors, and one on others: one comparison serves both.
        """
        if self.bits == 64:
            larger = self.compared("sgt", left, right)
            if falls is not None:
                larger = self.new(f"xor {self.mask} {larger}, {self.flags(falls)}")
            return self.selected(larger, right, left), self.selected(larger, left, right)
        low, high = (
            self.new(f"call {self.vector} @llvm.{intrinsic}.v{self.lanes}i{self.bits}({both})")
            for intrinsic in ("smin", "smax")
            for both in [f"{self.vector} {left}, {self.vector} {right}"]
        )
        if falls is None:
            return low, high
        picks = [[lane + self.lanes * (fall != other) for lane, fall in enumerate(falls)] for other in (False, True)]
        return self.shuffled(low, high, picks[0]), self.shuffled(low, high, picks[1])

    def exchange(self, first: int, second: int) -> None:
        """Compare-exchange of two registers."""
        self.rows[first], self.rows[second] = self.extremes(self.rows[first], self.rows[second])

    def exchange_lanes(self, distance: int) -> None:
        """Compare-exchange of lanes at a distance in each register, ascending."""
        falls = [bool(lane & distance) for lane in range(self.lanes)]
        swaps = [lane ^ distance for lane in range(self.lanes)]
        for i, row in enumerate(self.rows):
            self.rows[i], _ = self.extremes(row, self.shuffled(row, "poison", swaps), falls)

    def function(self, symbol: str) -> IRFunction:
        """Write the function of a pointer, which stores the registers where it loaded them."""
        for i, row in enumerate(self.rows):
            self.store(row, "%p", i * self.lanes)
        return IRFunction(symbol, "void", (f"int{self.bits}*",), self.text(f"void @{symbol}(ptr %p) noinline"))


class _Columns(_Registers):
    """Registers that hold the elements by columns. Their number is not below that of the lanes."""

    def sort(self) -> None:
        for first, second in exchanges(len(self.rows)):
            self.exchange(first, second)
        width = 1
        while width < self.lanes:
            self._merge(width)
            width *= 2
        self._transpose()

    def _merge(self, width: int) -> None:
        """Merge neighbours of `width` sorted columns each: the second one is compared with in reverse."""
        last = len(self.rows) - 1
        mirrored = [lane ^ (2 * width - 1) for lane in range(self.lanes)]
        falls = [bool(lane & width) for lane in range(self.lanes)]
        for i in range(len(self.rows) // 2):
            partner = self.shuffled(self.rows[last - i], "poison", mirrored)
            self.rows[i], partner = self.extremes(self.rows[i], partner, falls)
            self.rows[last - i] = self.shuffled(partner, "poison", mirrored)
        distance = width // 2
        while distance:
            self.exchange_lanes(distance)
            distance //= 2
        distance = len(self.rows) // 2
        while distance:
            for i in range(len(self.rows)):
                if not i & distance:
                    self.exchange(i, i + distance)
            distance //= 2

    def _transpose(self) -> None:
        """Exchange the bits of lanes with the lowest bits of rows; a column becomes adjacent registers."""
        bit = 1
        while bit < self.lanes:
            for i in range(len(self.rows)):
                if not i & bit:
                    a, b = self.rows[i], self.rows[i + bit]
                    low = [lane if not lane & bit else lane - bit + self.lanes for lane in range(self.lanes)]
                    high = [lane + bit if not lane & bit else lane + self.lanes for lane in range(self.lanes)]
                    self.rows[i], self.rows[i + bit] = self.shuffled(a, b, low), self.shuffled(a, b, high)
            bit *= 2
        self.rows = [
            self.rows[group * self.lanes + column]
            for column in range(self.lanes)
            for group in range(len(self.rows) // self.lanes)
        ]


def exchanges(count: int) -> list[tuple[int, int]]:
    """The pairs of Batcher's odd-even merge sort of a power of two, in order."""
    pairs = []
    size = 1
    while size < count:
        step = size
        while step:
            for start in range(step % size, count - step, 2 * step):
                pairs += [
                    (first, first + step)
                    for first in range(start, start + min(step, count - start - step))
                    if first // (2 * size) == (first + step) // (2 * size)
                ]
            step //= 2
        size *= 2
    return pairs


def _columns(bits: int, count: int, lanes: int) -> _Columns:
    while lanes * lanes > count:
        lanes //= 2
    return _Columns(bits, count, lanes)


def network(bits: int, count: int, lanes: int) -> IRFunction:
    """Return a function that sorts `count` integers of `bits` bits in memory, a power of two, in `lanes` or fewer."""
    registers = _columns(bits, count, lanes)
    registers.load()
    registers.sort()
    return registers.function(f"sorted_{count}_of_{bits}")


def padded_network(dtype: str, bits: int, count: int, lanes: int) -> IRFunction:
    """``(keys, n, results)``: sort n keys, up to `count`; write as many elements, of which the first n are theirs.

    So many keys are read as well, and count as the largest.
    """
    registers, largest = _columns(bits, count, lanes), (1 << bits - 1) - 1
    registers.load("%keys")
    for i, row in enumerate(registers.rows):
        numbers = registers.vector_of(range(i * registers.lanes, (i + 1) * registers.lanes))
        present = registers.compared("slt", numbers, registers.splat("%n"))
        registers.rows[i] = registers.selected(present, row, registers.constant(largest))
    registers.sort()
    for i, row in enumerate(registers.rows):
        registers.store(registers.element_of(dtype, row), "%results", i * registers.lanes)
    symbol = f"padded_{count}_of_{dtype}"
    head = f"void @{symbol}(ptr %keys, i{bits} %n, ptr %results) noinline"
    return IRFunction(symbol, "void", ("void*", f"int{bits}", "void*"), registers.text(head))


def merge(bits: int, count: int, lanes: int) -> IRFunction:
    """Return the same for a bitonic sequence of adjacent elements: rising then falling, or the other way round."""
    registers, distance = _Registers(bits, count, lanes), count // 2
    registers.load()
    while distance >= lanes:
        for i in range(len(registers.rows)):
            if not i & distance // lanes:
                registers.exchange(i, i + distance // lanes)
        distance //= 2
    while distance:
        registers.exchange_lanes(distance)
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
