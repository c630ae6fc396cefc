"""Loader of OpenBLAS from the package scipy-openblas32, on first use.

OpenBLAS has threads of its own, whose number is one setting for the whole library. Each kernel sets it to one before a
call, a plain store, and splits the work itself: so that OpenBLAS obeys the thread settings of jitkernels, two callers
never wait for each other, and nothing runs in parallel after a fork. NumPy and SciPy bring other copies of OpenBLAS,
which this does not touch.
"""

import functools
from pathlib import Path

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.source_protocol import inlined
from jitkernels.more.openblas.prototypes import FUNCTIONS, declared
from jitkernels.runtime.cffi_library import CffiLibrary, opened
from jitkernels.runtime.vendor_library import Opened, VendorLibrary, open_first, package_files

PACKAGE = "scipy-openblas32"
SCIPY_PREFIX = "scipy_"
C_NAMES = (
    "cblas_sgemm",
    "cblas_dgemm",
    "cblas_saxpy",
    "cblas_daxpy",
    "openblas_set_num_threads",
    "openblas_get_config",
)
MAX_EXTENT = 2**31 - 1
"""The largest extent that this build, with 32-bit integers, can take."""


@functools.cache
def library() -> Opened:
    """Return the library and its version and path, or None and the reason why there is none."""
    return open_first(package_files([PACKAGE], _is_library), _open, f"OpenBLAS is not installed: pip install {PACKAGE}")


def _is_library(name: str) -> bool:
    return name.startswith("libscipy_openblas") and Path(name).suffix in (".so", ".dylib")


def _open(path: str) -> Opened:
    handle = opened(declared, path, tuple(SCIPY_PREFIX + name for name in C_NAMES))
    return handle, f"{_version(handle)} ({path})"


def _version(handle: CffiLibrary) -> str:
    text = handle.ffi.string(handle.functions.scipy_openblas_get_config())
    return " ".join(text.decode("ascii", "replace").split()[:2])


def reason_against(dtype: str, *extents: int) -> str | None:
    """Return why the library cannot be used for arrays of this dtype and these extents, or None."""
    if dtype not in FLOATS:
        return f"OpenBLAS computes in float32 and float64, not in {dtype}"
    handle, reason = library()
    if handle is None:
        return reason
    longest = max(extents)
    return f"OpenBLAS has 32-bit integers, too short for an extent of {longest}" if longest > MAX_EXTENT else None


vendor = VendorLibrary("OpenBLAS", "openblas", FUNCTIONS, library, prefix=SCIPY_PREFIX)
status, demanded, external = vendor.status, vendor.demanded, vendor.external
set_threads = external("openblas_set_num_threads")


@inlined()
def one_thread() -> int:
    """Keep OpenBLAS on this thread."""
    set_threads(1)
    return 0
