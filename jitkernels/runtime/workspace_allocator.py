"""The workspace allocator of calls: pooled memory, cached for the next call of the same thread.

The cost of large memory is its pages: returned to the system after each call, whatever is computed in it may take
twice as long. So freed pieces are cached in a table of slots. A thread searches the slots that its identity hashes
to, and frees into these; pieces of finished threads serve others.

Pieces are mapped, so that a released one is the system's at once, in huge pages where the system has such. Beyond
`RESIDENT_BYTES` of all pieces, cached ones decay, as in jemalloc: after `DECAY_SECONDS` without use their pages are
marked as free, for the system to take back. A call that repeats sooner has them without a page fault. All pieces take
no more than `MAX_POOLED_BYTES`: a piece beyond that releases the cached ones, and is not cached itself. If the system
is out of memory, cached pieces are released before a call fails.
"""

import ctypes
import functools
import mmap
import os

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core.c_symbols import symbol_address
from jitkernels.runtime import c_api
from jitkernels.runtime.loading import loader

ON_STACK = 1 << 14
"""The most bytes of a workspace on the stack."""
SLOTS, SEARCHED_SLOTS = 64, 8
"""The slots for pieces, and how many of them a thread searches."""
RESIDENT_BYTES = 1 << 27
"""The most bytes of all pieces, above which cached ones decay."""
MAX_EXCESS = 16
"""How many times the bytes of a call a large piece may have: one that small calls use would not decay."""
DECAY_SECONDS = 10
"""Seconds after which the pages of a cached piece are marked as free; jemalloc's default."""
MAX_POOLED_BYTES = 1 << 30
"""The most bytes of all pieces, above which none is cached."""
HUGE_PAGE_BYTES = 1 << 21
"""Bytes of a huge page; pieces of two or more ask for them, as NumPy's arrays do."""
HEADER_BYTES = 64
"""Bytes of a piece's header: its size, and the second when it was freed, which is 0 once its pages are marked."""
LIMIT = "jk_pool_limit"
"""The word that holds `MAX_POOLED_BYTES`."""
DECAY = "jk_pool_decay"
"""The word that holds `DECAY_SECONDS`."""
ALLOCATE, RELEASE, EMPTY_ARRAY = "jk_pool_allocate", "jk_pool_release", "jk_empty"
HOOKS = ("jk_allocate_hook", "jk_release_hook")
"""Hooks for tests: words that are null, or replacement functions for allocating and freeing."""

_SYSTEM = {
    "madvise": ("i32", "ptr, i64, i32"),
    "mmap": ("ptr", "ptr, i64, i32, i32, i32, i64"),
    "munmap": ("i32", "ptr, i64"),
    "pthread_self": ("i64", ""),
    "time": ("i64", "ptr"),
}
_PYTHON = {"PyArray_Empty": ("ptr", "i32, ptr, ptr, i32"), "PyErr_Clear": ("void", ""), "Py_IncRef": ("void", "ptr")}

_DECLARED = "".join(
    f"declare {result} @{name}({arguments})\n" for name, (result, arguments) in (_SYSTEM | _PYTHON).items()
)
_MODES = f"i32 {mmap.PROT_READ | mmap.PROT_WRITE}, i32 {mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}, i32 -1, i64 0"


def _advise(pointer: str, size: str, advice: str) -> str:
    """The call that advises the system on memory, where the system knows this advice."""
    number = getattr(mmap, advice, None)
    return "" if number is None else f"call i32 @madvise(ptr {pointer}, i64 {size}, i32 {number})"


TEXT = f"""@jk_pool_slots = internal global [{SLOTS} x ptr] zeroinitializer, align 64
@jk_pool_bytes = global i64 0
@jk_pool_purged = internal global i64 0
@{LIMIT} = global i64 {MAX_POOLED_BYTES}
@{DECAY} = global i64 {DECAY_SECONDS}
@{HOOKS[0]} = global ptr null
@{HOOKS[1]} = global ptr null
{_DECLARED}define internal i64 @first_slot() alwaysinline nounwind {{
  %thread = call i64 @pthread_self()
  %mixed = mul i64 %thread, -7046029254386353131
  %first = lshr i64 %mixed, {64 - SLOTS.bit_length() + 1}
  ret i64 %first
}}
define internal ptr @slot_of(i64 %first.slot, i64 %i) alwaysinline nounwind {{
  %sum = add i64 %first.slot, %i
  %number = and i64 %sum, {SLOTS - 1}
  %at = getelementptr ptr, ptr @jk_pool_slots, i64 %number
  ret ptr %at
}}
define internal void @unmap(ptr %piece) noinline nounwind {{
  %size = load i64, ptr %piece
  atomicrmw sub ptr @jk_pool_bytes, i64 %size monotonic
  call i32 @munmap(ptr %piece, i64 %size)
  ret void
}}
define internal ptr @map(i64 %size) noinline nounwind {{
  %made = call ptr @mmap(ptr null, i64 %size, {_MODES})
  %address = ptrtoint ptr %made to i64
  %failed = icmp eq i64 %address, -1
  %found = select i1 %failed, ptr null, ptr %made
  ret ptr %found
}}
define internal ptr @new_piece(i64 %bytes) noinline nounwind {{
start:
  %more = add i64 %bytes, {mmap.PAGESIZE - 1}
  %size = and i64 %more, {-mmap.PAGESIZE}
  %before = atomicrmw add ptr @jk_pool_bytes, i64 %size monotonic
  %held = add i64 %before, %size
  %limit = load i64, ptr @{LIMIT}
  %much = icmp ugt i64 %held, %limit
  br i1 %much, label %make.room, label %map
make.room:
  call i64 @entry()
  br label %map
map:
  %first = call ptr @map(i64 %size)
  %short = icmp eq ptr %first, null
  br i1 %short, label %again, label %note
again:
  call i64 @entry()
  %second = call ptr @map(i64 %size)
  %failed = icmp eq ptr %second, null
  br i1 %failed, label %none, label %note
none:
  atomicrmw sub ptr @jk_pool_bytes, i64 %size monotonic
  ret ptr null
note:
  %piece = phi ptr [ %first, %map ], [ %second, %again ]
  %huge = icmp uge i64 %size, {2 * HUGE_PAGE_BYTES}
  br i1 %huge, label %advise, label %made
advise:
  {_advise("%piece", "%size", "MADV_HUGEPAGE")}
  br label %made
made:
  store i64 %size, ptr %piece
  ret ptr %piece
}}
define i64 @entry() noinline nounwind {{
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %freed = phi i64 [ 0, %start ], [ %freed.next, %next ]
  %on = icmp ult i64 %i, {SLOTS}
  br i1 %on, label %see, label %done
see:
  %at = getelementptr ptr, ptr @jk_pool_slots, i64 %i
  %piece = atomicrmw xchg ptr %at, ptr null acq_rel
  %none = icmp eq ptr %piece, null
  br i1 %none, label %next, label %free
free:
  %size = load i64, ptr %piece
  %freed.more = add i64 %freed, %size
  call void @unmap(ptr %piece)
  br label %next
next:
  %freed.next = phi i64 [ %freed, %see ], [ %freed.more, %free ]
  %i.next = add i64 %i, 1
  br label %look
done:
  ret i64 %freed
}}
define internal void @purge(i64 %now) noinline nounwind {{
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %on = icmp ult i64 %i, {SLOTS}
  br i1 %on, label %see, label %done
see:
  %at = getelementptr ptr, ptr @jk_pool_slots, i64 %i
  %candidate = load atomic ptr, ptr %at monotonic, align 8
  %none = icmp eq ptr %candidate, null
  br i1 %none, label %next, label %take
take:
  %piece = atomicrmw xchg ptr %at, ptr null acq_rel
  %gone = icmp eq ptr %piece, null
  br i1 %gone, label %next, label %age
age:
  %size = load i64, ptr %piece
  %freed.at = getelementptr i64, ptr %piece, i64 1
  %freed = load i64, ptr %freed.at
  %idle = sub i64 %now, %freed
  %decay = load i64, ptr @{DECAY}
  %is.old = icmp sge i64 %idle, %decay
  %is.resident = icmp ne i64 %freed, 0
  %is.large = icmp uge i64 %size, {2 * HUGE_PAGE_BYTES}
  %old.resident = and i1 %is.old, %is.resident
  %marks = and i1 %old.resident, %is.large
  br i1 %marks, label %mark, label %put
mark:
  %rest = getelementptr i8, ptr %piece, i64 {HUGE_PAGE_BYTES}
  %rest.size = sub i64 %size, {HUGE_PAGE_BYTES}
  {_advise("%rest", "%rest.size", "MADV_FREE")}
  store i64 0, ptr %freed.at
  br label %put
put:
  %pair = cmpxchg ptr %at, ptr null, ptr %piece acq_rel monotonic
  %is.back = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %is.back, label %next, label %release
release:
  call void @unmap(ptr %piece)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %look
done:
  ret void
}}
define ptr @{ALLOCATE}(i64 %bytes) nounwind {{
start:
  %other = load ptr, ptr @{HOOKS[0]}
  %own = icmp eq ptr %other, null
  br i1 %own, label %begin, label %instead, !prof !9
instead:
  %hooked = call ptr %other(i64 %bytes)
  ret ptr %hooked
begin:
  %first.slot = call i64 @first_slot()
  br label %look
look:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %on = icmp ult i64 %i, {SEARCHED_SLOTS}
  br i1 %on, label %see, label %make
see:
  %at = call ptr @slot_of(i64 %first.slot, i64 %i)
  %candidate = load atomic ptr, ptr %at monotonic, align 8
  %nothing = icmp eq ptr %candidate, null
  br i1 %nothing, label %next, label %take
take:
  %piece = atomicrmw xchg ptr %at, ptr null acq_rel
  %gone = icmp eq ptr %piece, null
  br i1 %gone, label %next, label %measure
next:
  %i.next = add i64 %i, 1
  br label %look
measure:
  %size = load i64, ptr %piece
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %compare, label %exchange
compare:
  %scaled = mul i64 %bytes, {MAX_EXCESS}
  %most = add i64 %scaled, {2 * HUGE_PAGE_BYTES}
  %is.excess = icmp ugt i64 %size, %most
  br i1 %is.excess, label %return, label %use
return:
  %pair = cmpxchg ptr %at, ptr null, ptr %piece acq_rel monotonic
  %is.back = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %is.back, label %next, label %exchange
use:
  ret ptr %piece
exchange:
  call void @unmap(ptr %piece)
  br label %make
make:
  %new = call ptr @new_piece(i64 %bytes)
  ret ptr %new
}}
define void @{RELEASE}(ptr %piece) nounwind {{
start:
  %other = load ptr, ptr @{HOOKS[1]}
  %own = icmp eq ptr %other, null
  br i1 %own, label %begin, label %instead, !prof !9
instead:
  call void %other(ptr %piece)
  ret void
begin:
  %held = load atomic i64, ptr @jk_pool_bytes monotonic, align 8
  %limit = load i64, ptr @{LIMIT}
  %much = icmp sgt i64 %held, %limit
  br i1 %much, label %free, label %keep
keep:
  %resident = icmp sle i64 %held, {RESIDENT_BYTES}
  br i1 %resident, label %find, label %decay
decay:
  %now = call i64 @time(ptr null)
  %freed.at = getelementptr i64, ptr %piece, i64 1
  store i64 %now, ptr %freed.at
  %purged = load atomic i64, ptr @jk_pool_purged monotonic, align 8
  %is.purged = icmp eq i64 %purged, %now
  br i1 %is.purged, label %find, label %purge
purge:
  store atomic i64 %now, ptr @jk_pool_purged monotonic, align 8
  call void @purge(i64 %now)
  br label %find
find:
  %first.slot = call i64 @first_slot()
  br label %look
look:
  %i = phi i64 [ 0, %find ], [ %i.next, %next ]
  %on = icmp ult i64 %i, {SEARCHED_SLOTS}
  br i1 %on, label %put, label %free
put:
  %at = call ptr @slot_of(i64 %first.slot, i64 %i)
  %put.pair = cmpxchg ptr %at, ptr null, ptr %piece acq_rel monotonic
  %is.pooled = extractvalue {{ ptr, i1 }} %put.pair, 1
  br i1 %is.pooled, label %done, label %next
next:
  %i.next = add i64 %i, 1
  br label %look
free:
  call void @unmap(ptr %piece)
  br label %done
done:
  ret void
}}
define ptr @{EMPTY_ARRAY}(i32 %dimensions, ptr %shape, ptr %dtype, i32 %order) nounwind {{
start:
  %first = call ptr @PyArray_Empty(i32 %dimensions, ptr %shape, ptr %dtype, i32 %order)
  %short = icmp eq ptr %first, null
  br i1 %short, label %again, label %done, !prof !8
again:
  call void @PyErr_Clear()
  call i64 @entry()
  call void @Py_IncRef(ptr %dtype)
  %second = call ptr @PyArray_Empty(i32 %dimensions, ptr %shape, ptr %dtype, i32 %order)
  ret ptr %second
done:
  ret ptr %first
}}
!8 = !{{!"branch_weights", i32 1, i32 1000}}
!9 = !{{!"branch_weights", i32 1000, i32 1}}
"""


@functools.cache
def source() -> IRSource:
    """The table of pieces, and the functions that allocate and free them; its entry releases all cached ones."""
    own = tuple(External(name, "void", (), functools.partial(symbol_address, name)) for name in _SYSTEM)
    python = tuple(external for external in c_api.externals() if external.symbol in _PYTHON)
    return IRSource("arenas", f"{LIGHT_PIPELINE}{TEXT}", (*own, *python))


@functools.cache
def _addresses() -> dict[str, int]:
    result = loader.functions_of(source(), (ALLOCATE, RELEASE, EMPTY_ARRAY, "jk_pool_bytes", LIMIT, DECAY, *HOOKS))
    loader.keep_for_good(source())
    result["release"] = loader.address_of(source())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    return result


def _after_fork() -> None:
    """Release the cached pieces, and forget those of other threads, which do not exist here."""
    release()
    _word("jk_pool_bytes").value = 0


def _word(name: str) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(_addresses()[name])


def externals() -> tuple[External, ...]:
    """The external functions of calls."""
    return tuple(
        External(name, "void", (), lambda name=name: _addresses()[name])  # type: ignore[misc]
        for name in (ALLOCATE, RELEASE, EMPTY_ARRAY)
    )


def memory() -> tuple[External, ...]:
    """Those that allocate and free."""
    return tuple(external for external in externals() if external.symbol in (ALLOCATE, RELEASE))


def release() -> int:
    """Release all cached pieces; return their bytes. Pieces in use are cached again when they are freed."""
    if not _addresses.cache_info().currsize:
        return 0
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_addresses()["release"])())


def pooled_bytes() -> int:
    """The bytes of all pieces, cached or in use."""
    return _word("jk_pool_bytes").value if _addresses.cache_info().currsize else 0


def limit_pool(most: int) -> None:
    """Change the most bytes of all pieces, above which none is cached."""
    _word(LIMIT).value = most


def decay_after(seconds: int) -> None:
    """Change the time after which the pages of cached pieces are marked as free."""
    _word(DECAY).value = seconds


def hook(allocate: int, free: int) -> None:
    """Replace the allocator by hooks, ``ptr (i64 bytes)`` and ``void (ptr)``; 0 restores it."""
    for name, function in zip(HOOKS, (allocate, free), strict=True):
        _word(name).value = function
