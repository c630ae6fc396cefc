"""The objects of launcher and dispatcher, and what they link to.

Every call passes through the launcher. The parts that most calls do not need are objects of their own, since building
them would take most of the first call of a process.
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from jitkernels.codegen.ir_source import I64Source
from jitkernels.codegen.source_protocol import External
from jitkernels.core.source_hash import state_of
from jitkernels.runtime import cast_copy, copy_transpose
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, MAX_CALL_WORDS, WRITEABLE, DispatcherPart, constants
from jitkernels.runtime.c_api import externals, link
from jitkernels.runtime.loading import loader

PART_NUMBERS = {name.lower(): number for name, number in vars(DispatcherPart).items() if name.isupper()}
LAUNCHER = ("jk_launch", "jk_everyday")
VARIABLES = {"jk_bypass": 1, "jk_missing": 1, "jk_parts": len(PART_NUMBERS)}
"""The launcher's global words, with their counts.

jk_bypass: whether Python serves all everyday calls. jk_missing: one plus the number of the missing part. jk_parts: the
addresses of the parts.
"""
PARTS_BY_OBJECT = {"general": ("general",), "converting": ("in_blocks", "mixed", "of_sequence", "copied")}
"""The parts that each object exports."""
TRANSLATED = ("dispatch/native", "runtime/cast_copy.py", "runtime/copy_transpose.py")
"""The modules whose functions are translated."""
ARGUMENTS = (6, 12, MAX_CALL_WORDS)
"""A kernel is called with the smallest sufficient count of these: in C a function may be passed extra arguments."""


class DispatcherObjects:
    """The launcher, and the objects of the dispatcher that calls have needed so far.

    `launcher`: its source. `addresses`: those of its functions and variables, once it is loaded.
    """

    def __init__(self, slot: int) -> None:
        """`slot` is the offset of the context in a Holder."""
        self._constants = {
            **constants(),
            "SLOT": slot,
            "READABLE": ALIGNED | CONTIGUOUS,
            "WRITABLE": ALIGNED | CONTIGUOUS | WRITEABLE,
            "HAS_FLOAT16": int(cast_copy.has_float16()),
            "BOOL": cast_copy.BOOL,
            "FLOAT16": cast_copy.FLOAT16,
            "BFLOAT16": cast_copy.BFLOAT16,
            "FLOAT32": cast_copy.FLOAT32,
            "FLOAT64": cast_copy.FLOAT64,
            "SWAPPED": cast_copy.SWAPPED,
            "LANES": cast_copy.LANES,
            "NEIGHBOURS": cast_copy.NEIGHBOURS,
            "SAME": cast_copy.SAME,
            "MIN_ROW": copy_transpose.MIN_ROW,
            "SQUARE": copy_transpose.SQUARE,
            "INFINITY_BITS": 0x7FF << 52,
            "MAGNITUDE_BITS": (1 << 63) - 1,
            "MIN_SINGLE_BITS": 1023 - 149 << 52,
        }
        # The source of the translator is in every key (`jitkernels.codegen.object_cache`).
        self._key = f"{state_of(*TRANSLATED)}\n{self._constants}\n"
        self.launcher = self._source("launcher", LAUNCHER, owns=VARIABLES)
        self.addresses: dict[str, int] = {}

    def load(self) -> None:
        """Load the launcher. Raises BuildError if it cannot be built."""
        self.addresses = _addresses(self.launcher, LAUNCHER, VARIABLES)

    def load_missing(self) -> bool:
        """Load the part that a call missed; False if there was none. Raises BuildError if it cannot be built."""
        missing = ctypes.c_int64.from_address(self.addresses["jk_missing"])
        number, missing.value = missing.value - 1, 0
        for title, parts in PARTS_BY_OBJECT.items():
            if number in [PART_NUMBERS[part] for part in parts]:
                self._load(title, parts)
                return True
        return False

    def load_all(self) -> None:
        """Load every part. Raises BuildError if one cannot be built."""
        for title, parts in PARTS_BY_OBJECT.items():
            self._load(title, parts)

    def _load(self, title: str, parts: Sequence[str]) -> None:
        links = [link(name, partial(self.addresses.__getitem__, name)) for name in VARIABLES]
        addresses = _addresses(self._source(title, parts, links), parts)
        for name in parts:
            ctypes.c_int64.from_address(self.addresses["jk_parts"] + 8 * PART_NUMBERS[name]).value = addresses[name]

    def _source(
        self,
        name: str,
        exported: Sequence[str],
        links: Sequence[External] = (),
        owns: Mapping[str, int] = MappingProxyType({}),
    ) -> I64Source:
        """The source of an object."""

        def ir() -> str:
            from jitkernels.codegen.python.i64_functions import translated
            from jitkernels.dispatch import native

            variables = {name: f"@{name} = global [{count} x i64] zeroinitializer\n" for name, count in owns.items()}
            provided = {
                "call_words": _called(),
                "nearest_single": NEAREST_SINGLE,
                **cast_copy.provided(),
                **copy_transpose.provided(),
                **variables,
            }
            text = translated(native.FUNCTIONS, exported, self._constants, provided, native.INLINED)
            return text.replace(f"@{exported[0]}(", "@entry(")

        return I64Source(name, self._key, ir, (*externals(), *links))


def _addresses(source: I64Source, exported: Sequence[str], owns: Iterable[str] = ()) -> dict[str, int]:
    """The addresses of an object's exported functions and variables in this process."""
    return {exported[0]: loader.address_of(source), **loader.functions_of(source, (*exported[1:], *owns))}


def _called() -> str:
    """IR of ``call_words(entry, words, count)``: call the C function with `count` words, or more."""
    most = ARGUMENTS[-1]
    lines = ["define internal i64 @call_words(i64 %entry, i64 %words, i64 %count) nounwind {"]
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
"""Round the bits of a double to float32."""
