"""Vectors of integer sort keys in LLVM IR: loads, comparisons, selections, and conversions of the elements."""

from collections.abc import Iterable

from jitkernels.microkernels.maths.formats import FORMATS


class KeyVectors:
    """The text of a function over vectors of `lanes` integers of `bits` bits, as it grows."""

    def __init__(self, bits: int, lanes: int) -> None:
        self.bits, self.lanes = bits, lanes
        self.vector = f"<{lanes} x i{bits}>"
        self.mask = f"<{lanes} x i1>"
        self.lines: list[str] = []

    def new(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def at(self, pointer: str, index: int | str) -> str:
        return self.new(f"getelementptr i{self.bits}, ptr {pointer}, i64 {index}")

    def loaded(self, pointer: str, index: int | str) -> str:
        return self.new(f"load {self.vector}, ptr {self.at(pointer, index)}, align {self.bits // 8}")

    def store(self, value: str, pointer: str, index: int | str) -> None:
        address = self.at(pointer, index)
        self.lines.append(f"  store {self.vector} {value}, ptr {address}, align {self.bits // 8}")

    def vector_of(self, values: Iterable[int]) -> str:
        return f"<{', '.join(f'i{self.bits} {value}' for value in values)}>"

    def constant(self, value: int) -> str:
        return self.vector_of([value] * self.lanes)

    def flags(self, values: list[bool]) -> str:
        return f"<{', '.join(f'i1 {str(value).lower()}' for value in values)}>"

    def splat(self, value: str) -> str:
        one = self.new(f"insertelement {self.vector} poison, i{self.bits} {value}, i64 0")
        return self.shuffled(one, "poison", [0] * self.lanes)

    def compared(self, relation: str, a: str, b: str) -> str:
        return self.new(f"icmp {relation} {self.vector} {a}, {b}")

    def selected(self, mask: str, a: str, b: str) -> str:
        return self.new(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")

    def shuffled(self, a: str, b: str, picks: list[int]) -> str:
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        return self.new(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{mask}>")

    def _with_negatives_flipped(self, value: str) -> str:
        """A float's bits as an integer in the same order, and back."""
        signs = self.new(f"ashr {self.vector} {value}, {self.constant(self.bits - 1)}")
        flipped = self.new(f"and {self.vector} {signs}, {self.constant((1 << self.bits - 1) - 1)}")
        return self.new(f"xor {self.vector} {value}, {flipped}")

    def key_of(self, dtype: str, bits: str) -> str:
        """The keys of elements, as `sort_keys` defines them; those of integers are in their order."""
        if dtype in FORMATS:
            size = self.new(f"and {self.vector} {bits}, {self.constant((1 << self.bits - 1) - 1)}")
            infinity = self.constant((2 * FORMATS[dtype].bias + 1) << FORMATS[dtype].fraction_bits)
            return self.selected(self.compared("sgt", size, infinity), size, self._with_negatives_flipped(bits))
        return self._with_top_flipped(bits) if dtype.startswith("u") else bits

    def element_of(self, dtype: str, key: str) -> str:
        """The bits of the element of a key."""
        if dtype in FORMATS:
            return self._with_negatives_flipped(key)
        return self._with_top_flipped(key) if dtype.startswith("u") else key

    def _with_top_flipped(self, value: str) -> str:
        return self.new(f"xor {self.vector} {value}, {self.constant(-1 << self.bits - 1)}")

    def text(self, head: str) -> str:
        return "\n".join([f"define {head} nounwind {{", *self.lines, "  ret void", "}", ""])
