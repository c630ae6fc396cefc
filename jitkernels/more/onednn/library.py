"""Loader of oneDNN, on first use; it keeps oneDNN on the calling thread.

oneDNN splits its work among as many threads as OpenMP would give the caller, and starts none where that is one. Kernels
set that around each call (`one_thread`), for the calling thread alone, and split the work themselves: so that oneDNN
obeys the thread settings of jitkernels, and nothing runs in parallel after a fork. A oneDNN with another thread runtime
(TBB, SYCL) ignores that setting and is not used; the package ``onednn`` is such a build, which brings two gigabytes of
compilers along.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.codegen.error_status import no_memory_for
from jitkernels.codegen.source_protocol import inlined
from jitkernels.more.onednn.prototypes import FUNCTIONS, declared
from jitkernels.runtime.cffi_library import CffiLibrary, opened
from jitkernels.runtime.threads.team_size import runtime
from jitkernels.runtime.vendor_library import Opened, VendorLibrary, open_first, package_files

PACKAGES = ("onednn-cpu-gomp", "onednn-cpu-iomp")
LIBRARY_FILE = "libdnnl.so.3"
"""All releases of version 3 have this ABI."""
SEQUENTIAL, OPENMP = 1, 2
"""The thread runtimes of oneDNN that we can use."""
C_NAMES = ("dnnl_sgemm", "dnnl_primitive_execute", "omp_get_max_threads", "omp_set_num_threads")


@functools.cache
def library() -> Opened:
    """Return the library and its version and path, or None and the reason why there is none.

    The search order is the ``lib`` of this Python, where the packages put it, their files, the system.
    """
    runtime()  # the one OpenMP of this process, before a library loads one
    places: tuple[Path | str, ...] = (
        Path(sys.prefix, "lib", LIBRARY_FILE),
        *package_files(PACKAGES, LIBRARY_FILE.__eq__),
        LIBRARY_FILE,
    )
    return open_first(places, _open, f"oneDNN is not installed: pip install {PACKAGES[0]}")


def _open(path: str) -> Opened:
    handle = opened(declared, path)
    version = _version(handle)
    for name in C_NAMES:
        _function(handle, name)
    text = f"oneDNN {version.major}.{version.minor}.{version.patch} ({path})"
    if version.cpu_runtime not in (SEQUENTIAL, OPENMP):
        return None, f"{text}: its threads are not those of OpenMP, which could be kept to one"
    return handle, text


def _version(handle: CffiLibrary) -> Any:
    """Return its ``dnnl_version_t``."""
    return handle.functions.dnnl_version()


def _function(handle: CffiLibrary, name: str) -> int:
    """Return the address of a function; for OpenMP's functions, the one that the library calls.

    The dynamic linker resolves symbols in the whole process before the dependencies of the library.
    """
    process = opened(declared, None)
    return (process if name.startswith("omp_") and process.has(name) else handle).address(name)


def usable(attr: Any) -> bool | str:
    """`can_be_used`: float32, where the library is installed."""
    if attr.dtype != "float32":
        return f"oneDNN computes in float32, not in {attr.dtype}"
    handle, reason = library()
    return handle is not None or reason


vendor = VendorLibrary("oneDNN", "onednn", FUNCTIONS, library, _function)
status, demanded, address, external = vendor.status, vendor.demanded, vendor.address_of, vendor.external
get_threads = external("omp_get_max_threads")
set_threads = external("omp_set_num_threads")


@inlined()
def one_thread() -> Any:
    """Keep OpenMP's parallel regions, and so oneDNN, on this thread.

    Returns the argument of `set_threads` that undoes it.
    """
    before = get_threads()
    set_threads(1)
    return before


NO_MEMORY = no_memory_for("onednn")
OUT_OF_MEMORY = 1
"""oneDNN's status for a failed allocation."""
UNKNOWN = -(1 << 40)
"""Below any other status of ours; oneDNN's own status is subtracted from it."""


@inlined()
def failed(status: int) -> Any:
    """Convert a status of oneDNN to ours."""
    if status == 0:
        return np.int64(0)
    return np.int64(NO_MEMORY) if status == OUT_OF_MEMORY else np.int64(UNKNOWN) - np.int64(status)
