"""Parallel regions: one OpenMP runtime, shared with whatever else in the process uses it.

Generated code asks ``jk_team`` at each call how many threads it gets, so ``set_num_threads``,
``OMP_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` are all obeyed at once: the smallest wins.
Without a runtime everything runs on one thread. A forked child of a process that has had a parallel region
stays on one thread, because the OpenMP runtime would wait there for threads that the fork did not copy.
A kernel that is called from inside a parallel region, ours or another's, runs on its caller's thread.
Of floating-point operations that fail, the processor tells the thread; `jk_parallel` tells its caller what all threads
of its region were told.
"""

import ctypes
import functools
import os
import sys
from pathlib import Path

from jitkernels.native import load, processor_flags, sharing, threads
from jitkernels.native.codegen import STRAIGHT, IRSource
from jitkernels.native.source import External

COUNTS = ("omp_get_max_threads", "omp_in_parallel", "omp_get_thread_num", "omp_get_num_threads")
NAMES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so")

_used = ctypes.c_int64(0)
"""Whether this process has had a parallel region: generated code sets it."""

WITH_OPENMP = """
@jk_limit = external global i64
@jk_used = external global i64
declare i32 @omp_get_max_threads()
declare i32 @omp_in_parallel()
declare void @GOMP_parallel(ptr, ptr, i32, i32)
define i64 @jk_team(i64 %wanted) {
start:
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %one, label %ask
one:
  ret i64 1
ask:
  %limit = load atomic i64, ptr @jk_limit monotonic, align 8
  %single = icmp slt i64 %limit, 2
  br i1 %single, label %one, label %runtime
runtime:
  %inside = call i32 @omp_in_parallel()
  %nested = icmp ne i32 %inside, 0
  br i1 %nested, label %one, label %count
count:
  %most32 = call i32 @omp_get_max_threads()
  %most = sext i32 %most32 to i64
  %a = call i64 @llvm.smin.i64(i64 %limit, i64 %most)
  %b = call i64 @llvm.smin.i64(i64 %a, i64 %wanted)
  ret i64 %b
}
define void @jk_parallel(ptr %region, ptr %shared, i64 %team) {
  store atomic i64 1, ptr @jk_used monotonic, align 8
  %team32 = trunc i64 %team to i32
  %given = alloca { ptr, ptr, i32 }
  %at1 = getelementptr { ptr, ptr, i32 }, ptr %given, i32 0, i32 1
  %at2 = getelementptr { ptr, ptr, i32 }, ptr %given, i32 0, i32 2
  store ptr %region, ptr %given
  store ptr %shared, ptr %at1
  store i32 0, ptr %at2
  call void @GOMP_parallel(ptr @in_thread, ptr %given, i32 %team32, i32 0)
  %failures = load i32, ptr %at2
  %before = call i32 @flags_now()
  %all = or i32 %before, %failures
  call void @flags_become(i32 %all)
  ret void
}
define internal void @in_thread(ptr %given) {
  %at1 = getelementptr { ptr, ptr, i32 }, ptr %given, i32 0, i32 1
  %at2 = getelementptr { ptr, ptr, i32 }, ptr %given, i32 0, i32 2
  %region = load ptr, ptr %given
  %shared = load ptr, ptr %at1
  %before = call i32 @flags_now()
  call void @flags_become(i32 0)
  call void %region(ptr %shared)
  %failures = call i32 @flags_now()
  atomicrmw or ptr %at2, i32 %failures monotonic
  call void @flags_become(i32 %before)
  ret void
}
"""

WITHOUT_OPENMP = """
define i64 @jk_team(i64 %wanted) {
  ret i64 1
}
define void @jk_parallel(ptr %region, ptr %shared, i64 %team) {
  call void %region(ptr %shared)
  ret void
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
"""


@functools.cache
def runtime() -> tuple[ctypes.CDLL | None, str]:
    """The OpenMP runtime and where it came from, or None and the reason why there is none."""
    places = [str(Path(sys.prefix) / "lib" / "libiomp5.so")]
    for name in (*NAMES, *places):
        try:
            library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            library.GOMP_parallel  # noqa: B018  # looked up for its AttributeError
            return library, name
        except (OSError, AttributeError):
            continue
    return None, f"none of {', '.join(NAMES)} can be loaded: kernels run on one thread"


def _function(name: str) -> int:
    library, _ = runtime()
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0 if library else 0


def _runtime_source() -> IRSource:
    if runtime()[0] is None:
        return IRSource("threads", f"{STRAIGHT}{WITHOUT_OPENMP}{sharing.ALONE}")
    needed = (
        External("jk_limit", "int64", (), lambda: ctypes.addressof(threads.limit)),
        External("jk_used", "int64", (), lambda: ctypes.addressof(_used)),
        *(External(name, "int32", (), functools.partial(_function, name)) for name in COUNTS),
        External(
            "GOMP_parallel", "void", ("void*", "void*", "int32", "int32"), lambda: _function("GOMP_parallel")
        ),
    )
    return IRSource(
        "threads", f"{STRAIGHT}{WITH_OPENMP}{sharing.AMONG_THREADS}{processor_flags.text()}", needed
    )


@functools.cache
def _addresses() -> dict[str, int]:
    """Addresses of the functions that loop nests call."""
    own, provided = ("jk_team", "jk_parallel"), ("omp_get_thread_num", "omp_get_num_threads")
    if runtime()[0] is None:
        return load.functions_of(_runtime_source(), (*own, *provided))
    threads.apply()
    found = load.functions_of(_runtime_source(), own) | {name: _function(name) for name in provided}
    os.register_at_fork(after_in_child=_after_fork)
    return found


def _after_fork() -> None:
    if _used.value:
        threads.stay_alone()


def externals() -> tuple[External, ...]:
    """What a parallel loop nest links to."""
    return (
        External("jk_team", "int64", ("int64",), lambda: _addresses()["jk_team"]),
        External("jk_parallel", "void", ("void*", "void*", "int64"), lambda: _addresses()["jk_parallel"]),
        External("omp_get_thread_num", "int32", (), lambda: _addresses()["omp_get_thread_num"]),
        External("omp_get_num_threads", "int32", (), lambda: _addresses()["omp_get_num_threads"]),
    )


def _share() -> int:
    _addresses()
    return load.address_of(_runtime_source())


def sharing_function() -> External:
    """``i64 @jk_share(ptr data, ptr function, i64 extent, i64 work)``: `function(data, begin, end)` by threads."""
    return External("jk_share", "int64", ("void*", "void*", "int64", "int64"), _share)
