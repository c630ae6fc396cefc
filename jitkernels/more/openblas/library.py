"""Loader of OpenBLAS from the package scipy-openblas32, on first use.

OpenBLAS has threads of its own, whose number is one setting for the whole library. Each kernel sets it to one before a
call, a plain store, and splits the work itself: so that OpenBLAS obeys the thread settings of jitkernels, two callers
never wait for each other, and nothing runs in parallel after a fork. NumPy and SciPy bring other copies of OpenBLAS,
which this does not touch.
"""

import functools
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.source_protocol import External, inlined
from jitkernels.errors import NotUsableError
from jitkernels.more.openblas.prototypes import FUNCTIONS, declared
from jitkernels.runtime.cffi_library import Library, opened

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
def library() -> tuple[Library | None, str]:
    """Return the library and its version and path, or None and the reason why there is none."""
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
            handle = opened(declared, str(path), tuple(PREFIX + name for name in C_NAMES))
        except (OSError, AttributeError) as error:
            refused.append(f"{path}: {error}")
            continue
        return handle, f"{_version(handle)} ({path})"
    return None, "; ".join(refused) or f"{PACKAGE} is installed without a library"


def _version(handle: Library) -> str:
    text = handle.ffi.string(handle.functions.scipy_openblas_get_config())
    return " ".join(text.decode("ascii", "replace").split()[:2])


def status() -> tuple[bool, str]:
    """Report whether the library is there, with its version and path or the reason why not."""
    handle, text = library()
    return handle is not None, text


def reason_against(dtype: str, *extents: int) -> str | None:
    """Return why the library cannot be used for arrays of this dtype and these extents, or None."""
    if dtype not in FLOATS:
        return f"OpenBLAS computes in float32 and float64, not in {dtype}"
    handle, reason = library()
    if handle is None:
        return reason
    longest = max(extents)
    return f"OpenBLAS has 32-bit integers, too short for an extent of {longest}" if longest > MOST else None


def demanded() -> Library:
    """Return the library. Raises NotUsableError when it is not there."""
    handle, reason = library()
    if handle is None:
        raise NotUsableError(f"OpenBLAS cannot be used: {reason}")
    return handle


def address(name: str) -> int:
    """Return the address of a function, named without its prefix. Raises NotUsableError when the library is absent."""
    return demanded().address(PREFIX + name)


def external(name: str) -> Any:
    """Return a declared function of the library, named without its prefix, for loop nests to call."""
    result, arguments = FUNCTIONS[PREFIX + name]
    return External(f"jk_openblas_{name}", result, arguments, lambda: address(name))


set_threads = external("openblas_set_num_threads")


@inlined()
def one_thread() -> int:
    """Keep OpenBLAS on this thread."""
    set_threads(1)
    return 0
