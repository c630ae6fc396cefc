"""Status codes of C functions: 0 is success, every other code identifies the source that failed.

A kernel may call another, which may call a third; a status travels up through all of them, so it must identify its
origin by itself. Our codes are negative hashes of the name; a ``check`` returns codes of its own.
"""

import zlib

from jitkernels.errors import BuildError, JitKernelsError, WorkspaceError

_without_memory: dict[int, str] = {}


def no_memory_for(name: str) -> int:
    """The status of a source of that name which could not allocate its workspace."""
    code = -1 - zlib.crc32(name.encode())
    _without_memory[code] = name
    return code


def error_of(status: int, kernel: str, implementation: str) -> JitKernelsError:
    """Return the exception for a nonzero status of a kernel, from itself or from a kernel that it calls."""
    if status in _without_memory:
        return WorkspaceError(f"{kernel}: {implementation}: no memory for the workspace of {_without_memory[status]}")
    return BuildError(f"{kernel}: {implementation} returned the unknown status {status}: expected 0")
