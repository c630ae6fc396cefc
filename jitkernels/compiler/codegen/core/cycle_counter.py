"""Clocks around the calls of kernels, in code that was asked for them: ticks of the processor's own counter.

The frame has one word more then: where the counters are, two for each call, its ticks and how often it was made.
"""

from collections.abc import Callable

from jitkernels import machine
from jitkernels.records import record

X86 = "call i64 @llvm.readcyclecounter()"
ARM = 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()'
"""The counter of cycles is the system's alone there."""
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
"""A segment that tells what the counter says."""


@record
class Clock:
    """Around one call: the frame's word of the counters, and which of them are its own."""

    word: int
    number: int

    def start(self, new: Callable[[str], str]) -> str:
        """What the counter says before the call; `new` takes an instruction and gives the name of its value."""
        return new(_now())

    def stop(self, began: str) -> str:
        """The line behind the call."""
        return f"  call void @jk_took(ptr %frame, i64 {self.word}, i64 {self.number}, i64 {began})"


def text(of: str) -> str:
    """LLVM IR of `STOP`, or of `TICKS`."""
    now = _now()
    declared = "declare i64 @llvm.readcyclecounter()\n" if now == X86 else ""
    return declared + of.replace("NOW", now)


def _now() -> str:
    return ARM if machine.target().is_arm else X86
