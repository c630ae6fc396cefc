"""The IR builder shared by all parts of a compiled entry: loads, guards, frame slots, extents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.codegen.python.simd_library import Library
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.ir.call_abi import ArrayArgument, Reach, Rebuilt, ResultArray
from jitkernels.compiler.ir.symbolic_dims import Guard, Number, bare
from jitkernels.compiler.memory.arena import Arena
from jitkernels.runtime.abi_layout import DTYPE_MASK, DTYPE_WORD, Offset

OF_C = {"int64": ("longlong",), "uint64": ("ulonglong",)}
"""Dtypes with a second type number, as C has two types of the same bits."""


@dataclass
class EntryBuilder:
    """The entry function under construction, and its inputs.

    `raised`: the floating-point status flags that each call raises, or None; the bool says whether they replace the
    flags of the computation. `polls`: the segment polls signals, so Python code may run during it. `work`: the cost of
    a call; the entry releases the GIL where it exceeds the limit in the context. `word`: the segment's first context
    slot.
    """

    arguments: Sequence[ArrayArgument]
    results: Sequence[ResultArray]
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
    raised: tuple[int, bool] | None = None
    library: Library = field(default_factory=Library)

    def __post_init__(self) -> None:
        self.function = FunctionBuilder(self.library, {})
        self.block = self.function.block
        self.known: set[str] = set()
        self.dtypes: set[str] = set()
        self.types: set[str] = set()
        self.expected: list[str] = []
        self.expected_dtypes: list[tuple[str, str]] = []
        self.cold: list[str] = []

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
        """Add a guard that no instruction before the next `require` or `settle` depends on.

        All pending guards share one branch: compile time grows with the number of branches.
        """
        self.expected.append(condition)

    def require(self, condition: str, otherwise: str = "no") -> None:
        """Branch to `otherwise` unless `condition` and all pending guards hold; label ``undo`` releases the results."""
        if otherwise != "no":
            self.settle()
        self.expected.append(condition)
        self.settle(otherwise)

    def settle(self, otherwise: str = "no") -> None:
        """Emit one branch to `otherwise` for all pending guards."""
        if self.expected_dtypes:
            self._settle_dtypes(otherwise)
        if not self.expected:
            return
        whole = self._all(self.expected)
        self.expected = []
        # The success block comes next in the text: at O0 LLVM does not move it, and would jump otherwise.
        fails, label = self.new(f"xor i1 {whole}, true"), self.function.label()
        self.line(f"  br i1 {fails}, label %{otherwise}, label %{label}, !prof !8")
        self.line(f"{label}:")

    def keep(self, word: int, kind: str, value: str) -> None:
        slot = self.new(f"getelementptr i64, ptr %frame, i64 {word}")
        self.block.lines.append(f"  store {kind} {value}, ptr {slot}")

    def extent(self, extent: Number) -> str:
        """The value of an extent whose symbols are bound. Pending guards come first: arithmetic relies on them."""
        if not isinstance(extent, int) and bare(extent) is None:
            self.settle()
        return self.function.extent(extent)

    def here(self, extent: Number) -> str:
        """Like `extent`, without caching the value: a block inside a branch does not dominate what follows."""
        known = dict(self.block.known)
        value = self.extent(extent)
        self.block.known = known
        return value

    def dtype_object(self, name: str) -> str:
        """The symbol by which the loader knows a dtype object."""
        self.dtypes.add(name)
        return f"@jk_dtype_{name}"

    def array(self, array: str) -> None:
        """Guard that an object is exactly a ``numpy.ndarray``."""
        self.expect(self.new(f"icmp eq ptr {self.load('ptr', array, Offset.TYPE)}, @jk_ndarray"))

    def kind(self, array: str, dtype: str, dimensions: int, flags: int) -> None:
        """Guard the dtype, number of dimensions and flags of an object that is known to be an array."""
        self._dtype(array, dtype)
        self.dimensions(array, dimensions, flags)

    def dimensions(self, array: str, dimensions: int, flags: int) -> None:
        """Guard the number of dimensions and flags of an object that is known to be an array."""
        self.expect(self.new(f"icmp eq i32 {self.load('i32', array, Offset.ARRAY_DIMENSIONS)}, {dimensions}"))
        self.flags(array, Offset.ARRAY_FLAGS, flags)

    def flags(self, value: str, offset: int, flags: int) -> None:
        """Guard flags of an object."""
        masked = self.new(f"and i32 {self.load('i32', value, offset)}, {flags}")
        self.expect(self.new(f"icmp eq i32 {masked}, {flags}"))

    def _dtype(self, array: str, dtype: str) -> None:
        """Guard the dtype by identity of the dtype object, else by type number and byte order.

        Unpickled arrays, and arrays that NumPy computes from them, have other dtype objects than NumPy's own.
        """
        self.expected_dtypes.append((self.load("ptr", array, Offset.ARRAY_DTYPE), dtype))

    def _settle_dtypes(self, otherwise: str) -> None:
        """Branch over the pending dtype guards: identity in line, the comparison of dtype objects out of line."""
        pending, self.expected_dtypes = self.expected_dtypes, []
        identical = [self.new(f"icmp eq ptr {own}, {self.dtype_object(dtype)}") for own, dtype in pending]
        compare, resume = self.function.label(), self.function.label()
        self.line(f"  br i1 {self._all(identical)}, label %{resume}, label %{compare}, !prof !9\n{resume}:")
        inline, self.block.lines = self.block.lines, self.cold
        self.line(f"{compare}:")
        equal = self._all([self._equal_dtype(own, dtype) for own, dtype in pending])
        self.line(f"  br i1 {equal}, label %{resume}, label %{otherwise}")
        self.block.lines = inline

    def _equal_dtype(self, own: str, dtype: str) -> str:
        """Compare a dtype object with NumPy's own one of `dtype`, or the other one of the same bits."""
        word = self.new(f"and i64 {self.load('i64', own, DTYPE_WORD)}, {DTYPE_MASK}")
        whole, *rest = [
            self.new(f"icmp eq i64 {word}, {self._dtype_word(name)}") for name in (dtype, *OF_C.get(dtype, ()))
        ]
        for condition in rest:
            whole = self.new(f"or i1 {whole}, {condition}")
        return whole

    def _all(self, conditions: Sequence[str]) -> str:
        """The conjunction of at least one condition."""
        whole, *rest = conditions
        for condition in rest:
            whole = self.new(f"and i1 {whole}, {condition}")
        return whole

    def _dtype_word(self, name: str) -> str:
        """The type number and byte order in NumPy's own dtype object."""
        return self.new(f"and i64 {self.load('i64', self.dtype_object(name), DTYPE_WORD)}, {DTYPE_MASK}")

    def disjoint(self, one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
        """Whether two (address, bytes) ranges are disjoint, and the distance from the first to the second.

        They overlap where -bytes of the second < distance < bytes of the first.
        """
        (data, size), (low, span) = one, other
        ahead = self.new(f"sub i64 {low}, {data}")
        if span == "0":
            return self.new(f"icmp uge i64 {ahead}, {size}"), ahead
        last = self.new(f"sub i64 {span}, 1")
        reached = self.new(f"add i64 {ahead}, {last}")
        return self.new(f"icmp uge i64 {reached}, {self.new(f'add i64 {last}, {size}')}"), ahead

    def span(self, data: str, argument: ArrayArgument) -> tuple[str, str]:
        """The lowest address of a strided array, and the number of bytes that it spans."""
        low, high = data, data
        for extent, stride in zip(argument.shape, argument.strides, strict=True):
            reach = self.here((extent - 1) * stride * argument.size)
            negative = self.new(f"icmp slt i64 {reach}, 0")
            lower, upper = self.new(f"add i64 {low}, {reach}"), self.new(f"add i64 {high}, {reach}")
            low = self.new(f"select i1 {negative}, i64 {lower}, i64 {low}")
            high = self.new(f"select i1 {negative}, i64 {high}, i64 {upper}")
        span = self.new(f"sub i64 {high}, {low}")
        return low, self.new(f"add i64 {span}, {argument.size}")
