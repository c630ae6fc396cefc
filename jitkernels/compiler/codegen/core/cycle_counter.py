"""Profile counters around kernel calls: processor ticks and numbers of calls, in code compiled for profiling.

Such a frame has one more word: the address of the counters, two for each call, its ticks and its number of calls.
"""

from collections.abc import Callable

from jitkernels.core import cpu_target
from jitkernels.core.frozen_dataclass import frozen_dataclass

X86 = "call i64 @llvm.readcyclecounter()"
ARM = 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()'
"""ARM: user code may read only the virtual timer, not the cycle counter."""
STOP = """define internal void @jk_took(ptr %frame, i64 %word, i64 %number, i64 %began) alwaysinline nounwind {
  %now = NOW
  %ticks = sub i64 %now, %began
  %at = getelementptr i64, ptr %frame, i64 %word
  %counters = load ptr, ptr %at
  %place = getelementptr [2 x i64], ptr %counters, i64 %number
  %times = getelementptr i64, ptr %place, i64 1
  %before = atomicrmw add ptr %place, i64 %ticks monotonic
  %often = atomicrmw add ptr %times, i64 1 monotonic
  ret void
}"""
TICKS = "define i64 @entry(ptr %frame) nounwind {\n  %now = NOW\n  ret i64 %now\n}"
"""A segment that returns the counter."""


@frozen_dataclass
class Clock:
    """The profile counters of one call: the frame word of all counters, and the index of its own pair."""

    word: int
    number: int

    def start(self, new: Callable[[str], str]) -> str:
        """Read the counter before the call; `new` appends an instruction and returns the name of its value."""
        return new(_now())

    def stop(self, began: str) -> str:
        """The line that adds the ticks since `began`."""
        return f"  call void @jk_took(ptr %frame, i64 {self.word}, i64 {self.number}, i64 {began})"


def text(template: str) -> str:
    """Return the LLVM IR of `STOP` or `TICKS`."""
    now = _now()
    declared = "declare i64 @llvm.readcyclecounter()\n" if now == X86 else ""
    return declared + template.replace("NOW", now)


def _now() -> str:
    return ARM if cpu_target.target().is_arm else X86
