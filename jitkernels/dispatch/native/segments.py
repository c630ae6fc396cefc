"""The objects that launcher and dispatcher are made of, and what they link to.

The launcher is what every call passes through. The parts that most calls do without are objects of their own, since
building them would take most of the first call of a process.
"""

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from jitkernels.native import copying, load, moving
from jitkernels.native.c_api import externals, link
from jitkernels.native.ir import WordSource
from jitkernels.native.layout import ALIGNED, CONTIGUOUS, MOST_CALL_WORDS, WRITEABLE, Part, constants
from jitkernels.native.source import External
from jitkernels.states import state_of

PARTS = {name.lower(): number for name, number in vars(Part).items() if name.isupper()}
LAUNCHER = ("jk_launch", "jk_everyday")
VARIABLES = {"jk_bypass": 1, "jk_missing": 1, "jk_parts": len(PARTS)}
"""The launcher's own words, so many of each: whether Python serves all everyday calls; the number of the part that a
call was without, and one; where the parts are."""
TOGETHER = {"general": ("general",), "converting": ("in_blocks", "mixed", "of_sequence", "copied")}
"""Which parts are one object."""
WRITTEN = ("native/parts.py", "native/dispatch", "native/copying.py", "native/moving.py")
"""The modules of what is translated."""
ARGUMENTS = (6, 12, MOST_CALL_WORDS)
"""A kernel is called with the least of these that is enough: in C a function may be given more than it takes."""


class Parts:
    """The launcher, loaded, and the parts of the dispatcher that calls have come to need.

    `addresses` is where the launcher's functions and variables are. Raises BuildError when it cannot be had.
    """

    def __init__(self, slot: int) -> None:
        """`slot` is the offset of the context in a Holder."""
        self._constants = {
            **constants(),
            "SLOT": slot,
            "READABLE": ALIGNED | CONTIGUOUS,
            "WRITABLE": ALIGNED | CONTIGUOUS | WRITEABLE,
            "HAS_FLOAT16": int(copying.has_float16()),
            "BOOL": copying.BOOL,
            "FLOAT16": copying.FLOAT16,
            "BFLOAT16": copying.BFLOAT16,
            "FLOAT32": copying.FLOAT32,
            "FLOAT64": copying.FLOAT64,
            "SWAPPED": copying.SWAPPED,
            "LANES": copying.LANES,
            "NEIGHBOURS": copying.NEIGHBOURS,
            "SAME": copying.SAME,
            "LEAST_ROW": moving.LEAST_ROW,
            "SQUARE": moving.SQUARE,
            "INFINITY_BITS": 0x7FF << 52,
            "LEAST_SINGLE_BITS": 1023 - 149 << 52,
        }
        # The translator's own text is in every key (`jitkernels.native.cache`).
        self._written = f"{state_of(*WRITTEN)}\n{self._constants}\n"
        self.addresses = self._loaded("launcher", LAUNCHER, owns=VARIABLES)

    def bring_missing(self) -> bool:
        """Load the part that a call was without; whether there was one. Raises BuildError when it cannot be had."""
        missing = ctypes.c_int64.from_address(self.addresses["jk_missing"])
        number, missing.value = missing.value - 1, 0
        for title, parts in TOGETHER.items():
            if number in [PARTS[part] for part in parts]:
                self._bring(title, parts)
                return True
        return False

    def bring_all(self) -> None:
        """Load every part. Raises BuildError when one cannot be had."""
        for title, parts in TOGETHER.items():
            self._bring(title, parts)

    def _bring(self, title: str, parts: Sequence[str]) -> None:
        links = [link(name, partial(self.addresses.__getitem__, name)) for name in VARIABLES]
        found = self._loaded(title, parts, links)
        for name in parts:
            ctypes.c_int64.from_address(self.addresses["jk_parts"] + 8 * PARTS[name]).value = found[name]

    def _loaded(
        self,
        name: str,
        exported: Sequence[str],
        links: Sequence[External] = (),
        owns: Mapping[str, int] = MappingProxyType({}),
    ) -> dict[str, int]:
        """Where the exported functions of an object, and the words that it owns, are in this process."""

        def ir() -> str:
            from jitkernels.native import dispatch
            from jitkernels.native.language.words import translated

            variables = {
                name: f"@{name} = global [{count} x i64] zeroinitializer\n" for name, count in owns.items()
            }
            provided = {
                "called": _called(),
                "nearest_single": NEAREST_SINGLE,
                **copying.provided(),
                **moving.provided(),
                **variables,
            }
            text = translated(dispatch.FUNCTIONS, exported, self._constants, provided, dispatch.INLINED)
            return text.replace(f"@{exported[0]}(", "@entry(")

        source = WordSource(name, self._written, ir, (*externals(), *links))
        return {exported[0]: load.address_of(source), **load.functions_of(source, (*exported[1:], *owns))}


def _called() -> str:
    """``called(entry, words, count)``: the C function with so many words, or more."""
    most = ARGUMENTS[-1]
    lines = ["define internal i64 @called(i64 %entry, i64 %words, i64 %count) nounwind {"]
    lines += ["  %f = inttoptr i64 %entry to ptr", "  %w = inttoptr i64 %words to ptr"]
    for count in ARGUMENTS:
        if count < most:
            lines += [f"  %few{count} = icmp sle i64 %count, {count}"]
            lines += [f"  br i1 %few{count}, label %c{count}, label %more{count}", f"c{count}:"]
        lines += [f"  %p{count}.{i} = getelementptr i64, ptr %w, i64 {i}" for i in range(count)]
        lines += [f"  %a{count}.{i} = load i64, ptr %p{count}.{i}" for i in range(count)]
        passed = ", ".join(f"i64 %a{count}.{i}" for i in range(count))
        lines += [f"  %r{count} = call i64 %f({passed})", f"  ret i64 %r{count}"]
        if count < most:
            lines += [f"more{count}:"]
    return "\n".join([*lines, "}", ""])


NEAREST_SINGLE = """define internal i64 @nearest_single(i64 %bits) nounwind {
  %double = bitcast i64 %bits to double
  %single = fptrunc double %double to float
  %back = fpext float %single to double
  %rounded = bitcast double %back to i64
  ret i64 %rounded
}
"""
"""The bits of a double, nearest in float32."""
