"""Open C libraries through cffi, and call and look up their functions by declared prototypes."""

import functools
import os
from collections.abc import Callable
from typing import Any

from jitkernels.core.frozen_dataclass import frozen_dataclass

FLAGS = os.RTLD_NOW | getattr(os, "RTLD_NODELETE", 0)
"""Compiled code holds addresses in a library for the life of the process, so it is never unmapped."""


@frozen_dataclass
class CffiLibrary:
    """An open library: `functions` has its functions as attributes, with the types that `ffi` declares."""

    ffi: Any
    functions: Any

    def has(self, name: str) -> bool:
        """Return whether the library defines a declared function."""
        return hasattr(self.functions, name)

    def address(self, name: str) -> int:
        """The address of a declared function. Raises AttributeError if the library lacks it."""
        return address_of(self.ffi.addressof(self.functions, name))


def opened(declared: Callable[[], Any], path: str | None, required: tuple[str, ...] = ()) -> CffiLibrary:
    """Open the library at a path, or the whole process for None, with the prototypes of `declared`.

    Raises OSError if it cannot be opened, and AttributeError if it lacks a `required` function.
    """
    ffi = declared()
    library = CffiLibrary(ffi, ffi.dlopen(path, FLAGS))
    for name in required:
        library.address(name)
    return library


@functools.cache
def _ffi() -> Any:
    """An ``ffi`` of C's basic types: it parses a type in a microsecond, without cffi's parser of declarations."""
    import _cffi_backend

    return _cffi_backend.FFI()


def address_of(function: Any) -> int:
    """The address in a cffi pointer."""
    return int(_ffi().cast("intptr_t", function))


def function_at(address: int, prototype: str) -> Any:
    """The C function at an address as a callable, with a prototype such as ``int32_t(*)(void *, int64_t)``."""
    return _ffi().cast(prototype, address)


def pointer_to(array: Any) -> Any:
    """The address of an array's first element as ``void *``."""
    return _ffi().cast("void *", array.ctypes.data)


def pointers_to(arrays: Any) -> Any:
    """A null-terminated array of ``void *`` with the addresses of arrays' first elements."""
    return _ffi().new("void *[]", [*map(pointer_to, arrays), _ffi().NULL])
