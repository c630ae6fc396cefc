"""Functions that are built when a call first needs them; what may call them finds them through words in memory.

Code for sizes of every kind calls one of several functions, of which most processes need one or two. To build all of
them would take most of a first call. So code asks before it writes anything: a function that is not there yet makes it
return `MISSING`: Python brings what was asked for then, and calls again.
"""

import ctypes
from typing import TYPE_CHECKING

from jitkernels import dtypes
from jitkernels.native import load
from jitkernels.native.source import External, IRFunction, symbol_of

if TYPE_CHECKING:
    from jitkernels.native.loop_nest import LoopNest

MISSING = 10
"""The status of code that has written nothing, as it would call what is not built yet."""
ENTRY, RANGE, WANTED, WORDS = 0, 1, 2, 3
"""The words of a function: its address and that of its range function, 0 before, and whether it was asked for."""


class Later:
    """A loop nest that is built when it is needed.

    `entry` and `part` call it and its range function, which have to be there; `missing` is a function without arguments
    that says whether they are, by 0 or `MISSING`, and asks for them. `link` is what code with these links to.
    """

    def __init__(self, nest: "LoopNest") -> None:
        self.source, self.symbol = nest, symbol_of(nest)
        self._words = (ctypes.c_int64 * WORDS)()
        self.variable = f"jk_later_{self.symbol}"
        self._declared = f"@{self.variable} = external global [{WORDS} x i64]\n"
        self.entry = self._calling("entry", nest.arguments, ENTRY)
        self.part = self._calling("part", (*nest.arguments, "int64", "int64"), RANGE)
        self.missing = IRFunction(f"{self.symbol}_missing", "int64", (), self._asking())
        self.link = External(self.variable, "int64", (), self._address, lambda: nest)

    def _calling(self, name: str, arguments: tuple[str, ...], word: int) -> IRFunction:
        kinds = [dtypes.c_type(one).llvm.split()[0] for one in arguments]
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

    def _asking(self) -> str:
        return f"""{self._declared}define i64 @{self.symbol}_missing() alwaysinline nounwind {{
  %found = load atomic i64, ptr @{self.variable} acquire, align 8
  %there = icmp ne i64 %found, 0
  br i1 %there, label %fine, label %ask
ask:
  %wanted = getelementptr i64, ptr @{self.variable}, i64 {WANTED}
  store atomic i64 1, ptr %wanted monotonic, align 8
  ret i64 {MISSING}
fine:
  ret i64 0
}}
"""

    def _address(self) -> int:
        if load.watchers:  # who packs what is brought into the process wants whatever may be called
            self.bring()
        return ctypes.addressof(self._words)

    @property
    def is_wanted(self) -> bool:
        return bool(self._words[WANTED])

    def bring(self) -> None:
        """Build it, if it is not there. Raises BuildError when that cannot be done."""
        self._words[WANTED] = 0
        address = load.address_of(self.source)
        name = f"{self.symbol}_range"
        self._words[RANGE] = load.functions_of(self.source, (name,))[name]
        self._words[ENTRY] = address  # what is asked for

    def bound_text(self) -> str:
        """LLVM IR of its words where it is linked to what calls it."""
        declared = [f"declare void @{self.symbol}{end}()\n" for end in ("", "_range")]
        values = [f"i64 ptrtoint (ptr @{self.symbol}{end} to i64)" for end in ("", "_range")]
        words = ", ".join([*values, *["i64 0"] * (WORDS - len(values))])
        return f"{''.join(declared)}@{self.variable} = global [{WORDS} x i64] [{words}]\n"


_known: dict[str, Later] = {}
"""All of them, by the names of their words."""


def later(nest: "LoopNest") -> Later:
    """A nest as one that is built when it is needed; one for all nests of the same text."""
    made = Later(nest)
    return _known.setdefault(made.variable, made)


def of_words(variable: str) -> Later | None:
    """What has words of a name."""
    return _known.get(variable)


def bring_wanted() -> bool:
    """Build all that was asked for; whether there was anything. Raises BuildError when it cannot be built."""
    wanted = [one for one in [*_known.values()] if one.is_wanted]
    for one in wanted:
        one.bring()
    return bool(wanted)
