"""The number of threads of kernels: settings, and the word of memory through which generated code reads it.

Generated code reads `limit` at each call, so a change takes effect at once. `jitkernels.runtime.threads.thread_pool`
has the threads.
"""

import ctypes
import functools

import numpy as np

from jitkernels.core import cpu_target, settings
from jitkernels.core.atomic_files import warn_once
from jitkernels.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from jitkernels.runtime.threads import thread_pool

MAX_THREADS = thread_pool.MAX_HELPERS + 1
"""The most threads of a team."""

limit = ctypes.c_int64(1)
"""The most threads of a parallel region, at a fixed address: `apply` sets it."""

_chosen: int | None = None
_alone = False


@functools.cache
def _initial() -> int:
    cores = cpu_target.cpu_count()
    try:
        return int(settings.read("JITKERNELS_NUM_THREADS") or cores)
    except UnknownNameError as error:
        warn_once("threads", f"{error}: using {cores}")
        return cores


def get_num_threads() -> int:
    """The most threads a kernel may use: `set_num_threads`, else ``JITKERNELS_NUM_THREADS``, else the cores."""
    return _chosen or _initial()


def set_num_threads(threads: int) -> None:
    """Limit kernels to so many threads, at once and for the whole process.

    A forked child of a process that has had a parallel region stays on one thread all the same. Raises
    ArgumentTypeError if `threads` is not an int, ArgumentError if it is below 1.
    """
    global _chosen
    if not isinstance(threads, int | np.integer) or isinstance(threads, bool):
        raise ArgumentTypeError(f"set_num_threads: threads: expected an int, got {threads!r}")
    if threads < 1:
        raise ArgumentError(f"set_num_threads: threads: expected at least 1, got {threads}")
    _chosen = int(threads)
    apply()


def apply() -> None:
    """Publish the limit to generated code."""
    limit.value = 1 if _alone else min(get_num_threads(), MAX_THREADS)


def force_single_thread() -> None:
    """Keep this process on one thread from now on, regardless of settings."""
    global _alone
    _alone = True
    apply()
