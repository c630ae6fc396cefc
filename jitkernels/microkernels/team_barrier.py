"""Barrier between the phases of a thread team, with work stealing: for kernels whose threads work `together`.

Each phase has as many shares as the team has threads, and begins when all shares of the phase before are done. A thread
claims its own share first, whose data is in its caches, then those that no thread has claimed: the others do the work
of a late thread, and a thread that never comes blocks nobody. Threads wait only for shares in progress. One thread
alone does all of them: so it is in a forked child, and where all other threads are busy.

    for phase in range(phases):
        for turn in range(team.team_size):
            share = (team.thread + turn) % team.team_size
            if claim_share(team, share, phase) != 0:
                ...
                finish_share(team)
        while shares_pending(team, phase) != 0:
            yield_core()
"""

from functools import partial
from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import External, IRFunction, inlined
from jitkernels.core import cpu_target
from jitkernels.core.c_symbols import symbol_address

MAX_POLLS = 2048
"""Polls of the other threads' progress, a pause instruction after each, before a thread yields its core."""

_CLAIM = """define i64 @jk_share_claim(ptr %words, i64 %share, i64 %phase) nounwind {
  %line = add i64 %share, 1
  %word = shl i64 %line, 3
  %at = getelementptr i64, ptr %words, i64 %word
  %after = add i64 %phase, 1
  %now = load atomic i64, ptr %at monotonic, align 64
  %open = icmp eq i64 %now, %phase
  br i1 %open, label %try, label %no
try:
  %pair = cmpxchg ptr %at, i64 %phase, i64 %after acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  %taken = zext i1 %mine to i64
  ret i64 %taken
no:
  ret i64 0
}
"""
_FINISH = """define void @jk_share_finish(ptr %words) nounwind {
  %before = atomicrmw add ptr %words, i64 1 release
  ret void
}
"""


def _wait() -> str:
    target = cpu_target.target()
    pause = ""
    declared = ""
    if target.is_x86:
        declared, pause = "declare void @llvm.x86.sse2.pause()\n", "  call void @llvm.x86.sse2.pause()\n"
    elif target.is_arm:
        declared, pause = "declare void @llvm.aarch64.hint(i32)\n", "  call void @llvm.aarch64.hint(i32 1)\n"
    return f"""{declared}define i64 @jk_phase_wait(ptr %words, i64 %done) nounwind {{
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %on ]
  %now = load atomic i64, ptr %words acquire, align 64
  %ended = icmp sge i64 %now, %done
  br i1 %ended, label %yes, label %on
on:
{pause}  %next = add i64 %i, 1
  %patient = icmp slt i64 %next, {MAX_POLLS}
  br i1 %patient, label %look, label %no
yes:
  ret i64 0
no:
  ret i64 1
}}
"""


_claim: Any = IRFunction("jk_share_claim", "int64", ("int64*", "int64", "int64"), _CLAIM)
_finish: Any = IRFunction("jk_share_finish", "void", ("int64*",), _FINISH)
_wait_for: Any = IRFunction("jk_phase_wait", "int64", ("int64*", "int64"), _wait())


yield_core: Any = External("sched_yield", "int32", (), partial(symbol_address, "sched_yield"))
"""Yield the core to other threads."""


class Team(NamedTuple):
    """The threads of a kernel: progress words, the number of this thread, and how many there are."""

    words: Any
    thread: int
    team_size: int


@inlined()
def claim_share(team: Team, share: int, phase: int) -> int:
    """Claim a share of the phase: whether the caller has to compute it."""
    return 1 if team.team_size == 1 else _claim(team.words, share, phase)


@inlined()
def finish_share(team: Team) -> None:
    """Mark a share as done, and release its stores to other threads."""
    if team.team_size > 1:
        _finish(team.words)


@inlined()
def shares_pending(team: Team, phase: int) -> int:
    """Whether shares of the phase are not done yet; polls for a while."""
    return 0 if team.team_size == 1 else _wait_for(team.words, (phase + 1) * team.team_size)
