"""The loader of Intel MKL: found once, when first asked for, and kept from bringing an OpenMP runtime along.

Kernels run MKL on the calling thread alone (`one_thread`) and share the work out among threads themselves,
so that MKL obeys the thread settings of jitkernels and nothing runs in parallel after a fork.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jitkernels.attrs.base import FLOATS
from jitkernels.errors import NotUsableError
from jitkernels.native.openmp import runtime
from jitkernels.native.source import External, inlined

NAMES = ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so")
INTEL_LAYER, SEQUENTIAL_LAYER, GNU_LAYER = 0, 1, 3
C_NAMES = ("vmsMul_64", "vmdMul_64", "vmsExp_64", "vmdExp_64", "cblas_sgemm_64", "cblas_dgemm_64")


@functools.cache
def library() -> tuple[ctypes.CDLL | None, str]:
    """The library and its path, or None and the reason why there is none.

    Looked for in the ``lib`` of this Python, where the package ``mkl`` puts it, then among the files of that package,
    then by the system.
    """
    refused: list[str] = []
    for place in _places():
        if isinstance(place, Path) and not place.is_file():
            continue
        try:
            found = ctypes.CDLL(str(place))
            for name in (*C_NAMES, "MKL_Set_Num_Threads_Local"):
                found[name]
        except (OSError, AttributeError) as error:
            if isinstance(place, Path):
                refused.append(f"{place}: {error}")
            continue
        _choose_threading(found)
        return found, str(place)
    return None, "; ".join(refused) or "MKL is not installed: pip install mkl"


def _places() -> Iterator[Path | str]:
    yield from (Path(sys.prefix, "lib", name) for name in NAMES)
    yield from _package_files()
    yield from NAMES


def _package_files() -> list[Path]:
    from importlib.metadata import PackageNotFoundError, files  # 10 ms that only its users pay

    try:
        listed = files("mkl") or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())).resolve() for file in listed if file.name in NAMES]


def _choose_threading(found: ctypes.CDLL) -> None:
    """Let MKL use the OpenMP runtime that is already here, unless the user or an earlier caller has chosen.

    By default it would load Intel's beside GNU's, and two runtimes in one process double the threads. Ours
    is loaded first, because MKL's layer for GNU's takes what it needs from the process.
    """
    openmp, name = runtime()
    layer = SEQUENTIAL_LAYER if openmp is None else GNU_LAYER if "gomp" in name else INTEL_LAYER
    if "MKL_THREADING_LAYER" not in os.environ:
        found.MKL_Set_Threading_Layer(layer)


def _version(found: ctypes.CDLL) -> str:
    text = ctypes.create_string_buffer(200)
    found.MKL_Get_Version_String(text, len(text))
    words = text.value.decode("ascii", "replace").split()
    return f"MKL {words[words.index('Version') + 1]}" if "Version" in words[:-1] else "MKL"


def status() -> tuple[bool, str]:
    """Whether the library is there, with its version and path or the reason why not."""
    found, text = library()
    return found is not None, f"{_version(found)} ({text})" if found else text


def usable(attr: Any) -> bool | str:
    """What `can_be_used` answers: MKL takes every float32 and float64 where it is found: lengths have 64 bits."""
    if attr.dtype not in FLOATS:
        return f"MKL is asked for products of float32 and float64, not of {attr.dtype}"
    found, reason = library()
    return found is not None or reason


def address(name: str) -> int:
    """Address of a function of the library. Raises NotUsableError when the library is not there."""
    found, reason = library()
    if found is None:
        raise NotUsableError(f"MKL cannot be used: {reason}")
    return ctypes.cast(found[name], ctypes.c_void_p).value or 0


def external(name: str, result: str, *arguments: str) -> Any:
    """A function of the library for loop nests to call."""
    return External(f"jk_mkl_{name}", result, arguments, lambda: address(name))


set_threads = external("MKL_Set_Num_Threads_Local", "int32", "int32")


@inlined()
def one_thread() -> Any:
    """Keep MKL on this thread; returns what `set_threads` must be given afterwards."""
    return set_threads(1)
