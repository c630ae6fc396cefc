"""Floating-point status flags of the processor: sticky bits, one per kind of error.

Each thread has its own flags. Generated code reads the calling thread's; those of other threads are merged into them
at the end of a parallel region. NumPy clears the flags before each of its loops. On unknown processors ``flags_now``
returns 0.
"""

import ctypes
import functools
import operator
from collections.abc import Iterable

from jitkernels.codegen.ir_source import IRSource
from jitkernels.core import cpu_target
from jitkernels.runtime.loading import loader

_X86_FP_FLAGS = """declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i32 @flags_now() alwaysinline nounwind {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at
  %found = and i32 %all, MASK
  ret i32 %found
}
define internal void @flags_become(i32 %flags) noinline nounwind {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at
  %others = and i32 %all, NOT_MASK
  %new = or i32 %others, %flags
  store i32 %new, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""
_ARM_FP_FLAGS = """declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)
define internal i32 @flags_now() alwaysinline nounwind {
  %all = call i64 @llvm.aarch64.get.fpsr()
  %short = trunc i64 %all to i32
  %found = and i32 %short, MASK
  ret i32 %found
}
define internal void @flags_become(i32 %flags) noinline nounwind {
  %all = call i64 @llvm.aarch64.get.fpsr()
  %others = and i64 %all, NOT_MASK
  %wide = zext i32 %flags to i64
  %new = or i64 %others, %wide
  call void @llvm.aarch64.set.fpsr(i64 %new)
  ret void
}
"""
_NOTHING = """define internal i32 @flags_now() alwaysinline nounwind {
  ret i32 0
}
define internal void @flags_become(i32 %flags) alwaysinline nounwind {
  ret void
}
"""
UNDERFLOW_BITS = {_X86_FP_FLAGS: 16, _ARM_FP_FLAGS: 8, _NOTHING: 0}
"""The flag bit of underflow, by text."""


@functools.cache
def _known() -> tuple[str, dict[str, int]]:
    target = cpu_target.target()
    if target.is_arm:
        return _ARM_FP_FLAGS, {"invalid": 1, "divide": 2, "over": 4}
    if target.is_x86:
        return _X86_FP_FLAGS, {"invalid": 1, "divide": 4, "over": 8}
    return _NOTHING, {"invalid": 1, "divide": 2, "over": 4}


def text(*, with_underflow: bool = False) -> str:
    """LLVM IR of ``i32 flags_now()`` and ``void flags_become(i32)``: the kinds of `bits`, and perhaps underflow."""
    known, kinds = _known()
    underflow = UNDERFLOW_BITS[known] if with_underflow else 0
    mask = functools.reduce(operator.or_, kinds.values(), underflow)
    return known.replace("NOT_MASK", str(~mask)).replace("MASK", str(mask))


def bits() -> dict[str, int]:
    """The flag bit of each kind of error, by NumPy's name of the kind."""
    return _known()[1]


def are_kept() -> bool:
    """Return whether this processor's flags are supported."""
    return _known()[0] is not _NOTHING


@functools.cache
def kinds(flags: int) -> tuple[str, ...]:
    """NumPy's names of the errors whose flags are set."""
    return tuple(kind for kind, bit in bits().items() if flags & bit)


def flags_of(names: Iterable[str]) -> int:
    """The flags of some kinds of errors."""
    return functools.reduce(operator.or_, (bits()[name] for name in names), 0)


TAKE = """define i32 @entry() nounwind {
  %found = call i32 @flags_now()
  call void @flags_become(i32 0)
  ret i32 %found
}
"""


@functools.cache
def source() -> IRSource:
    """The function that reads and clears the flags."""
    return IRSource("flags", text() + TAKE)


@functools.cache
def _read_and_clear() -> "ctypes._CFunctionType":
    return ctypes.CFUNCTYPE(ctypes.c_int32)(loader.address_of(source()))


def take() -> int:
    """Read and clear this thread's flags."""
    result: int = _read_and_clear()()
    return result
