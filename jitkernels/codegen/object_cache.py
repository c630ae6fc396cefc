"""Built objects kept on disk between processes: content-addressed files that are whole or do not exist.

A file is the object followed by its own SHA-256. It is written under a temporary name and renamed, so a
killed process leaves no torn entry; one that does not match its checksum is a miss and is replaced. One
process builds while others wait for it on a file lock, which the system releases when a builder dies.
A cache that cannot be written (read-only, full, foreign) costs a rebuild and one log line, never an error.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from jitkernels import machine, packs, settings
from jitkernels.checksums import sha256
from jitkernels.disk import content_of, publish, say_once
from jitkernels.locks import making

CHECKSUM_BYTES = 32


def key_of(text: str) -> str:
    """The file name of what is built from a text in this environment by this version of the compiler."""
    return machine.digest([text, packs.compiler_version(), machine.environment_of_code()])


def objects_directory() -> Path | None:
    """The folder of objects for this environment, made if missing, or None when nothing can be kept."""
    root = machine.cache_root()
    if root is None:
        chosen = settings.read("JITKERNELS_CACHE_DIR")
        why = f" (JITKERNELS_CACHE_DIR={chosen} is no folder that is yours alone)" if chosen else ""
        say_once("cache", f"no private cache folder can be had{why}: kernels are rebuilt in each process")
        return None
    environment = machine.environment_of_code()
    place = root / machine.digest(environment)[:16] / "objects"
    new = not os.path.isdir(place)  # unlike that of a Path, False where we may not look
    if machine.private(place.parent) is None or machine.private(place) is None:
        say_once(
            "cache",
            f"the cache folder {place} cannot be written, or is not private: kernels are rebuilt in each process",
        )
        return None
    if new:
        publish(place.parent / "environment.json", json.dumps(environment, indent=1, sort_keys=True).encode())
    return place


def read(path: Path) -> bytes | None:
    """The content of an entry whose checksum holds, else None."""
    try:
        stored = content_of(path)
    except OSError:
        return None
    content, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
    if sha256(content).digest() != checksum:
        say_once(str(path), f"{path} is damaged: it is rebuilt")
        return None
    return content


def fetch(text: str, suffix: str, build: Callable[[], bytes]) -> tuple[bytes, Path | None]:
    """What was built from a text: out of the cache, or built now, by one process at a time.

    Returns the content and the file that holds it (None when it could not be kept).
    """
    place = objects_directory()
    if place is None:
        return build(), None
    path = place / f"{key_of(text)}{suffix}"
    content = read(path)
    if content is not None:
        return content, path
    with _locked(path):
        content = read(path)
        if content is not None:
            return content, path
        content = build()
        return content, path if keep(path, content) else None


def keep(path: Path, content: bytes) -> bool:
    """Write an entry; whether the disk takes it."""
    return publish(path, content + sha256(content).digest())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an entry; where there are none (or no space) build all the same.

    A lock is one byte of one file. It is a lock of the process: it ends with the process, no forked child
    inherits it, and among the threads `making` stands in for it.
    """
    byte = int(path.name[:15], 16)
    with making, contextlib.ExitStack() as held:
        try:
            file = os.open(path.parent / ".locks", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            held.callback(os.close, file)  # which unlocks
            fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
        except OSError as error:
            say_once("lock", f"cannot lock {path} ({error}): building without a lock")
        yield
