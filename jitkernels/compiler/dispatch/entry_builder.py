"""What all parts of the function between Python and a segment write: loads, conditions, words of the frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.graph.arena import Arena
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.interface import Argument, Reach, Rebuilt, Result
from jitkernels.graph.extents import Guard, Number, bare
from jitkernels.native.language.lanes import Library
from jitkernels.native.layout import Offset


@dataclass
class CallText:
    """The function as far as it is written, and what it is made of.

    `polls`: Python may run while the segment does. `work`: in units of which more than a word of the context are long.
    `word`: the first one of the segment's.
    """

    arguments: Sequence[Argument]
    results: Sequence[Result]
    arena: Arena
    guards: Sequence[Guard]
    symbols: Mapping[str, int]
    words: int
    work: Number
    word: int
    is_tuple: bool
    reach: Reach
    rebuilt: Rebuilt | None = None
    polls: bool = False
    library: Library = field(default_factory=Library)

    def __post_init__(self) -> None:
        self.function = Function(self.library, {})
        self.block = self.function.block
        self.known: set[str] = set()
        self.dtypes: set[str] = set()
        self.types: set[str] = set()
        self.expected: list[str] = []

    def new(self, expression: str) -> str:
        return self.function.new(self.block, expression)

    def load(self, kind: str, base: str, offset: int) -> str:
        at = self.new(f"getelementptr i8, ptr {base}, i64 {int(offset)}") if offset else base
        return self.new(f"load {kind}, ptr {at}")

    def line(self, text: str) -> None:
        self.block.lines.append(text)

    def variable(self, kind: str) -> str:
        return self.function.variable(kind)

    def label(self) -> str:
        return self.function.label()

    def expect(self, condition: str) -> None:
        """Go on if a condition holds, on which nothing depends that is done up to the next one that is required.

        LLVM takes its time for each branch, and there are as many as there are conditions otherwise.
        """
        self.expected.append(condition)

    def require(self, condition: str, otherwise: str = "no") -> None:
        """Go on if a condition holds, and all expected before; ``undo`` gives back what was made or taken."""
        if otherwise != "no":
            self.settle()
        self.expected.append(condition)
        self.settle(otherwise)

    def settle(self, otherwise: str = "no") -> None:
        """Go on if all that is expected holds."""
        if not self.expected:
            return
        whole, *rest = self.expected
        self.expected = []
        for condition in rest:
            whole = self.new(f"and i1 {whole}, {condition}")
        # What goes on follows where it goes on: code that LLVM makes in a hurry jumps otherwise.
        fails, label = self.new(f"xor i1 {whole}, true"), self.function.label()
        self.line(f"  br i1 {fails}, label %{otherwise}, label %{label}, !prof !8")
        self.line(f"{label}:")

    def keep(self, word: int, kind: str, value: str) -> None:
        at = self.new(f"getelementptr i64, ptr %frame, i64 {word}")
        self.block.lines.append(f"  store {kind} {value}, ptr {at}")

    def extent(self, extent: Number) -> str:
        """An extent of symbols that are known by now, and are what they have to be before any are computed with."""
        if not isinstance(extent, int) and bare(extent) is None:
            self.settle()
        return self.function.extent(extent)

    def here(self, extent: Number) -> str:
        """An extent computed here alone: what is known in front of a branch holds behind it, not the other way."""
        known = dict(self.block.known)
        found = self.extent(extent)
        self.block.known = known
        return found

    def dtype_object(self, name: str) -> str:
        """The dtype object, which the loader knows by this name."""
        self.dtypes.add(name)
        return f"@jk_dtype_{name}"

    def array(self, array: str) -> None:
        """Expect an array."""
        self.expect(self.new(f"icmp eq ptr {self.load('ptr', array, Offset.TYPE)}, @jk_ndarray"))

    def kind(self, array: str, dtype: str, dimensions: int, flags: int) -> None:
        """Expect of an array, which it has to be by now, a dtype, so many dimensions and some flags."""
        self.expect(
            self.new(f"icmp eq ptr {self.load('ptr', array, Offset.ARRAY_DTYPE)}, {self.dtype_object(dtype)}")
        )
        self.expect(self.new(f"icmp eq i32 {self.load('i32', array, Offset.ARRAY_DIMENSIONS)}, {dimensions}"))
        masked = self.new(f"and i32 {self.load('i32', array, Offset.ARRAY_FLAGS)}, {flags}")
        self.expect(self.new(f"icmp eq i32 {masked}, {flags}"))

    def apart(self, one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
        """Whether memory does not overlap other memory, and how far that lies behind; of both, address and bytes.

        It does where it lies less than its own bytes before the other, or less than the other's bytes behind.
        """
        (data, size), (low, span) = one, other
        ahead = self.new(f"sub i64 {low}, {data}")
        if span == "0":
            return self.new(f"icmp uge i64 {ahead}, {size}"), ahead
        last = self.new(f"sub i64 {span}, 1")
        reached = self.new(f"add i64 {ahead}, {last}")
        return self.new(f"icmp uge i64 {reached}, {self.new(f'add i64 {last}, {size}')}"), ahead

    def span(self, data: str, argument: Argument) -> tuple[str, str]:
        """The lowest address of an array with gaps, and how many bytes it spans."""
        low, high = data, data
        for extent, stride in zip(argument.shape, argument.strides, strict=True):
            reach = self.here((extent - 1) * stride * argument.size)
            negative = self.new(f"icmp slt i64 {reach}, 0")
            lower, upper = self.new(f"add i64 {low}, {reach}"), self.new(f"add i64 {high}, {reach}")
            low = self.new(f"select i1 {negative}, i64 {lower}, i64 {low}")
            high = self.new(f"select i1 {negative}, i64 {high}, i64 {upper}")
        span = self.new(f"sub i64 {high}, {low}")
        return low, self.new(f"add i64 {span}, {argument.size}")
