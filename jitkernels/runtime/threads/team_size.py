"""Team sizes of parallel regions, limited by OpenMP's settings too, and the functions that parallel code links to.

Generated code calls ``jk_team`` at each call for its number of threads, so ``set_num_threads``, ``OMP_NUM_THREADS``
and ``threadpoolctl.threadpool_limits`` take effect at once: the smallest wins. The threads are our own
(`jitkernels.runtime.threads.thread_pool`), or those of the OpenMP runtime where `share_openmp_threads` was called;
without them everything runs on one thread. A forked child of a process
that has had a parallel region stays on one thread, because fork does not copy threads.

A kernel that is called inside a parallel region of OpenMP runs on its caller's thread; inside of ours it gets idle
helpers.

Floating-point flags are per thread; `jk_parallel` merges the flags of its region's threads into its caller's.
"""

import ctypes
import functools
import os
import sys
from pathlib import Path

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, UNOPTIMIZED, IRSource
from jitkernels.codegen.source_protocol import External
from jitkernels.core import cpu_target
from jitkernels.core.c_symbols import symbol_address
from jitkernels.runtime import fp_status
from jitkernels.runtime.loading import loader
from jitkernels.runtime.threads import num_threads, parallel_for, parallel_phases, thread_pool

SHARE = "jk_share"
SHARE_RUN, SHARE_ROUNDS = "jk_share_run", "jk_share_rounds"
SHARED = (SHARE, "jk_team", "jk_parallel", SHARE_RUN, SHARE_ROUNDS)
"""The functions that parallel code calls."""
COUNTS = ("omp_get_max_threads", "omp_in_parallel")
OPENMP_REGION = ("GOMP_parallel", "omp_get_thread_num")
"""What runs a parallel region on an OpenMP runtime's threads, and tells them apart."""
NAMES = ("libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so")

_used = ctypes.c_int64(0)
"""Nonzero once this process has had a parallel region: generated code sets it."""
_cores = ctypes.c_int64(1)
"""The least number of threads for all callers together."""
_openmp = (ctypes.c_void_p * 2)()
"""The addresses of ``GOMP_parallel`` and ``omp_get_thread_num`` of a runtime whose threads are used, or null."""

TEAM_WITH_OPENMP = """
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

TEAM_WITHOUT_OPENMP = """
@jk_limit = external global i64
define i64 @jk_team(i64 %wanted) {
  %limit = load atomic i64, ptr @jk_limit monotonic, align 8
  %team = call i64 @llvm.smin.i64(i64 %limit, i64 %wanted)
  ret i64 %team
}
"""

SERIAL_TEAM_IR = """
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
    """The OpenMP runtime and its path, or None and the reason why there is none."""
    paths = [str(Path(sys.prefix) / "lib" / "libiomp5.so")]
    for name in (*NAMES, *paths):
        try:
            library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            library.omp_get_max_threads  # noqa: B018  # looked up for its AttributeError
            return library, name
        except (OSError, AttributeError):
            continue
    return None, f"no OpenMP runtime whose limits apply: none of {', '.join(NAMES)} can be loaded"


def has_threads() -> bool:
    """Return whether POSIX semaphores, in which threads sleep, are available."""
    return sys.platform.startswith("linux")


def _function(name: str) -> int:
    library, _ = runtime()
    return symbol_address(name, library) if library else 0


def runtime_sources() -> tuple[IRSource, ...]:
    """The thread runtime with OpenMP and without: archives built here may be used elsewhere."""
    return (_source(True), _source(False)) if has_threads() else (_runtime_source(),)


def _runtime_source() -> IRSource:
    if not has_threads():
        return alone_source()
    return _source(runtime()[0] is not None)


def alone_source() -> IRSource:
    """The serial runtime, which runs everything on the caller's thread."""
    return IRSource("threads", f"{LIGHT_PIPELINE}{SERIAL_TEAM_IR}{parallel_for.ALONE}")


def _source(has_openmp: bool) -> IRSource:
    target = cpu_target.target()
    needed = (
        External("jk_limit", "int64", (), lambda: ctypes.addressof(num_threads.limit)),
        External("jk_used", "int64", (), lambda: ctypes.addressof(_used)),
        External("jk_cores", "int64", (), lambda: ctypes.addressof(_cores)),
        External("jk_openmp", "int64", (), lambda: ctypes.addressof(_openmp)),
        *(External(name, "int32", (), functools.partial(_function, name)) for name in COUNTS if has_openmp),
        *(External(name, "int32", (), functools.partial(symbol_address, name)) for name in thread_pool.FUNCTIONS),
    )
    written = (
        TEAM_WITH_OPENMP if has_openmp else TEAM_WITHOUT_OPENMP,
        parallel_for.AMONG_THREADS,
        parallel_phases.TEXT,
        thread_pool.text(is_x86=target.is_x86, is_arm=target.is_arm),
        fp_status.text(),
    )
    # Threads mostly wait, and a serial call executes a dozen of these instructions.
    return IRSource("threads", f"{UNOPTIMIZED}{''.join(written)}", needed)


@functools.cache
def _addresses() -> dict[str, int]:
    """Addresses of the functions that range kernels call."""
    own = SHARED[1:]
    if not has_threads():
        return loader.functions_of(_runtime_source(), own)
    num_threads.apply()
    _cores.value = cpu_target.cpu_count()
    result = loader.functions_of(_runtime_source(), own)
    loader.keep_for_good(_runtime_source())  # helper threads run this code when the interpreter exits
    os.register_at_fork(after_in_child=_after_fork)
    return result


def share_openmp_threads() -> bool:
    """Run parallel regions on the threads of the OpenMP runtime from now on; return whether there is one.

    For programs that have such regions of their own, whose threads spin between them and take the cores of ours.
    GNU's runtime has these functions, and LLVM's and Intel's for programs that GCC has compiled. A forked child goes
    back to our threads: it has none of the runtime's.
    """
    library, _ = runtime()
    if library is None or not has_threads():
        return False
    try:
        addresses = [symbol_address(name, library) for name in OPENMP_REGION]
    except AttributeError:
        return False
    _addresses()  # registers what is to be done after forks
    _openmp[1], _openmp[0] = addresses[1], addresses[0]  # the first one is tested
    return True


def _after_fork() -> None:
    _openmp[0] = None
    if _used.value:
        num_threads.force_single_thread()


def externals() -> tuple[External, ...]:
    """The external functions of a parallel range kernel."""
    return (
        External("jk_team", "int64", ("int64",), lambda: _addresses()["jk_team"]),
        External("jk_parallel", "void", ("void*", "void*", "int64", "int64"), lambda: _addresses()["jk_parallel"]),
    )


def _share() -> int:
    _addresses()
    return loader.address_of(_runtime_source())


def sharing_function() -> External:
    """Parallel for, see `parallel_for`."""
    return External(SHARE, "int64", ("void*", "void*", "int64", "int64", "int64"), _share)


def run_function() -> External:
    """Several loops in one parallel region, see `parallel_for`."""
    return External(SHARE_RUN, "int64", ("void*", "void*", "int64"), lambda: _addresses()[SHARE_RUN])


def parallel_loop_function() -> External:
    """Parallel for with signal polling, see `parallel_for`."""
    arguments = ("void*", "void*", "int64", "int64", "void*")
    return External(SHARE_ROUNDS, "int64", arguments, lambda: _addresses()[SHARE_ROUNDS])
