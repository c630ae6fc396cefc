"""Parallel regions: how many threads they get, which OpenMP has a say in, and what nests link to.

Generated code asks ``jk_team`` at each call how many threads it gets, so ``set_num_threads``,
``OMP_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` are all obeyed at once: the smallest wins. The threads
themselves are our own (`jitkernels.native.pool`); where there are none, everything runs on one. A forked child of a
process that has had a parallel region stays on one thread, because the fork did not copy them.
A kernel that is called from inside a parallel region of OpenMP runs on its caller's thread; inside of ours it gets
those that have nothing to do.
Of floating-point operations that fail, the processor tells the thread; `jk_parallel` tells its caller what all threads
of its region were told.
"""

import ctypes
import functools
import os
import sys
from pathlib import Path

from jitkernels import machine
from jitkernels.native import load, phases, pool, processor_flags, sharing, threads
from jitkernels.native.ir import HASTY, STRAIGHT, IRSource
from jitkernels.native.source import External

SHARE = "jk_share"
SHARE_RUN, SHARE_ROUNDS = "jk_share_run", "jk_share_rounds"
SHARED = (SHARE, "jk_team", "jk_parallel", SHARE_RUN, SHARE_ROUNDS)
"""What code that may use threads calls."""
COUNTS = ("omp_get_max_threads", "omp_in_parallel")
NAMES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so")

_used = ctypes.c_int64(0)
"""Whether this process has had a parallel region: generated code sets it."""
_cores = ctypes.c_int64(1)
"""Threads that there are at least for all callers together."""

WITH_OPENMP = """
@jk_limit = external global i64
declare i32 @omp_get_max_threads()
declare i32 @omp_in_parallel()
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
"""

WITHOUT_OPENMP = """
@jk_limit = external global i64
define i64 @jk_team(i64 %wanted) {
  %limit = load atomic i64, ptr @jk_limit monotonic, align 8
  %team = call i64 @llvm.smin.i64(i64 %limit, i64 %wanted)
  ret i64 %team
}
"""

ALONE = """
define i64 @jk_team(i64 %wanted) {
  ret i64 1
}
define void @jk_parallel(ptr %region, ptr %shared, i64 %team, i64 %parts) {
  call void %region(ptr %shared, i64 0, i64 1)
  ret void
}
"""


@functools.cache
def runtime() -> tuple[ctypes.CDLL | None, str]:
    """The OpenMP runtime and where it came from, or None and the reason why there is none."""
    places = [str(Path(sys.prefix) / "lib" / "libiomp5.so")]
    for name in (*NAMES, *places):
        try:
            library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            library.omp_get_max_threads  # noqa: B018  # looked up for its AttributeError
            return library, name
        except (OSError, AttributeError):
            continue
    return None, f"none of {', '.join(NAMES)} can be loaded, whose limits would be obeyed"


def has_threads() -> bool:
    """Whether there are the semaphores of POSIX that threads wait in."""
    return sys.platform.startswith("linux")


def _function(name: str) -> int:
    library, _ = runtime()
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0 if library else 0


def _libc(name: str) -> int:
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


def runtime_sources() -> tuple[IRSource, ...]:
    """The code of the threads where there is OpenMP and where there is none: what is built here may run elsewhere."""
    return (_source(True), _source(False)) if has_threads() else (_runtime_source(),)


def _runtime_source() -> IRSource:
    if not has_threads():
        return alone_source()
    return _source(runtime()[0] is not None)


def alone_source() -> IRSource:
    """What does it all on the caller's thread, and needs nothing."""
    return IRSource("threads", f"{STRAIGHT}{ALONE}{sharing.ALONE}")


def _source(has_openmp: bool) -> IRSource:
    target = machine.target()
    needed = (
        External("jk_limit", "int64", (), lambda: ctypes.addressof(threads.limit)),
        External("jk_used", "int64", (), lambda: ctypes.addressof(_used)),
        External("jk_cores", "int64", (), lambda: ctypes.addressof(_cores)),
        *(External(name, "int32", (), functools.partial(_function, name)) for name in COUNTS if has_openmp),
        *(External(name, "int32", (), functools.partial(_libc, name)) for name in pool.FUNCTIONS),
    )
    written = (
        WITH_OPENMP if has_openmp else WITHOUT_OPENMP,
        sharing.AMONG_THREADS,
        phases.TEXT,
        pool.text(is_x86=target.is_x86, is_arm=target.is_arm),
        processor_flags.text(),
    )
    # Threads wait most of the time, and a call without them takes a dozen of these instructions.
    return IRSource("threads", f"{HASTY}{''.join(written)}", needed)


@functools.cache
def _addresses() -> dict[str, int]:
    """Addresses of the functions that loop nests call."""
    own = SHARED[1:]
    if not has_threads():
        return load.functions_of(_runtime_source(), own)
    threads.apply()
    _cores.value = machine.cpu_count()
    found = load.functions_of(_runtime_source(), own)
    load.keep_for_good(_runtime_source())  # threads are in this code when the interpreter ends
    os.register_at_fork(after_in_child=_after_fork)
    return found


def _after_fork() -> None:
    if _used.value:
        threads.stay_alone()


def externals() -> tuple[External, ...]:
    """What a parallel loop nest links to."""
    return (
        External("jk_team", "int64", ("int64",), lambda: _addresses()["jk_team"]),
        External(
            "jk_parallel", "void", ("void*", "void*", "int64", "int64"), lambda: _addresses()["jk_parallel"]
        ),
    )


def _share() -> int:
    _addresses()
    return load.address_of(_runtime_source())


def sharing_function() -> External:
    """What shares the steps of one loop, see `sharing`."""
    return External(SHARE, "int64", ("void*", "void*", "int64", "int64", "int64"), _share)


def run_function() -> External:
    """What shares the steps of several loops in one region, see `sharing`."""
    return External(SHARE_RUN, "int64", ("void*", "void*", "int64"), lambda: _addresses()[SHARE_RUN])


def rounds_function() -> External:
    """What shares rounds that may take long, see `sharing`."""
    given = ("void*", "void*", "int64", "int64", "void*")
    return External(SHARE_ROUNDS, "int64", given, lambda: _addresses()[SHARE_ROUNDS])
