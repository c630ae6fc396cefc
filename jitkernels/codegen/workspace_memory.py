"""Memory of kernels' workspaces, as LLVM IR: on the stack, cached in slots, or heap blocks that know their size.

Large blocks come from the workspace allocator (`runtime.workspace_allocator`), which caches them in huge pages: fresh
pages of the system take as long as what is computed in them, and where pages are small, each other access misses the
translation lookaside buffer (TLB). Small ones come from the C library.
"""

SLOTS = 64
"""Workspaces that an object caches. A part finds its slot by its number or by its stack address."""
STACK_BYTES = 40960
"""Bytes of the largest workspace on the stack, which costs nothing and cannot fail."""
SIZED = -1
"""A workspace of dynamic size, which ``i64 @needed(integer arguments, begin, end)`` returns."""
LARGE_BYTES = 1 << 20
"""Bytes of the largest block that comes from the C library."""
HEADER_BYTES = 64
"""Bytes in front of what a caller may use, the first word of which is the size of the block."""
HUGE_PAGE_BYTES = 1 << 21
"""Large blocks are multiples of a huge page: a rest in small pages would have more conflicts in the caches."""

HEAP_TEXT = f"""declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @jk_pool_allocate(i64)
declare void @jk_pool_release(ptr)
define linkonce_odr ptr @jk_heap_block(i64 %bytes) noinline nounwind {{
start:
  %large = icmp sgt i64 %bytes, {LARGE_BYTES}
  br i1 %large, label %pool, label %library
pool:
  %more = add i64 %bytes, {HUGE_PAGE_BYTES - 1}
  %pages = and i64 %more, {-HUGE_PAGE_BYTES}
  %piece = call ptr @jk_pool_allocate(i64 %pages)
  ret ptr %piece
library:
  %made = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %none = icmp eq ptr %made, null
  br i1 %none, label %failed, label %mark
failed:
  ret ptr null
mark:
  store i64 %bytes, ptr %made
  ret ptr %made
}}
define linkonce_odr void @jk_heap_release(ptr %block) noinline nounwind {{
start:
  %bytes = load i64, ptr %block
  %large = icmp sgt i64 %bytes, {LARGE_BYTES}
  br i1 %large, label %pool, label %library
pool:
  call void @jk_pool_release(ptr %block)
  ret void
library:
  call void @free(ptr %block)
  ret void
}}
"""
"""``@jk_heap_block`` makes a block of so many bytes, a multiple of 64, header and all, or returns null;
``@jk_heap_release`` frees one."""


def part(names: list[str], workspace: int, no_memory: int, body: str) -> list[str]:
    """``@part``: run the body on begin..end with workspace `slot`.

    A small workspace lies on the stack. A large one is taken from its slot by an atomic exchange, so that two Python
    threads inside one entry never share it: the second finds null and allocates its own, and the later one to finish
    frees.
    """
    passed = ", ".join(names)
    if not workspace:
        return [
            f"define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{",
            f"  %status = call i64 {body}({passed}, i64 %begin, i64 %end)",
            "  ret i64 %status",
            "}",
        ]
    if workspace == SIZED or workspace > LARGE_BYTES:
        needed = f"call i64 @needed({', '.join([*integers(names), 'i64 %begin', 'i64 %end'])})"
        return _sized_part(passed, needed if workspace == SIZED else f"add i64 {workspace}, 0", no_memory, body)
    if workspace <= STACK_BYTES:
        return [
            f"define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{",
            f"  %area = alloca [{workspace} x i8], align 64",
            f"  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)",
            "  ret i64 %status",
            "}",
        ]
    return f"""@slots = internal global [{SLOTS} x ptr] zeroinitializer
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{
start:
  %wrapped = urem i64 %slot, {SLOTS}
  %place = getelementptr ptr, ptr @slots, i64 %wrapped
  %kept = atomicrmw xchg ptr %place, ptr null acq_rel
  %missing = icmp eq ptr %kept, null
  br i1 %missing, label %allocate, label %use
allocate:
  %fresh = call ptr @aligned_alloc(i64 64, i64 {-(-workspace // 64) * 64})
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %refuse, label %use
refuse:
  ret i64 {no_memory}
use:
  %area = phi ptr [ %kept, %start ], [ %fresh, %allocate ]
  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)
  %other = atomicrmw xchg ptr %place, ptr %area acq_rel
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %done, label %drop
drop:
  call void @free(ptr %other)
  br label %done
done:
  ret i64 %status
}}""".splitlines()


def integers(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument.startswith("i64")]


def _sized_part(passed: str, needed: str, no_memory: int, body: str) -> list[str]:
    """The same of a size that is `needed`: a block too small is replaced, and a large one is not cached here."""
    return f"""@slots = internal global [{SLOTS} x ptr] zeroinitializer
{HEAP_TEXT}define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{
start:
  %wanted = {needed}
  %padded = add i64 %wanted, {HEADER_BYTES + 63}
  %bytes = and i64 %padded, -64
  %wrapped = urem i64 %slot, {SLOTS}
  %place = getelementptr ptr, ptr @slots, i64 %wrapped
  %kept = atomicrmw xchg ptr %place, ptr null acq_rel
  %missing = icmp eq ptr %kept, null
  br i1 %missing, label %allocate, label %measure
measure:
  %room = load i64, ptr %kept
  %fits = icmp sge i64 %room, %bytes
  br i1 %fits, label %use, label %exchange
exchange:
  call void @jk_heap_release(ptr %kept)
  br label %allocate
allocate:
  %fresh = call ptr @jk_heap_block(i64 %bytes)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %refuse, label %use
refuse:
  ret i64 {no_memory}
use:
  %whole = phi ptr [ %kept, %measure ], [ %fresh, %allocate ]
  %area = getelementptr i8, ptr %whole, i64 {HEADER_BYTES}
  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)
  %size = load i64, ptr %whole
  %large = icmp sgt i64 %size, {LARGE_BYTES}
  br i1 %large, label %drop, label %keep
keep:
  %other = atomicrmw xchg ptr %place, ptr %whole acq_rel
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %done, label %drop
drop:
  %dropped = phi ptr [ %whole, %use ], [ %other, %keep ]
  call void @jk_heap_release(ptr %dropped)
  br label %done
done:
  ret i64 %status
}}""".splitlines()
