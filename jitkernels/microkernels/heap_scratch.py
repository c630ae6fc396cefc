"""Heap scratch of a range kernel, whose size only the call determines."""

from jitkernels.codegen.source_protocol import IRFunction


def heap_allocator(element: str) -> IRFunction:
    """Return the function that allocates so many bytes as a pointer to elements of a C type; null on failure."""
    symbol = f"heap_allocate_{element}"
    return IRFunction(
        symbol,
        f"{element}*",
        ("int64",),
        f"""declare ptr @aligned_alloc(i64, i64)
define ptr @{symbol}(i64 %bytes) noinline nounwind {{
  %more = add i64 %bytes, 127
  %whole = and i64 %more, -64
  %memory = call ptr @aligned_alloc(i64 64, i64 %whole)
  ret ptr %memory
}}
""",
    )


heap_free = IRFunction(
    "heap_free",
    "void",
    ("void*",),
    """declare void @free(ptr)
define void @heap_free(ptr %memory) noinline nounwind {
  call void @free(ptr %memory)
  ret void
}
""",
)
"""Free the scratch."""

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
