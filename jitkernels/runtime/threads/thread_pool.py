"""The thread pool of generated code: helper threads, and the distribution of a region's parts among them.

``void @jk_parallel(ptr region, ptr shared, i64 team, i64 parts)`` calls ``region(shared, part, parts)`` once per
part. The first thread to reach a part runs it: the caller requests helpers, begins at once, takes the parts of those
that have not arrived when it has finished its own, and waits only for parts that were begun. Part 0 is the caller's.
OpenMP runtimes wait for all of their threads, and where other processes hold the cores that takes milliseconds for a
call of microseconds.

A helper is a slot in a table: a thread, and its state (`ABSENT` and the following). It spins for work for half a
millisecond, yields its core meanwhile, and sleeps then, also if others used up that time. Any number of callers share
the helpers; a caller that finds none free works alone.

In a program whose other parts run on an OpenMP runtime, helpers would compete with its threads for the cores, as these
spin for milliseconds after each of their regions. So `jk_openmp` may name the runtime's functions: its threads take the
parts then, and there are no helpers.
"""

import os
import time
from importlib import import_module
from typing import Any

signal: Any = import_module("_signal")
"""The C module behind `signal`, whose enums take a millisecond to create."""

ABSENT, FREE, TAKEN, CALLED, WORKING, AWAITED, DONE = range(7)
"""The states of a helper: no thread yet; idle; reserved by a caller; requested but not arrived; working; working while
its caller sleeps; done, unseen by its caller."""
MAX_HELPERS, MAX_POOL_PARTS = 127, 512
SPIN_NANOSECONDS, PAUSES = 500_000, 64
"""Nanoseconds that a helper spins before it sleeps, and pause instructions before it yields."""
BATCH = getattr(os, "SCHED_BATCH", -1)
"""SCHED_BATCH: woken threads do not preempt the thread that woke them."""
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGSYS)
"""Synchronous signals of faults. Helpers block all others, which a thread of the program may wait for."""
NO_SIGNALS = -1 - sum(1 << fault - 1 for fault in FAULTS)
SPINS = 1024
"""Pause instructions that a caller spins for begun parts before it sleeps."""

FUNCTIONS = {
    "sem_init": "i32 @sem_init(ptr, i32, i32)",
    "sem_wait": "i32 @sem_wait(ptr)",
    "sem_post": "i32 @sem_post(ptr)",
    "sched_yield": "i32 @sched_yield()",
    "sched_setscheduler": "i32 @sched_setscheduler(i32, i32, ptr)",
    "clock_gettime": "i32 @clock_gettime(i32, ptr)",
    "pthread_create": "i32 @pthread_create(ptr, ptr, ptr, ptr)",
    "pthread_detach": "i32 @pthread_detach(ptr)",
    "pthread_sigmask": "i32 @pthread_sigmask(i32, ptr, ptr)",
}
"""Functions of the C library, with their declarations."""

_X86_PAUSE_AND_MODE = """declare void @llvm.x86.sse2.pause()
define internal void @pause() alwaysinline nounwind {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i32 @mode_now() alwaysinline nounwind {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at
  %mode = and i32 %all, -64
  ret i32 %mode
}
define internal void @mode_becomes(i32 %mode) noinline nounwind {
  %at = alloca i32
  store i32 %mode, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""
_ARM_PAUSE_AND_MODE = """declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal void @pause() alwaysinline nounwind {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i32 @mode_now() alwaysinline nounwind {
  %all = call i64 @llvm.aarch64.get.fpcr()
  %mode = trunc i64 %all to i32
  ret i32 %mode
}
define internal void @mode_becomes(i32 %mode) noinline nounwind {
  %wide = zext i32 %mode to i64
  call void @llvm.aarch64.set.fpcr(i64 %wide)
  call void @flags_become(i32 0)
  ret void
}
"""
_OTHER = """define internal void @pause() alwaysinline nounwind {
  ret void
}
define internal i32 @mode_now() alwaysinline nounwind {
  ret i32 0
}
define internal void @mode_becomes(i32 %mode) alwaysinline nounwind {
  ret void
}
"""

# %Helper: its state, whether it sleeps, its number in the team, its work; then, each in a cache line of its own, the
# semaphore in which it sleeps, and that of its caller.
# %Work: the region and its argument, parts, threads, floating-point flags, the caller's rounding and subnormal modes,
# and which parts are taken.
_TEXT = f"""
%Helper = type {{ i32, i32, i64, ptr, [40 x i8], [64 x i8], [64 x i8] }}
%Work = type {{ ptr, ptr, i64, i64, i32, i32, [{MAX_POOL_PARTS} x i8] }}
@jk_helpers = global [{MAX_HELPERS} x %Helper] zeroinitializer, align 64
@jk_used = external global i64
@jk_cores = external global i64
@jk_openmp = external global [2 x ptr]
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
{"".join(f"declare {text}{chr(10)}" for text in FUNCTIONS.values())}
define void @jk_parallel(ptr %region, ptr %shared, i64 %team, i64 %parts) nounwind {{
start:
  store atomic i64 1, ptr @jk_used monotonic, align 8
  %work = alloca %Work, align 64
  %members = alloca [{MAX_HELPERS + 1} x ptr]
  %thread = alloca i64
  %signals = alloca [16 x i64]
  %usual = alloca [16 x i64]
  %at1 = getelementptr %Work, ptr %work, i32 0, i32 1
  %at2 = getelementptr %Work, ptr %work, i32 0, i32 2
  %at3 = getelementptr %Work, ptr %work, i32 0, i32 3
  %at4 = getelementptr %Work, ptr %work, i32 0, i32 4
  %at5 = getelementptr %Work, ptr %work, i32 0, i32 5
  %at6 = getelementptr %Work, ptr %work, i32 0, i32 6
  %mode = call i32 @mode_now()
  store ptr %region, ptr %work
  store ptr %shared, ptr %at1
  store i64 %parts, ptr %at2
  store i64 %team, ptr %at3
  store i32 0, ptr %at4
  store i32 %mode, ptr %at5
  call void @llvm.memset.p0.i64(ptr %at6, i8 0, i64 %parts, i1 false)
  store i8 1, ptr %at6
  %openmp = load ptr, ptr @jk_openmp
  %has_openmp = icmp ne ptr %openmp, null
  br i1 %has_openmp, label %shared.threads, label %own.threads
shared.threads:  ; teams of one size, that of the setting: the runtime ends and creates threads where it varies
  call void %openmp(ptr @openmp_member, ptr %work, i32 0, i32 0)
  br label %joined
own.threads:
  %cores = load i64, ptr @jk_cores
  %threads = call i64 @llvm.smax.i64(i64 %team, i64 %cores)
  %others = sub i64 %threads, 1
  %most = call i64 @llvm.smin.i64(i64 %others, i64 {MAX_HELPERS})
  br label %look
look:
  %i = phi i64 [ 0, %own.threads ], [ %i.next, %next ]
  %number = phi i64 [ 1, %own.threads ], [ %number.next, %next ]
  %more = icmp slt i64 %number, %team
  %left = icmp slt i64 %i, %most
  %go = and i1 %more, %left
  br i1 %go, label %try, label %begin
try:
  %helper = getelementptr [{MAX_HELPERS} x %Helper], ptr @jk_helpers, i64 0, i64 %i
  %sleeping = getelementptr %Helper, ptr %helper, i32 0, i32 1
  %number.at = getelementptr %Helper, ptr %helper, i32 0, i32 2
  %work.at = getelementptr %Helper, ptr %helper, i32 0, i32 3
  %wake = getelementptr %Helper, ptr %helper, i32 0, i32 5
  %done = getelementptr %Helper, ptr %helper, i32 0, i32 6
  %member.at = getelementptr [{MAX_HELPERS + 1} x ptr], ptr %members, i64 0, i64 %number
  %state = load atomic i32, ptr %helper monotonic, align 64
  %available = icmp sle i32 %state, {FREE}
  br i1 %available, label %take, label %next
take:
  %took = cmpxchg ptr %helper, i32 %state, i32 {TAKEN} acq_rel monotonic
  %mine = extractvalue {{ i32, i1 }} %took, 1
  br i1 %mine, label %ask, label %next
ask:
  store i64 %number, ptr %number.at
  store ptr %work, ptr %work.at
  %is_new = icmp eq i32 %state, {ABSENT}
  br i1 %is_new, label %create, label %call
create:
  call i32 @sem_init(ptr %wake, i32 0, i32 0)
  call i32 @sem_init(ptr %done, i32 0, i32 0)
  store atomic i32 {CALLED}, ptr %helper release, align 64
  call void @llvm.memset.p0.i64(ptr %signals, i8 -1, i64 128, i1 false)
  store i64 {NO_SIGNALS}, ptr %signals
  call i32 @pthread_sigmask(i32 {signal.SIG_SETMASK}, ptr %signals, ptr %usual)
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @helping, ptr %helper)
  call i32 @pthread_sigmask(i32 {signal.SIG_SETMASK}, ptr %usual, ptr null)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %created, label %without
created:
  %pointer = load ptr, ptr %thread
  call i32 @pthread_detach(ptr %pointer)
  br label %remember
without:
  store atomic i32 {ABSENT}, ptr %helper release, align 64
  br label %begin
call:
  store atomic i32 {CALLED}, ptr %helper seq_cst, align 64
  %slept = atomicrmw xchg ptr %sleeping, i32 0 seq_cst
  %asleep = icmp ne i32 %slept, 0
  br i1 %asleep, label %rouse, label %remember
rouse:
  call i32 @sem_post(ptr %wake)
  br label %remember
remember:
  store ptr %helper, ptr %member.at
  %number.more = add i64 %number, 1
  br label %next
next:
  %number.next = phi i64 [ %number, %try ], [ %number, %take ], [ %number.more, %remember ]
  %i.next = add i64 %i, 1
  br label %look
begin:
  call void @take_part(ptr %work, i64 0)
  br label %collect
collect:
  %j = phi i64 [ 1, %begin ], [ %j.next, %collected ]
  %open = icmp slt i64 %j, %number
  br i1 %open, label %member, label %joined
member:
  %one.at = getelementptr [{MAX_HELPERS + 1} x ptr], ptr %members, i64 0, i64 %j
  %one = load ptr, ptr %one.at
  %back = cmpxchg ptr %one, i32 {CALLED}, i32 {FREE} acq_rel acquire
  %never = extractvalue {{ i32, i1 }} %back, 1
  br i1 %never, label %collected, label %wait
wait:
  %spin = phi i64 [ 0, %member ], [ %spin.next, %spun ]
  %now = load atomic i32, ptr %one acquire, align 64
  %ended = icmp eq i32 %now, {DONE}
  br i1 %ended, label %release, label %spun
spun:
  call void @pause()
  %spin.next = add i64 %spin, 1
  %patient = icmp slt i64 %spin.next, {SPINS}
  br i1 %patient, label %wait, label %await
await:
  %awaiting = cmpxchg ptr %one, i32 {WORKING}, i32 {AWAITED} acq_rel acquire
  %working = extractvalue {{ i32, i1 }} %awaiting, 1
  br i1 %working, label %sleep, label %release
sleep:
  %one.done = getelementptr %Helper, ptr %one, i32 0, i32 6
  %interrupted = call i32 @sem_wait(ptr %one.done)
  %again = icmp ne i32 %interrupted, 0
  br i1 %again, label %sleep, label %release
release:
  store atomic i32 {FREE}, ptr %one release, align 64
  br label %collected
collected:
  %j.next = add i64 %j, 1
  br label %collect
joined:
  %failures = load i32, ptr %at4
  %before = call i32 @flags_now()
  %all = or i32 %before, %failures
  call void @flags_become(i32 %all)
  ret void
}}
define internal void @openmp_member(ptr %work) nounwind {{
  %at3 = getelementptr %Work, ptr %work, i32 0, i32 3
  %team = load i64, ptr %at3
  %function.at = getelementptr [2 x ptr], ptr @jk_openmp, i64 0, i64 1
  %function = load ptr, ptr %function.at
  %thread = call i32 %function()
  %number = sext i32 %thread to i64
  %wanted = icmp slt i64 %number, %team
  br i1 %wanted, label %take, label %done
take:
  call void @take_part(ptr %work, i64 %number)
  br label %done
done:
  ret void
}}
define internal i64 @clock(ptr %time) nounwind {{
  call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}
define internal ptr @helping(ptr %helper) nounwind {{
start:
  %time = alloca [2 x i64]
  store i64 0, ptr %time
  call i32 @sched_setscheduler(i32 0, i32 {BATCH}, ptr %time)
  %sleeping = getelementptr %Helper, ptr %helper, i32 0, i32 1
  %number.at = getelementptr %Helper, ptr %helper, i32 0, i32 2
  %work.at = getelementptr %Helper, ptr %helper, i32 0, i32 3
  %wake = getelementptr %Helper, ptr %helper, i32 0, i32 5
  %done = getelementptr %Helper, ptr %helper, i32 0, i32 6
  br label %again
again:
  %begun = call i64 @clock(ptr %time)
  br label %look
look:
  br label %see
see:
  %spin = phi i64 [ 0, %look ], [ %spin.next, %rest ]
  %state = load atomic i32, ptr %helper acquire, align 64
  %called = icmp eq i32 %state, {CALLED}
  br i1 %called, label %come, label %rest
rest:
  call void @pause()
  %spin.next = add i64 %spin, 1
  %on = icmp slt i64 %spin.next, {PAUSES}
  br i1 %on, label %see, label %give
give:
  call i32 @sched_yield()
  %now = call i64 @clock(ptr %time)
  %since = sub i64 %now, %begun
  %awake = icmp slt i64 %since, {SPIN_NANOSECONDS}
  br i1 %awake, label %look, label %doze
doze:
  store atomic i32 1, ptr %sleeping seq_cst, align 4
  %last = load atomic i32, ptr %helper seq_cst, align 64
  %late = icmp eq i32 %last, {CALLED}
  br i1 %late, label %come, label %sleep
sleep:
  call i32 @sem_wait(ptr %wake)
  br label %again
come:
  %came = cmpxchg ptr %helper, i32 {CALLED}, i32 {WORKING} acq_rel monotonic
  %in_time = extractvalue {{ i32, i1 }} %came, 1
  br i1 %in_time, label %work, label %again
work:
  store atomic i32 0, ptr %sleeping monotonic, align 4
  %number = load i64, ptr %number.at
  %what = load ptr, ptr %work.at
  call void @take_part(ptr %what, i64 %number)
  %before = atomicrmw xchg ptr %helper, i32 {DONE} acq_rel
  %awaited = icmp eq i32 %before, {AWAITED}
  br i1 %awaited, label %tell, label %again
tell:
  call i32 @sem_post(ptr %done)
  br label %again
}}
define internal void @take_part(ptr %work, i64 %number) nounwind noinline {{
start:
  %at1 = getelementptr %Work, ptr %work, i32 0, i32 1
  %at2 = getelementptr %Work, ptr %work, i32 0, i32 2
  %at3 = getelementptr %Work, ptr %work, i32 0, i32 3
  %at4 = getelementptr %Work, ptr %work, i32 0, i32 4
  %at5 = getelementptr %Work, ptr %work, i32 0, i32 5
  %region = load ptr, ptr %work
  %shared = load ptr, ptr %at1
  %parts = load i64, ptr %at2
  %team = load i64, ptr %at3
  %mode = load i32, ptr %at5
  %before = call i32 @flags_now()
  call void @mode_becomes(i32 %mode)
  %whole = mul i64 %number, %parts
  %first = sdiv i64 %whole, %team
  %is.caller = icmp eq i64 %number, 0
  br i1 %is.caller, label %do, label %look
look:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %on = icmp slt i64 %i, %parts
  br i1 %on, label %see, label %done
see:
  %ahead = add i64 %first, %i
  %past = icmp sge i64 %ahead, %parts
  %less = sub i64 %ahead, %parts
  %part = select i1 %past, i64 %less, i64 %ahead
  %at = getelementptr %Work, ptr %work, i32 0, i32 6, i64 %part
  %seen = load atomic i8, ptr %at monotonic, align 1
  %open = icmp eq i8 %seen, 0
  br i1 %open, label %take, label %next
take:
  %owner = atomicrmw xchg ptr %at, i8 1 monotonic
  %mine = icmp eq i8 %owner, 0
  br i1 %mine, label %do, label %next
do:
  %own = phi i64 [ 0, %start ], [ %part, %take ]
  %turn = phi i64 [ 0, %start ], [ %i, %take ]
  call void %region(ptr %shared, i64 %own, i64 %parts)
  br label %next
next:
  %i.now = phi i64 [ %i, %see ], [ %i, %take ], [ %turn, %do ]
  %i.next = add i64 %i.now, 1
  br label %look
done:
  %failures = call i32 @flags_now()
  atomicrmw or ptr %at4, i32 %failures monotonic
  call void @flags_become(i32 %before)
  ret void
}}
"""


def text(*, is_x86: bool, is_arm: bool) -> str:
    """LLVM IR of `jk_parallel`; it needs that of `jitkernels.runtime.fp_status`."""
    return f"{_X86_PAUSE_AND_MODE if is_x86 else _ARM_PAUSE_AND_MODE if is_arm else _OTHER}{_TEXT}"
