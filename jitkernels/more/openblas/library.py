"""The loader of OpenBLAS from the package scipy-openblas32: found once, when first asked for.

OpenBLAS has threads of its own, whose number is one setting for the whole library. Each kernel sets it to
one before a call, a plain store, and shares the work out itself: so that OpenBLAS obeys the
thread settings of jitkernels, two callers never wait for each other, and nothing runs in parallel after a
fork. NumPy and SciPy bring other copies of OpenBLAS, which this does not touch.
"""

import ctypes
import functools
from pathlib import Path
from typing import Any

from jitkernels.attrs.base import FLOATS
from jitkernels.errors import NotUsableError
from jitkernels.native.source import External, inlined

PACKAGE = "scipy-openblas32"
PREFIX = "scipy_"
C_NAMES = (
    "cblas_sgemm",
    "cblas_dgemm",
    "cblas_saxpy",
    "cblas_daxpy",
    "openblas_set_num_threads",
    "openblas_get_config",
)
MOST = 2**31 - 1
"""The largest extent that this build, with 32-bit integers, can take."""


@functools.cache
def library() -> tuple[ctypes.CDLL | None, str]:
    """The library and its version and path, or None and the reason why there is none."""
    from importlib.metadata import PackageNotFoundError, files  # 10 ms that only its users pay

    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return None, f"OpenBLAS is not installed: pip install {PACKAGE}"
    refused = []
    for file in listed:
        if not file.name.startswith("libscipy_openblas") or Path(file.name).suffix not in (".so", ".dylib"):
            continue
        path = Path(str(file.locate())).resolve()
        try:
            found = ctypes.CDLL(str(path))
            for name in C_NAMES:
                found[PREFIX + name]
        except (OSError, AttributeError) as error:
            refused.append(f"{path}: {error}")
            continue
        return found, f"{_version(found)} ({path})"
    return None, "; ".join(refused) or f"{PACKAGE} is installed without a library"


def _version(found: ctypes.CDLL) -> str:
    describe = found[f"{PREFIX}openblas_get_config"]
    describe.restype = ctypes.c_char_p
    return " ".join(describe().decode("ascii", "replace").split()[:2])


def status() -> tuple[bool, str]:
    """Whether the library is there, with its version and path or the reason why not."""
    found, text = library()
    return found is not None, text


def reason_against(dtype: str, *extents: int) -> str | None:
    """Why the library cannot be used for arrays of this dtype and these extents, or None."""
    if dtype not in FLOATS:
        return f"OpenBLAS computes in float32 and float64, not in {dtype}"
    found, reason = library()
    if found is None:
        return reason
    longest = max(extents)
    return f"OpenBLAS has 32-bit integers, too short for an extent of {longest}" if longest > MOST else None


def address(name: str) -> int:
    """Address of a function of the library, named without its prefix. Raises NotUsableError when absent."""
    found, reason = library()
    if found is None:
        raise NotUsableError(f"OpenBLAS cannot be used: {reason}")
    return ctypes.cast(found[PREFIX + name], ctypes.c_void_p).value or 0


def external(name: str, result: str, *arguments: str) -> Any:
    """A function of the library for loop nests to call."""
    return External(f"jk_openblas_{name}", result, arguments, lambda: address(name))


set_threads = external("openblas_set_num_threads", "void", "int32")


@inlined()
def one_thread() -> int:
    """Keep OpenBLAS on this thread."""
    set_threads(1)
    return 0
