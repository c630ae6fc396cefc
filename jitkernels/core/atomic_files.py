"""Files that are whole or do not exist, and warnings that are said once."""

import os
import sys
from contextlib import nullcontext, suppress
from stat import S_ISREG

from jitkernels.locks import making

_said: set[str] = set()


def say_once(topic: str, message: str) -> None:
    """Log a warning the first time its topic comes up in this process."""
    if topic not in _said:
        _said.add(topic)
        with making if "logging" not in sys.modules else nullcontext():  # no fork in the midst of its hooks
            import logging  # which takes longer than loading a kernel

        logging.getLogger("jitkernels").warning(message)


def content_of(path: str | os.PathLike[str]) -> bytes:
    """What a file holds. Raises OSError if there is none, or something else, whose reading may never end."""
    if not S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{path} is no file")
    with open(path, "rb") as file:
        return file.read()


def publish(path: str | os.PathLike[str], content: bytes) -> bool:
    """Write a whole file or nothing. False, with one log line, when the disk does not take it."""
    name = None
    try:
        free = os.path.join(os.path.dirname(path), f".unfinished-{os.urandom(8).hex()}")
        handle = os.open(free, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        name = free
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
        return True
    except OSError as error:
        say_once("publish", f"cannot write {path} ({error}): continuing without it")
        if name is not None:
            with suppress(OSError):
                os.unlink(name)
        return False
