"""Heap scratch of a range kernel, whose size only the call determines.

A kernel without a workspace of dynamic size lists `hooks.pooled_memory()` among its `calls`.
"""

from jitkernels.codegen import workspace_memory
from jitkernels.codegen.source_protocol import IRFunction


def heap_allocator(element: str) -> IRFunction:
    """Return the function that allocates so many bytes as a pointer to elements of a C type; null on failure."""
    symbol = f"heap_allocate_{element}"
    return IRFunction(
        symbol,
        f"{element}*",
        ("int64",),
        f"""{workspace_memory.HEAP_TEXT}define ptr @{symbol}(i64 %bytes) noinline nounwind {{
  %more = add i64 %bytes, {workspace_memory.HEADER_BYTES + 63}
  %whole = and i64 %more, -64
  %block = call ptr @jk_heap_block(i64 %whole)
  %none = icmp eq ptr %block, null
  %behind = getelementptr i8, ptr %block, i64 {workspace_memory.HEADER_BYTES}
  %memory = select i1 %none, ptr null, ptr %behind
  ret ptr %memory
}}
""",
    )


heap_free = IRFunction(
    "heap_free",
    "void",
    ("void*",),
    f"""{workspace_memory.HEAP_TEXT}define void @heap_free(ptr %memory) noinline nounwind {{
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %free
free:
  %block = getelementptr i8, ptr %memory, i64 -{workspace_memory.HEADER_BYTES}
  call void @jk_heap_release(ptr %block)
  br label %done
done:
  ret void
}}
""",
)
"""Free the scratch, or nothing where it is null."""

is_null = IRFunction(
    "is_null",
    "int64",
    ("void*",),
    """define i64 @is_null(ptr %memory) alwaysinline nounwind {
  %none = icmp eq ptr %memory, null
  %result = zext i1 %none to i64
  ret i64 %result
}
""",
)
"""Whether the pointer is null: the allocation failed."""
