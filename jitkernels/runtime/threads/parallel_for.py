"""Parallel for: iterations of one loop, or of several consecutive ones in one region, shared among threads.

``i64 @jk_share(ptr data, ptr function, i64 extent, i64 unit, i64 work)`` lets threads run parts of one loop by calls
``function(data, begin, end)``; it returns the bitwise or of all statuses. Parts begin at multiples of a unit: where
iterations are lanes, a part shorter than a vector takes as long as a vector. Every expression with dynamic sizes may
need it; with a copy in each, a tenth of compile time would be spent on it.

``i64 @jk_share_run(ptr data, ptr phases, i64 count)`` does so for several loops, its phases (see `PHASE`), with one
wakeup of threads. Each thread begins with its own parts, the same rows in each phase, and steals remaining ones then.
No thread waits for one that has not arrived: a barrier, where a phase has one, waits until all parts of the phases
before it are done, which some thread has begun. A phase of one part runs on its caller.

``i64 @jk_share_rounds(ptr data, ptr function, i64 extent, i64 work, ptr asks)`` shares the iterations of a loop that
may take long: while its caller waits, it polls ``i64 asks(data)``, whose bits are added to the status.
"""

MIN_THREAD_WORK = 131072
"""The least work of a thread, in 4-byte additions, which take 3 to 5 us: a fork costs about 2."""

MIN_PART_WORK, MAX_PARTS_PER_THREAD = 65536, 4
"""The least work of a part, in additions, and the most parts per thread: a thread that arrives late finds some left."""

SMALL_PART = 16384
"""The least work of a part where threads are awake already, as in all phases but the first."""

BARRIER = 8192
"""The overhead of a phase, in additions: about 0.2 us for the barrier, and as much repeatedly for cache lines that one
thread reads after another has written them."""

PHASE = "{ ptr, i64, i64, i64, i64 }"
"""A function, its extent, its unit, its work, and whether it waits for all that comes before it."""

_TYPE = f"%Phase = type {PHASE}\n"

UNITS = """  %more.units = add i64 %extent, %unit
  %padded = sub i64 %more.units, 1
  %units = sdiv i64 %padded, %unit
"""
"""Compute the units of an extent."""

_ONE = f"""
define internal i64 @share(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work, ptr %asks) alwaysinline {{
start:
  %phase = alloca %Phase
  %little = icmp slt i64 %work, {2 * MIN_THREAD_WORK}
  br i1 %little, label %serial, label %count
count:  ; which divides: that would be felt where there is little to do
{UNITS}  %shares = sdiv i64 %work, {MIN_THREAD_WORK}
  %wanted = call i64 @llvm.smin.i64(i64 %units, i64 %shares)
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %serial, label %ask
ask:
  %team = call i64 @jk_team(i64 %wanted)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %serial
serial:
  %status = call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
fork:
  %extent.at = getelementptr %Phase, ptr %phase, i32 0, i32 1
  %unit.at = getelementptr %Phase, ptr %phase, i32 0, i32 2
  %work.at = getelementptr %Phase, ptr %phase, i32 0, i32 3
  %waits.at = getelementptr %Phase, ptr %phase, i32 0, i32 4
  store ptr %function, ptr %phase
  store i64 %extent, ptr %extent.at
  store i64 %unit, ptr %unit.at
  store i64 %work, ptr %work.at
  store i64 0, ptr %waits.at
  %statuses = call i64 @shared_out(ptr %data, ptr %phase, i64 1, i64 %team, ptr %asks)
  ret i64 %statuses
}}
define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work) nounwind {{
  %status = call i64 @share(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work, ptr null)
  ret i64 %status
}}
define i64 @jk_share_rounds(ptr %data, ptr %function, i64 %extent, i64 %work, ptr %asks) nounwind {{
  %status = call i64 @share(ptr %data, ptr %function, i64 %extent, i64 1, i64 %work, ptr %asks)
  ret i64 %status
}}
"""


def loads(*names: str) -> str:
    """Load some fields of the phase ``%phase``."""
    fields = {"function": "ptr", "extent": "i64", "unit": "i64", "work": "i64", "waits": "i64"}
    lines = []
    for name in names:
        number = [*fields].index(name)
        lines.append(f"  %{name}.of = getelementptr %Phase, ptr %phase, i32 0, i32 {number}")
        lines.append(f"  %{name} = load {fields[name]}, ptr %{name}.of")
    return "\n".join(lines)


_SEVERAL = f"""
define i64 @jk_share_run(ptr %data, ptr %phases, i64 %count) nounwind {{
start:
  br label %look
look:
  %k = phi i64 [ 0, %start ], [ %k.next, %next ]
  %sum = phi i64 [ 0, %start ], [ %sum.next, %next ]
  %most = phi i64 [ 0, %start ], [ %most.next, %next ]
  %on = icmp slt i64 %k, %count
  br i1 %on, label %see, label %decide
see:
  %phase = getelementptr %Phase, ptr %phases, i64 %k
{loads("extent", "unit", "work")}
  %small = icmp slt i64 %work, {2 * SMALL_PART}
  br i1 %small, label %next, label %divide
divide:
{UNITS}  %single = icmp slt i64 %units, 2
  %shared = select i1 %single, i64 0, i64 %work
  br label %next
next:
  %own = phi i64 [ 0, %see ], [ %shared, %divide ]
  %own.units = phi i64 [ 0, %see ], [ %units, %divide ]
  %more = add i64 %sum, %own
  %sum.next = sub i64 %more, {BARRIER}
  %most.next = call i64 @llvm.smax.i64(i64 %most, i64 %own.units)
  %k.next = add i64 %k, 1
  br label %look
decide:
  %shares = sdiv i64 %sum, {MIN_THREAD_WORK}
  %wanted = call i64 @llvm.smin.i64(i64 %shares, i64 %most)
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %serial, label %ask
ask:
  %team = call i64 @jk_team(i64 %wanted)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %serial
fork:
  %statuses = call i64 @shared_out(ptr %data, ptr %phases, i64 %count, i64 %team, ptr null)
  ret i64 %statuses
serial:
  %found = call i64 @one_by_one(ptr %data, ptr %phases, i64 %count)
  ret i64 %found
}}
"""

_ONE_BY_ONE = f"""
define internal i64 @one_by_one(ptr %data, ptr %phases, i64 %count) nounwind {{
start:
  br label %look
look:
  %k = phi i64 [ 0, %start ], [ %k.next, %see ]
  %statuses = phi i64 [ 0, %start ], [ %either, %see ]
  %on = icmp slt i64 %k, %count
  br i1 %on, label %see, label %done
see:
  %phase = getelementptr %Phase, ptr %phases, i64 %k
{loads("function", "extent")}
  %status = call i64 %function(ptr %data, i64 0, i64 %extent)
  %either = or i64 %statuses, %status
  %k.next = add i64 %k, 1
  br label %look
done:
  ret i64 %statuses
}}
"""

AMONG_THREADS = f"{_TYPE}{_ONE}{_SEVERAL}{_ONE_BY_ONE}"

ALONE = f"""{_TYPE}define i64 @entry(ptr %data, ptr %function, i64 %extent, i64 %unit, i64 %work) {{
  %status = tail call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
}}
define i64 @jk_share_rounds(ptr %data, ptr %function, i64 %extent, i64 %work, ptr %asks) {{
  %status = tail call i64 %function(ptr %data, i64 0, i64 %extent)
  ret i64 %status
}}
define i64 @jk_share_run(ptr %data, ptr %phases, i64 %count) {{
  %status = call i64 @one_by_one(ptr %data, ptr %phases, i64 %count)
  ret i64 %status
}}
{_ONE_BY_ONE}"""
