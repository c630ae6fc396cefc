"""Rounds that the threads of a group go through together: for nests whose threads are `together`.

Each round has as many shares as there are members, and begins when all shares of the one before are done. A member
takes its own share first, whose data is in its caches, then those that nobody has taken: a thread that comes late finds
that others do its work, and one that never comes keeps nobody waiting. Only for what somebody is at, others wait. One
member alone does all of it, without a thread beside it: so it is in a forked child, and where all others are busy.

    for number in range(rounds):
        for turn in range(members):
            share = (member + turn) % members
            if takes(words, members, share, number) != 0:
                ...
                ends(words, members)
        while are_open(words, members, number) != 0:
            give_way()
"""

import ctypes
from typing import Any

from jitkernels import machine
from jitkernels.native.source import External, IRFunction, inlined

PATIENCE = 2048
"""Looks at what others have done, a pause of the processor after each, before one gives way to who wants the core."""

_TAKE = """define i64 @jk_round_take(ptr %words, i64 %share, i64 %round) nounwind {
  %line = add i64 %share, 1
  %word = shl i64 %line, 3
  %at = getelementptr i64, ptr %words, i64 %word
  %after = add i64 %round, 1
  %now = load atomic i64, ptr %at monotonic, align 64
  %open = icmp eq i64 %now, %round
  br i1 %open, label %try, label %no
try:
  %pair = cmpxchg ptr %at, i64 %round, i64 %after acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  %taken = zext i1 %mine to i64
  ret i64 %taken
no:
  ret i64 0
}
"""
_END = """define void @jk_round_end(ptr %words) nounwind {
  %before = atomicrmw add ptr %words, i64 1 release
  ret void
}
"""


def _wait() -> str:
    target = machine.target()
    pause = ""
    declared = ""
    if target.is_x86:
        declared, pause = "declare void @llvm.x86.sse2.pause()\n", "  call void @llvm.x86.sse2.pause()\n"
    elif target.is_arm:
        declared, pause = "declare void @llvm.aarch64.hint(i32)\n", "  call void @llvm.aarch64.hint(i32 1)\n"
    return f"""{declared}define i64 @jk_round_wait(ptr %words, i64 %done) nounwind {{
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %on ]
  %now = load atomic i64, ptr %words acquire, align 64
  %ended = icmp sge i64 %now, %done
  br i1 %ended, label %yes, label %on
on:
{pause}  %next = add i64 %i, 1
  %patient = icmp slt i64 %next, {PATIENCE}
  br i1 %patient, label %look, label %no
yes:
  ret i64 0
no:
  ret i64 1
}}
"""


_take: Any = IRFunction("jk_round_take", "int64", ("int64*", "int64", "int64"), _TAKE)
_end: Any = IRFunction("jk_round_end", "void", ("int64*",), _END)
_wait_for: Any = IRFunction("jk_round_wait", "int64", ("int64*", "int64"), _wait())


def _sched_yield() -> int:
    return ctypes.cast(ctypes.CDLL(None)["sched_yield"], ctypes.c_void_p).value or 0


give_way: Any = External("sched_yield", "int32", (), _sched_yield)
"""Let others have the core."""


@inlined()
def takes(words: Any, members: int, share: int, number: int) -> int:
    """Whether this share of the round is the caller's now, who has to do it."""
    return 1 if members == 1 else _take(words, share, number)


@inlined()
def ends(words: Any, members: int) -> None:
    """A share is done, and others may see what it wrote."""
    if members > 1:
        _end(words)


@inlined()
def are_open(words: Any, members: int, number: int) -> int:
    """Whether shares of the round are not done yet; waits for them for a while."""
    return 0 if members == 1 else _wait_for(words, (number + 1) * members)
