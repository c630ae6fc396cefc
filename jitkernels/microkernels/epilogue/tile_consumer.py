"""Consumer callback of a GEMM: the kernel calls it with each band of finished rows while they are in the cache.

Such a kernel takes two more integers behind its own: the address of a function ``void after(ptr context, int64 begin,
int64 end)``, and its context. The kernel passes each row once, when it is final, on the thread that computed it.
"""

from jitkernels.codegen.source_protocol import IRFunction

FOLLOWED = ("int64", "int64")
"""C types of the arguments ``after, context``."""

call_consumer = IRFunction(
    "call_consumer",
    "void",
    ("int64",) * 4,
    """define void @call_consumer(i64 %after, i64 %context, i64 %begin, i64 %end) alwaysinline nounwind {
  %function = inttoptr i64 %after to ptr
  %given = inttoptr i64 %context to ptr
  call void %function(ptr %given, i64 %begin, i64 %end)
  ret void
}
""",
)
