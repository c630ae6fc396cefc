"""The loader of oneDNN: found once, when first asked for, and kept on the thread that calls it.

oneDNN cuts its work among as many threads as OpenMP would give the caller, and starts none where that is one. Kernels
say so around each call (`one_thread`), for the calling thread alone, and share the work out themselves: so that
oneDNN obeys the thread settings of jitkernels, and nothing runs in parallel after a fork. A oneDNN that has its threads
from elsewhere (TBB, SYCL) takes no such word and is not used; that is what the package ``onednn`` has become, which
brings two gigabytes of compilers along.
"""

import ctypes
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.errors import NotUsableError
from jitkernels.native.openmp import runtime
from jitkernels.native.source import External, inlined
from jitkernels.native.status import no_memory_for

PACKAGES = ("onednn-cpu-gomp", "onednn-cpu-iomp")
NAME = "libdnnl.so.3"
"""All releases of version 3 take the same arguments."""
SEQUENTIAL, OPENMP = 1, 2
"""Where oneDNN can have its threads from, for us to use it."""
C_NAMES = ("dnnl_sgemm", "dnnl_primitive_execute", "omp_get_max_threads", "omp_set_num_threads")


class Version(ctypes.Structure):
    """``dnnl_version_t``."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


@functools.cache
def library() -> tuple[ctypes.CDLL | None, str]:
    """The library and its version and path, or None and the reason why there is none.

    Looked for in the ``lib`` of this Python, where the packages put it, then among their files, then by the system.
    """
    runtime()  # the one OpenMP of this process, before a library asks for it
    refused: list[str] = []
    for place in _places():
        if isinstance(place, Path) and not place.is_file():
            continue
        try:
            found = ctypes.CDLL(str(place))
            version = _version(found)
            for name in C_NAMES:
                _function(found, name)
        except (OSError, AttributeError) as error:
            if isinstance(place, Path):
                refused.append(f"{place}: {error}")
            continue
        text = f"oneDNN {version.major}.{version.minor}.{version.patch} ({place})"
        if version.cpu_runtime not in (SEQUENTIAL, OPENMP):
            refused.append(f"{text}: its threads are not those of OpenMP, which could be kept to one")
            continue
        return found, text
    return None, "; ".join(refused) or f"oneDNN is not installed: pip install {PACKAGES[0]}"


def _places() -> Iterator[Path | str]:
    yield Path(sys.prefix, "lib", NAME)
    yield from _package_files()
    yield NAME


def _package_files() -> list[Path]:
    from importlib.metadata import PackageNotFoundError, files  # 10 ms that only its users pay

    found = []
    for package in PACKAGES:
        try:
            listed = files(package) or []
        except PackageNotFoundError:
            continue
        found += [Path(str(file.locate())).resolve() for file in listed if file.name == NAME]
    return found


def _version(found: ctypes.CDLL) -> Version:
    describe = found["dnnl_version"]
    describe.restype = ctypes.POINTER(Version)
    version: Version = describe().contents
    return version


def _function(found: ctypes.CDLL, name: str) -> int:
    """The address of a function, of those of OpenMP the one that the library calls.

    What it asks for is looked for in the whole process before in the libraries that it needs.
    """
    place: Any = found
    if name.startswith("omp_") and hasattr(ctypes.CDLL(None), name):
        place = ctypes.CDLL(None)
    return ctypes.cast(place[name], ctypes.c_void_p).value or 0


def status() -> tuple[bool, str]:
    """Whether the library is there, with its version and path or the reason why not."""
    found, text = library()
    return found is not None, text


def usable(attr: Any) -> bool | str:
    """What `can_be_used` answers: float32, where the library is found."""
    if attr.dtype != "float32":
        return f"oneDNN computes in float32, not in {attr.dtype}"
    found, reason = library()
    return found is not None or reason


def address(name: str) -> int:
    """Address of a function of the library. Raises NotUsableError when the library is not there."""
    found, reason = library()
    if found is None:
        raise NotUsableError(f"oneDNN cannot be used: {reason}")
    return _function(found, name)


def external(name: str, result: str, *arguments: str) -> Any:
    """A function of the library for loop nests to call."""
    return External(f"jk_onednn_{name}", result, arguments, lambda: address(name))


get_threads = external("omp_get_max_threads", "int32")
set_threads = external("omp_set_num_threads", "void", "int32")


@inlined()
def one_thread() -> Any:
    """Keep OpenMP's parallel regions, of which oneDNN makes none then, on this thread.

    Returns what `set_threads` must be given afterwards.
    """
    before = get_threads()
    set_threads(1)
    return before


NO_MEMORY = no_memory_for("onednn")
OUT_OF_MEMORY = 1
"""What oneDNN calls it."""
UNKNOWN = -(1 << 40)
"""Less than any status of another meaning; oneDNN's own is subtracted from it."""


@inlined()
def failed(status: int) -> Any:
    """The status of ours for one of oneDNN's."""
    if status == 0:
        return np.int64(0)
    return np.int64(NO_MEMORY) if status == OUT_OF_MEMORY else np.int64(UNKNOWN) - np.int64(status)
