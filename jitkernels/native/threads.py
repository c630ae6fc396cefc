"""Threads: one OpenMP runtime, shared with whatever else in the process uses it, and how many of them to use.

Generated code asks ``jk_team`` at each call, so ``set_num_threads``, ``OMP_NUM_THREADS`` and
``threadpoolctl.threadpool_limits`` are all obeyed at once: the smallest wins. Without a runtime everything
runs on one thread. A forked child of a process that has had a parallel region stays on one thread, because
the OpenMP runtime would wait there for threads that the fork did not copy.
"""

import ctypes
import ctypes.util
import functools
import os
import sys
from pathlib import Path

from jitkernels import machine, settings
from jitkernels.disk import say_once
from jitkernels.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from jitkernels.native import codegen
from jitkernels.native.source import External

MOST = (1 << 31) - 1
"""More threads than an OpenMP runtime can count."""
NAMES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so")

WITH_OPENMP = """
@jk_limit = global i64 1
@jk_used = global i64 0
declare i32 @omp_get_max_threads()
declare void @GOMP_parallel(ptr, ptr, i32, i32)
define i64 @entry() {
  ret i64 1
}
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
  %most32 = call i32 @omp_get_max_threads()
  %most = sext i32 %most32 to i64
  %a = call i64 @llvm.smin.i64(i64 %limit, i64 %most)
  %b = call i64 @llvm.smin.i64(i64 %a, i64 %wanted)
  ret i64 %b
}
define void @jk_parallel(ptr %region, ptr %shared, i64 %team) {
  store atomic i64 1, ptr @jk_used monotonic, align 8
  %team32 = trunc i64 %team to i32
  call void @GOMP_parallel(ptr %region, ptr %shared, i32 %team32, i32 0)
  ret void
}
"""

WITHOUT_OPENMP = """
@jk_limit = global i64 1
@jk_used = global i64 0
define i64 @entry() {
  ret i64 1
}
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


def _runtime_source() -> codegen.IRSource:
    if runtime()[0] is None:
        return codegen.IRSource("threads", WITHOUT_OPENMP)
    needed = (
        External("omp_get_max_threads", "int32", (), lambda: _function("omp_get_max_threads")),
        External(
            "GOMP_parallel", "void", ("void*", "void*", "int32", "int32"), lambda: _function("GOMP_parallel")
        ),
    )
    return codegen.IRSource("threads", WITH_OPENMP, needed)


@functools.cache
def _addresses() -> dict[str, int]:
    """Addresses of the functions that loop nests call and of the variables that Python sets."""
    from jitkernels.native import load

    own = ["jk_team", "jk_parallel", "jk_limit", "jk_used"]
    provided = ("omp_get_thread_num", "omp_get_num_threads")
    if runtime()[0] is None:
        return load.functions_of(_runtime_source(), (*own, *provided))
    found = load.functions_of(_runtime_source(), tuple(own)) | {name: _function(name) for name in provided}
    _limit(found, get_num_threads())
    os.register_at_fork(after_in_child=lambda: _after_fork(found))
    return found


_single = False
"""Whether this is a forked child of a process that has had a parallel region."""


def _after_fork(found: dict[str, int]) -> None:
    global _single
    if ctypes.c_int64.from_address(found["jk_used"]).value:
        _single = True
        _limit(found, 1)


def _limit(found: dict[str, int], threads: int) -> None:
    """Tell generated code how many threads it may use."""
    ctypes.c_int64.from_address(found["jk_limit"]).value = 1 if _single else min(threads, MOST)


def externals() -> tuple[External, ...]:
    """What a parallel loop nest links to."""
    return (
        External("jk_team", "int64", ("int64",), lambda: _addresses()["jk_team"]),
        External("jk_parallel", "void", ("void*", "void*", "int64"), lambda: _addresses()["jk_parallel"]),
        External("omp_get_thread_num", "int32", (), lambda: _addresses()["omp_get_thread_num"]),
        External("omp_get_num_threads", "int32", (), lambda: _addresses()["omp_get_num_threads"]),
    )


_chosen: int | None = None


@functools.cache
def _initial() -> int:
    cores = machine.cpu_count()
    try:
        return int(settings.read("JITKERNELS_NUM_THREADS") or cores)
    except UnknownNameError as error:
        say_once("threads", f"{error}: using {cores}")
        return cores


def get_num_threads() -> int:
    """The most threads a kernel may use: `set_num_threads`, else ``JITKERNELS_NUM_THREADS``, else the cores."""
    return _chosen or _initial()


def set_num_threads(threads: int) -> None:
    """Limit kernels to so many threads, at once and for the whole process.

    A forked child of a process that has had a parallel region stays on one thread all the same.

    Raises ArgumentTypeError if `threads` is not an int, ArgumentError if it is below 1.
    """
    global _chosen
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise ArgumentTypeError(f"threads: expected an int, got {threads!r}")
    if threads < 1:
        raise ArgumentError(f"threads: expected at least 1, got {threads}")
    _chosen = threads
    if _addresses.cache_info().currsize:
        _limit(_addresses(), threads)
