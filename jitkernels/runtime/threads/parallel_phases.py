"""A thread's share of the phases of a parallel region, one function per phase (see `parallel_for`).

A team member runs all phases. In each it takes parts that nobody has taken; at a barrier it spins until all parts of
the phases before are done, and sleeps if that takes long. The thread that completes a phase wakes those who sleep for
it. Each phase has a semaphore of its own: of a common one, a thread that has to wait for a later phase would take the
wakeup of another that has not run since, and nobody would wake that one again.
"""

from jitkernels.runtime.threads import thread_pool
from jitkernels.runtime.threads.parallel_for import MAX_PARTS_PER_THREAD, MIN_PART_WORK, SMALL_PART, UNITS, loads

WAITING = 256
"""The yields of the waiting caller between two signal polls."""

# %Run: the data, the phases and their number, the states of phases and their stride, the or of all statuses, and the
# poll function of the waiting caller.
# %Known, the state of a phase: its parts, how many are done, the number of those who sleep until all are, and at a
# multiple of 8 bytes their semaphore; then, in the next cache line, which parts are taken.
TEXT = f"""%Run = type {{ ptr, ptr, i64, ptr, i64, i64, ptr }}
%Known = type {{ i64, i64, i64, [40 x i8] }}
define internal i64 @shared_out(ptr %data, ptr %phases, i64 %count, i64 %team, ptr %asks) noinline nounwind {{
start:
  %run = alloca %Run, align 64
  %each = mul i64 %team, {MAX_PARTS_PER_THREAD}
  %lines = add i64 %each, 127
  %stride = and i64 %lines, -64
  %bytes = mul i64 %stride, %count
  %known = alloca i8, i64 %bytes, align 64
  call void @llvm.memset.p0.i64(ptr align 64 %known, i8 0, i64 %bytes, i1 false)
  %phases.at = getelementptr %Run, ptr %run, i32 0, i32 1
  %count.at = getelementptr %Run, ptr %run, i32 0, i32 2
  %known.at = getelementptr %Run, ptr %run, i32 0, i32 3
  %stride.at = getelementptr %Run, ptr %run, i32 0, i32 4
  %statuses.at = getelementptr %Run, ptr %run, i32 0, i32 5
  %asks.at = getelementptr %Run, ptr %run, i32 0, i32 6
  store ptr %data, ptr %run
  store ptr %phases, ptr %phases.at
  store i64 %count, ptr %count.at
  store ptr %known, ptr %known.at
  store i64 %stride, ptr %stride.at
  store i64 0, ptr %statuses.at
  store ptr %asks, ptr %asks.at
  %single = icmp eq i64 %count, 1
  %least = select i1 %single, i64 {MIN_PART_WORK}, i64 {SMALL_PART}
  br label %look
look:
  %k = phi i64 [ 0, %start ], [ %k.next, %see ]
  %on = icmp slt i64 %k, %count
  br i1 %on, label %see, label %go
see:
  %phase = getelementptr %Phase, ptr %phases, i64 %k
{loads("extent", "unit", "work")}
{UNITS}  %worth = sdiv i64 %work, %least
  %most = call i64 @llvm.smin.i64(i64 %worth, i64 %each)
  %some = call i64 @llvm.smin.i64(i64 %most, i64 %units)
  %parts = call i64 @llvm.smax.i64(i64 %some, i64 1)
  %place = mul i64 %k, %stride
  %own = getelementptr i8, ptr %known, i64 %place
  store i64 %parts, ptr %own
  %semaphore = getelementptr %Known, ptr %own, i32 0, i32 3
  %has.sem = call i32 @sem_init(ptr %semaphore, i32 0, i32 0)
  %k.next = add i64 %k, 1
  br label %look
go:
  call void @jk_parallel(ptr @jk_member, ptr %run, i64 %team, i64 %team)
  %statuses = load i64, ptr %statuses.at
  ret i64 %statuses
}}
define internal void @jk_member(ptr %run, i64 %number, i64 %team) nounwind {{
start:
  %phases.at = getelementptr %Run, ptr %run, i32 0, i32 1
  %count.at = getelementptr %Run, ptr %run, i32 0, i32 2
  %known.at = getelementptr %Run, ptr %run, i32 0, i32 3
  %stride.at = getelementptr %Run, ptr %run, i32 0, i32 4
  %statuses.at = getelementptr %Run, ptr %run, i32 0, i32 5
  %data = load ptr, ptr %run
  %phases = load ptr, ptr %phases.at
  %count = load i64, ptr %count.at
  %known = load ptr, ptr %known.at
  %stride = load i64, ptr %stride.at
  %is.caller = icmp eq i64 %number, 0
  br label %turn
turn:
  %k = phi i64 [ 0, %start ], [ %k.next, %ended ]
  %settled = phi i64 [ 0, %start ], [ %settled.now, %ended ]
  %on = icmp slt i64 %k, %count
  br i1 %on, label %begin, label %over
begin:
  %phase = getelementptr %Phase, ptr %phases, i64 %k
{loads("function", "extent", "unit", "waits")}
  %must.wait = icmp ne i64 %waits, 0
  br i1 %must.wait, label %barrier, label %parted
barrier:
  %j = phi i64 [ %settled, %begin ], [ %j.next, %settle ]
  %open = icmp slt i64 %j, %k
  br i1 %open, label %settle, label %parted
settle:
  %j.place = mul i64 %j, %stride
  %j.known = getelementptr i8, ptr %known, i64 %j.place
  call void @settle(ptr %j.known)
  %j.next = add i64 %j, 1
  br label %barrier
parted:
  %settled.now = phi i64 [ %settled, %begin ], [ %k, %barrier ]
  %place = mul i64 %k, %stride
  %own = getelementptr i8, ptr %known, i64 %place
  %done.at = getelementptr %Known, ptr %own, i32 0, i32 1
  %parts = load i64, ptr %own
  %is.shared = icmp sgt i64 %parts, 1
  %takes = or i1 %is.shared, %is.caller
  br i1 %takes, label %divide, label %ended
divide:
{UNITS}  %whole = mul i64 %number, %parts
  %first = sdiv i64 %whole, %team
  br label %look
look:
  %i = phi i64 [ 0, %divide ], [ %i.next, %next ]
  %left = icmp slt i64 %i, %parts
  br i1 %left, label %see, label %ended
see:
  %ahead = add i64 %first, %i
  %past = icmp sge i64 %ahead, %parts
  %less = sub i64 %ahead, %parts
  %part = select i1 %past, i64 %less, i64 %ahead
  %mark = getelementptr %Known, ptr %own, i64 1
  %taken.at = getelementptr i8, ptr %mark, i64 %part
  %seen = load atomic i8, ptr %taken.at monotonic, align 1
  %free = icmp eq i8 %seen, 0
  br i1 %free, label %take, label %next
take:
  %owner = atomicrmw xchg ptr %taken.at, i8 1 monotonic
  %mine = icmp eq i8 %owner, 0
  br i1 %mine, label %check, label %next
check:  ; when one has failed, what the others do is for nothing
  %failed = load atomic i64, ptr %statuses.at monotonic, align 8
  %fine = icmp eq i64 %failed, 0
  br i1 %fine, label %do, label %note
do:
  %low.product = mul i64 %part, %units
  %high.product = add i64 %low.product, %units
  %low = sdiv i64 %low.product, %parts
  %high = sdiv i64 %high.product, %parts
  %from = mul i64 %low, %unit
  %stop = mul i64 %high, %unit
  %to = call i64 @llvm.smin.i64(i64 %stop, i64 %extent)
  %status = call i64 %function(ptr %data, i64 %from, i64 %to)
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %fail, label %note
fail:
  %old = atomicrmw or ptr %statuses.at, i64 %status monotonic
  br label %note
note:
  %before = atomicrmw add ptr %done.at, i64 1 seq_cst
  %now = add i64 %before, 1
  %all = icmp eq i64 %now, %parts
  br i1 %all, label %wake, label %next
wake:
  call void @wake(ptr %own)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %look
ended:
  %k.next = add i64 %k, 1
  br label %turn
over:  ; `jk_parallel` waits for those who came; who hears signals does so here
  %asks.at = getelementptr %Run, ptr %run, i32 0, i32 6
  %asks = load ptr, ptr %asks.at
  %may.ask = icmp ne ptr %asks, null
  %has.to = and i1 %may.ask, %is.caller
  br i1 %has.to, label %last, label %leave
last:
  %last.done = getelementptr %Known, ptr %known, i32 0, i32 1
  %last.parts = load i64, ptr %known
  br label %listen
listen:
  %turns = phi i64 [ 0, %last ], [ %turns.next, %again ], [ 0, %ask ]
  %ended.now = load atomic i64, ptr %last.done acquire, align 8
  %complete = icmp sge i64 %ended.now, %last.parts
  br i1 %complete, label %leave, label %again
again:
  %yielded = call i32 @sched_yield()
  %turns.next = add i64 %turns, 1
  %spins = icmp slt i64 %turns.next, {WAITING}
  br i1 %spins, label %listen, label %ask
ask:
  %bits = call i64 %asks(ptr %data)
  %kept = atomicrmw or ptr %statuses.at, i64 %bits monotonic
  br label %listen
leave:
  ret void
}}
define internal void @settle(ptr %known) nounwind noinline {{
start:
  %done.at = getelementptr %Known, ptr %known, i32 0, i32 1
  %sleepers = getelementptr %Known, ptr %known, i32 0, i32 2
  %semaphore = getelementptr %Known, ptr %known, i32 0, i32 3
  %parts = load i64, ptr %known
  br label %look
look:
  %spin = phi i64 [ 0, %start ], [ %spin.next, %spun ], [ {thread_pool.SPINS}, %woken ]
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %all = icmp sge i64 %done, %parts
  br i1 %all, label %end, label %rest
rest:
  %spins = icmp slt i64 %spin, {thread_pool.SPINS}
  br i1 %spins, label %spun, label %doze
spun:
  call void @pause()
  %spin.next = add i64 %spin, 1
  br label %look
doze:
  %more = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %last = load atomic i64, ptr %done.at seq_cst, align 8
  %late = icmp sge i64 %last, %parts
  br i1 %late, label %withdraw, label %sleep
sleep:
  %interrupted = call i32 @sem_wait(ptr %semaphore)
  %again = icmp ne i32 %interrupted, 0
  br i1 %again, label %sleep, label %woken
woken:
  br label %look
withdraw:  ; unless somebody is about to wake this one
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %none = icmp sle i32 %asleep, 0
  br i1 %none, label %sleep, label %less
less:
  %fewer = sub i32 %asleep, 1
  %pair = cmpxchg ptr %sleepers, i32 %asleep, i32 %fewer seq_cst seq_cst
  %gone = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %gone, label %end, label %withdraw
end:
  ret void
}}
define internal void @wake(ptr %known) nounwind {{
start:
  %sleepers = getelementptr %Known, ptr %known, i32 0, i32 2
  %semaphore = getelementptr %Known, ptr %known, i32 0, i32 3
  %any = load atomic i32, ptr %sleepers seq_cst, align 4
  %some = icmp sgt i32 %any, 0
  br i1 %some, label %all, label %end
all:
  %count = atomicrmw xchg ptr %sleepers, i32 0 seq_cst
  br label %post
post:
  %i = phi i32 [ %count, %all ], [ %left, %one ]
  %more = icmp sgt i32 %i, 0
  br i1 %more, label %one, label %end
one:
  %posted = call i32 @sem_post(ptr %semaphore)
  %left = sub i32 %i, 1
  br label %post
end:
  ret void
}}
"""
