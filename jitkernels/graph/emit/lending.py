"""Memory between the nests of a call, lent for the call, and kept by the process for the next one.

What large memory costs is the pages: where it goes back to the system after each call, whatever is computed in it may
take twice as long. So one piece is kept, the last that was given back. Calls that run at once, and find none, make
their own.
"""

ON_STACK = 1 << 14
"""Bytes up to which a call takes its own stack, and calls no function for memory."""
LEAST, MOST = 1 << 14, 1 << 25
"""Bytes of what is kept: above, it is too much to hold for nothing."""

FUNCTIONS = {
    "jk_lent": f"""
define internal ptr @jk_lent(i64 %bytes) nounwind {{
start:
  %beyond = sub i64 %bytes, {LEAST}
  %keeps = icmp ult i64 %beyond, {MOST - LEAST}
  br i1 %keeps, label %take, label %make
take:
  %kept = atomicrmw xchg ptr @jk_kept_memory, ptr null acq_rel
  %none = icmp eq ptr %kept, null
  br i1 %none, label %make, label %look
look:
  %size = load i64, ptr %kept
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %use, label %drop
use:
  ret ptr %kept
drop:
  call void @free(ptr %kept)
  br label %make
make:
  %made = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %done, label %note
note:
  store i64 %bytes, ptr %made
  br label %done
done:
  ret ptr %made
}}
""",
    "jk_given_back": f"""
define internal void @jk_given_back(ptr %memory) nounwind {{
start:
  %bytes = load i64, ptr %memory
  %beyond = sub i64 %bytes, {LEAST}
  %keeps = icmp ult i64 %beyond, {MOST - LEAST}
  br i1 %keeps, label %keep, label %drop
keep:
  %other = atomicrmw xchg ptr @jk_kept_memory, ptr %memory acq_rel
  br label %drop
drop:
  %last = phi ptr [ %memory, %start ], [ %other, %keep ]
  call void @free(ptr %last)
  ret void
}}
""",
}
"""The first word of a piece is its size: it lies before what is lent."""
