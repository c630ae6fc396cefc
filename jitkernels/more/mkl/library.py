"""Loader of Intel MKL, on first use; it keeps MKL from loading an OpenMP runtime of its own.

Kernels run MKL on the calling thread alone (`one_thread`) and split the work among threads themselves, so that MKL
obeys the thread settings of jitkernels and nothing runs in parallel after a fork.
"""

import functools
import os
import sys
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.source_protocol import inlined
from jitkernels.more.mkl.prototypes import FUNCTIONS, declared
from jitkernels.runtime.cffi_library import CffiLibrary, opened
from jitkernels.runtime.threads.team_size import runtime
from jitkernels.runtime.vendor_library import Opened, VendorLibrary, open_first, package_files

NAMES = ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so")
INTEL_LAYER, SEQUENTIAL_LAYER, GNU_LAYER = 0, 1, 3
C_NAMES = (
    "vmsMul_64",
    "vmdMul_64",
    "vmsExp_64",
    "vmdExp_64",
    "cblas_sgemm_64",
    "cblas_dgemm_64",
    "MKL_Set_Num_Threads_Local",
)


@functools.cache
def library() -> Opened:
    """Return the library and its path, or None and the reason why there is none.

    The search order is the ``lib`` of this Python, where the package ``mkl`` puts it, the files of that package, the
    system.
    """
    own = (Path(sys.prefix, "lib", name) for name in NAMES)
    places: tuple[Path | str, ...] = (*own, *package_files(["mkl"], NAMES.__contains__), *NAMES)
    return open_first(places, _open, "MKL is not installed: pip install mkl")


def _open(path: str) -> Opened:
    handle = opened(declared, path, C_NAMES)
    _choose_threading(handle)
    return handle, path


def _choose_threading(handle: CffiLibrary) -> None:
    """Make MKL use the OpenMP runtime of this process, unless the user or an earlier caller has chosen.

    By default it would load Intel's beside GNU's, and two runtimes in one process double the threads. Ours is loaded
    first, because MKL's layer for GNU's resolves its symbols in the process.
    """
    openmp, name = runtime()
    layer = SEQUENTIAL_LAYER if openmp is None else GNU_LAYER if "gomp" in name else INTEL_LAYER
    if "MKL_THREADING_LAYER" not in os.environ:
        handle.functions.MKL_Set_Threading_Layer(layer)


def _version(handle: CffiLibrary) -> str:
    text = handle.ffi.new("char[200]")
    handle.functions.MKL_Get_Version_String(text, len(text))
    words = handle.ffi.string(text).decode("ascii", "replace").split()
    return f"MKL {words[words.index('Version') + 1]}" if "Version" in words[:-1] else "MKL"


def status() -> tuple[bool, str]:
    """Report whether the library is there, with its version and path or the reason why not."""
    handle, text = library()
    return handle is not None, f"{_version(handle)} ({text})" if handle else text


def usable(attr: Any) -> bool | str:
    """`can_be_used`: MKL takes every float32 and float64 where it is installed: lengths have 64 bits."""
    if attr.dtype not in FLOATS:
        return f"MKL computes in float32 and float64, not in {attr.dtype}"
    handle, reason = library()
    return handle is not None or reason


vendor = VendorLibrary("MKL", "mkl", FUNCTIONS, library)
demanded, external = vendor.demanded, vendor.external
set_threads = external("MKL_Set_Num_Threads_Local")


@inlined()
def one_thread() -> Any:
    """Keep MKL on this thread; return the argument of `set_threads` that undoes it."""
    return set_threads(1)
