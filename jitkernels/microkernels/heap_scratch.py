"""Heap scratch of a loop nest, whose size only the call determines."""

from jitkernels.codegen.source_protocol import IRFunction


def taken(element: str) -> IRFunction:
    """Return the function that allocates so many bytes as a pointer to elements of a C type; null on failure."""
    symbol = f"taken_{element}"
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


given_back = IRFunction(
    "given_back",
    "void",
    ("void*",),
    """declare void @free(ptr)
define void @given_back(ptr %memory) noinline nounwind {
  call void @free(ptr %memory)
  ret void
}
""",
)
"""Free the scratch."""

is_nothing = IRFunction(
    "is_nothing",
    "int64",
    ("void*",),
    """define i64 @is_nothing(ptr %memory) alwaysinline nounwind {
  %none = icmp eq ptr %memory, null
  %found = zext i1 %none to i64
  ret i64 %found
}
""",
)
"""Whether the pointer is null: the allocation failed."""
