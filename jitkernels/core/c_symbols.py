"""Addresses of functions in loaded C libraries."""

import ctypes


def symbol_address(name: str, library: ctypes.CDLL | None = None) -> int:
    """The address of a function of a library; of one that the process has loaded, such as libc's, without `library`."""
    return ctypes.cast((library or ctypes.CDLL(None))[name], ctypes.c_void_p).value or 0
