"""Atomic file writes (a file is complete or absent), and warnings that are logged once per process."""

import os
import sys
from contextlib import nullcontext, suppress
from stat import S_ISREG

from jitkernels.core.fork_locks import build_lock

_said: set[str] = set()


def warn_once(topic: str, message: str) -> None:
    """Log a warning the first time its topic occurs in this process."""
    if topic not in _said:
        _said.add(topic)
        with build_lock if "logging" not in sys.modules else nullcontext():  # no fork amid its hooks
            import logging  # its import takes longer than loading a kernel

        logging.getLogger("jitkernels").warning(message)


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file. Raises OSError if it is missing or is a device or pipe, which may block."""
    if not S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return file.read()


def publish(path: str | os.PathLike[str], *parts: bytes | memoryview) -> bool:
    """Write `parts` to `path` atomically (temporary file, then rename). False, with one log line, on failure."""
    name = None
    try:
        draft = os.path.join(os.path.dirname(path), f".unfinished-{os.urandom(8).hex()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        name = draft
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.replace(name, path)
        return True
    except OSError as error:
        warn_once("publish", f"cannot write {path} ({error}): continuing without it")
        if name is not None:
            with suppress(OSError):
                os.unlink(name)
        return False
