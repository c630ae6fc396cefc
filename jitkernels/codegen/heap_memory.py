"""Memory of kernels whose size only the call determines, as LLVM IR: blocks that know their size.

Large blocks come from the workspace allocator (`runtime.workspace_allocator`), which caches them in huge pages: fresh
pages of the system take as long as what is computed in them, and where pages are small, each other access misses the
translation lookaside buffer (TLB). Small ones come from the C library.
"""

LARGE_BYTES = 1 << 20
"""Bytes of the largest block that comes from the C library."""
HEADER_BYTES = 64
"""Bytes in front of what a caller may use, the first word of which is the size of the block."""
HUGE_PAGE_BYTES = 1 << 21
"""Large blocks are multiples of a huge page: a rest in small pages would have more conflicts in the caches."""

TEXT = f"""declare ptr @aligned_alloc(i64, i64)
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
