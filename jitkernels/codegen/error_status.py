"""What the status of a C function means: 0 is success, everything else names the source that gave up.

A kernel may call another, which may call a third; a status travels up through all of them, so it must say by
itself whose it is. Codes of our own are negative and made of the name; what a ``check`` returns is its own.
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
    """The exception for a status other than 0 that a kernel returned, whether from itself or from what it calls."""
    if status in _without_memory:
        return WorkspaceError(
            f"{kernel}: {implementation}: no memory for the workspace of {_without_memory[status]}"
        )
    return BuildError(f"{kernel}: {implementation} returned the unknown status {status}: expected 0")
