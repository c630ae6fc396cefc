"""Kernels that hand rows of their result on while these are in the cache: what reads them is called band by band.

Such a kernel takes two more integers behind its own: the address of a function ``void after(ptr context, int64 begin,
int64 end)``, and its context. Each row is handed on once, when nothing is left to be done for it, on the thread that
computed it.
"""

from jitkernels.native.source import IRFunction

FOLLOWED = ("int64", "int64")
"""C types of the arguments ``after, context``."""

call_after = IRFunction(
    "call_after",
    "void",
    ("int64",) * 4,
    """define void @call_after(i64 %after, i64 %context, i64 %begin, i64 %end) alwaysinline nounwind {
  %function = inttoptr i64 %after to ptr
  %given = inttoptr i64 %context to ptr
  call void %function(ptr %given, i64 %begin, i64 %end)
  ret void
}
""",
)
