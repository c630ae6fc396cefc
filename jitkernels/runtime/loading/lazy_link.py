"""Lazy linking: functions that are built when a call first needs them, called through pointers in memory.

Code for all kinds of sizes calls one of several functions, of which most processes need one or two; building all of
them would take most of a first call. So code checks before it writes anything: if a function is not built yet it
returns `MISSING`, Python builds the requested functions, and calls again.
"""

import ctypes
import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from jitkernels.codegen.source_protocol import External, IRFunction, Source, symbol_of
from jitkernels.core import dtypes
from jitkernels.runtime.loading import loader

if TYPE_CHECKING:
    from jitkernels.codegen.range_kernel import RangeKernel

MISSING = 10
"""The status of code that has written nothing, as it needs a function that is not built yet."""
WORDS_PREFIX = "jk_later_"
"""What the symbols of words begin with."""
ENTRY_WORD, RANGE_WORD, WANTED_WORD, WORD_COUNT = 0, 1, 2, 3
"""The words of a function: its address and that of its range function, 0 before, and whether it is requested."""


class LazyKernel:
    """A range kernel that is built on demand.

    `entry` and `part` call it and its range function, which must be built; `missing` is a function without arguments
    that returns 0 if they are, and else requests them and returns `MISSING`. `link`: the external symbol of its
    words.
    """

    def __init__(self, kernel: "RangeKernel") -> None:
        self.source, self.symbol = kernel, symbol_of(kernel)
        self.variable = f"{WORDS_PREFIX}{self.symbol}"
        self._words = words_of(self.variable)
        self._declared = f"@{self.variable} = external global [{WORD_COUNT} x i64]\n"
        self.entry = self._call_text("entry", kernel.arguments, ENTRY_WORD)
        self.part = self._call_text("part", (*kernel.arguments, "int64", "int64"), RANGE_WORD)
        self.missing = IRFunction(
            f"{self.symbol}_missing", "int64", (), self._missing_text(), python=lambda: _note_needed(self)
        )
        self.link = External(self.variable, "int64", (), self._address, lambda: kernel)

    def _call_text(self, name: str, arguments: tuple[str, ...], word: int) -> IRFunction:
        kinds = [dtypes.c_type(argument).llvm.split()[0] for argument in arguments]
        passed = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
        symbol = f"{self.symbol}_{name}"
        text = f"""{self._declared}define i64 @{symbol}({passed}) alwaysinline nounwind {{
  %at = getelementptr i64, ptr @{self.variable}, i64 {word}
  %found = load ptr, ptr %at
  %status = call i64 %found({passed})
  ret i64 %status
}}
"""
        return IRFunction(symbol, "int64", arguments, text)

    def _missing_text(self) -> str:
        return f"""{self._declared}define i64 @{self.symbol}_missing() alwaysinline nounwind {{
  %found = load atomic i64, ptr @{self.variable} acquire, align 8
  %there = icmp ne i64 %found, 0
  br i1 %there, label %fine, label %ask
ask:
  %wanted = getelementptr i64, ptr @{self.variable}, i64 {WANTED_WORD}
  store atomic i64 1, ptr %wanted monotonic, align 8
  ret i64 {MISSING}
fine:
  ret i64 0
}}
"""

    def _address(self) -> int:
        if loader.watchers:  # an archive builder needs every function that may be called
            self.bring()
        return ctypes.addressof(self._words)

    @property
    def is_wanted(self) -> bool:
        return bool(self._words[WANTED_WORD])

    def bring(self) -> None:
        """Build it, if it is not built. Raises BuildError if that fails."""
        bring(self.variable, self.source)

    @property
    def is_there(self) -> bool:
        """Whether it is built, and calls find it."""
        return bool(self._words[ENTRY_WORD])

    def bound_text(self) -> str:
        """LLVM IR of its words for static linking with its callers."""
        declared = [f"declare void @{self.symbol}{end}()\n" for end in ("", "_range")]
        values = [f"i64 ptrtoint (ptr @{self.symbol}{end} to i64)" for end in ("", "_range")]
        words = ", ".join([*values, *["i64 0"] * (WORD_COUNT - len(values))])
        return f"{''.join(declared)}@{self.variable} = global [{WORD_COUNT} x i64] [{words}]\n"


_known: dict[str, LazyKernel] = {}
"""All lazy functions, by the symbols of their words."""
_words: dict[str, Any] = {}
"""The words of all of them, and of those that stored code calls (`jitkernels.runtime.stored_source`): callers that are
loaded once must find one set of words.
"""


def is_of_words(symbol: str) -> bool:
    """Whether a symbol is that of words."""
    return symbol.startswith(WORDS_PREFIX)


def words_of(variable: str) -> Any:
    """The words of this symbol, as an array of ints."""
    return _words.setdefault(variable, (ctypes.c_int64 * WORD_COUNT)())


def bring(variable: str, source: Source) -> None:
    """Let the words of this symbol lead to a source, which is built if it is not. Raises BuildError if that fails."""
    words, name = words_of(variable), f"{symbol_of(source)}_range"
    words[WANTED_WORD] = 0
    address = loader.address_of(source)
    words[RANGE_WORD] = loader.functions_of(source, (name,))[name]
    words[ENTRY_WORD] = address  # last: `missing` tests this word


def later(kernel: "RangeKernel") -> LazyKernel:
    """Make a range kernel lazy; one object for all kernels of the same text."""
    candidate = LazyKernel(kernel)
    return _known.setdefault(candidate.variable, candidate)


def of_words(variable: str) -> LazyKernel | None:
    """The lazy function whose words have this symbol."""
    return _known.get(variable)


def bring_known(variable: str) -> None:
    """Build the lazy function whose words have this symbol, if it is not built. Raises BuildError if that fails."""
    function = _known.get(variable)
    if function is not None and not function.is_there:
        function.bring()


loader.part_builders.append(bring_known)
_needed: ContextVar[list[LazyKernel] | None] = ContextVar("needed", default=None)


def _note_needed(function: LazyKernel) -> int:
    needed = _needed.get()
    if needed is not None:
        needed.append(function)
    return 0


def needed_by(source: Source, sizes: Mapping[str, int]) -> list[LazyKernel]:
    """The parts of a kernel that a call of these sizes needs: what its check, run by Python, asks for."""
    if not getattr(source, "parts", ()):
        return []
    check, found = source.check, list[LazyKernel]()  # type: ignore[attr-defined]  # a range kernel
    token = _needed.set(found)
    try:
        check(**{name: sizes[name] for name in inspect.signature(check).parameters})
    finally:
        _needed.reset(token)
    return found


def requested() -> list[LazyKernel]:
    """The functions that calls have requested."""
    return [function for function in [*_known.values()] if function.is_wanted]


def build_requested() -> bool:
    """Build all requested functions; return whether there were any. Raises BuildError if that fails."""
    found = requested()
    for function in found:
        function.bring()
    return bool(found)
