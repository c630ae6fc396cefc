"""Files that are whole or do not exist, and warnings that are said once."""

import contextlib
import logging
import os
from pathlib import Path
from stat import S_ISREG

log = logging.getLogger("jitkernels")
_said: set[str] = set()


def say_once(topic: str, message: str) -> None:
    """Log a warning the first time its topic comes up in this process."""
    if topic not in _said:
        _said.add(topic)
        log.warning(message)


def content_of(path: Path) -> bytes:
    """What a file holds. Raises OSError if there is none, or something else, whose reading may never end."""
    if not S_ISREG(path.stat().st_mode):
        raise OSError(f"{path} is no file")
    return path.read_bytes()


def publish(path: Path, content: bytes) -> bool:
    """Write a whole file or nothing. False, with one log line, when the disk does not take it."""
    name = None
    try:
        free = path.parent / f".unfinished-{os.urandom(8).hex()}"
        handle = os.open(free, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        name = free
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
        return True
    except OSError as error:
        say_once("publish", f"cannot write {path} ({error}): continuing without it")
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
        return False
