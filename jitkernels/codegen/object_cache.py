"""The object cache on disk: content-addressed files that are written atomically.

A file is the object followed by its SHA-256. It is written under a temporary name and renamed, so a killed process
leaves no torn entry; one that does not match its checksum is a miss and is replaced. One process builds while others
wait on a file lock, which the system releases when a builder dies. A cache that cannot be written (read-only, full,
foreign) costs a rebuild and one log line, never an error.
"""

import contextlib
import fcntl
import itertools
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jitkernels.codegen import kernel_archive
from jitkernels.core import cache_dirs, environment, hashing, settings
from jitkernels.core.atomic_files import content_of, publish, warn_once
from jitkernels.core.fork_locks import build_lock
from jitkernels.core.hashing import sha256

CHECKSUM_BYTES = 32
BUNDLE_MAGIC = b"\x7fJKOBJS\x01"
"""The begin of an entry of several objects: a module that was compiled in parts, which is loaded as one."""
_LENGTH = struct.Struct("<Q")


def key_of(text: str) -> str:
    """The file name of the object built from a text in this environment by this version of the compiler."""
    return hashing.digest([text, kernel_archive.compiler_version(), environment.environment_of_code()])


def objects_directory() -> Path | None:
    """The directory of objects for this environment, created if missing; None if nothing can be cached."""
    return directory_of("objects")


def directory_of(kind: str) -> Path | None:
    """The directory of one kind of entries for this environment, created if missing; None if nothing can be cached."""
    root = cache_dirs.cache_root()
    if root is None:
        chosen = settings.read("JITKERNELS_CACHE_DIR")
        why = f" (JITKERNELS_CACHE_DIR={chosen} is not a private directory)" if chosen else ""
        warn_once("cache", f"no private cache folder is available{why}: kernels are rebuilt in each process")
        return None
    directory = path_of_directory(root, kind)
    new = not os.path.isdir(directory)  # unlike that of a Path, False where we may not look
    if cache_dirs.private(directory.parent) is None or cache_dirs.private(directory) is None:
        warn_once(
            "cache",
            f"the cache folder {directory} cannot be written, or is not private: kernels are rebuilt in each process",
        )
        return None
    if new:
        facts = environment.environment_of_code()
        publish(directory.parent / "environment.json", json.dumps(facts, indent=1, sort_keys=True).encode())
    return directory


def path_of_directory(root: Path, kind: str) -> Path:
    """The path of `directory_of` in a cache, whether it exists or not."""
    return root / hashing.digest(environment.environment_of_code())[:16] / kind


def read(path: Path) -> bytes | None:
    """Return the content of an entry if its checksum holds, else None."""
    try:
        stored = content_of(path)
    except OSError:
        return None
    content, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
    if sha256(content).digest() != checksum:
        warn_once(str(path), f"{path} is damaged: it is rebuilt")
        return None
    return content


def fetch(text: str, suffix: str, build: Callable[[], bytes]) -> tuple[bytes, Path | None]:
    """Return the object built from a text: from the cache, or built now, by one process at a time.

    Returns the content and the file that holds it (None if it could not be cached).
    """
    directory = objects_directory()
    if directory is None:
        return build(), None
    path = directory / f"{key_of(text)}{suffix}"
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
    """Write an entry; return whether that succeeded."""
    return publish(path, content + sha256(content).digest())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an entry; without a working lock, build all the same.

    A lock is one byte of one file. It belongs to the process: it ends with the process, no forked child inherits it,
    and among threads the lock `build_lock` replaces it.
    """
    byte = int(path.name[:15], 16)
    with build_lock, contextlib.ExitStack() as held:
        try:
            file = os.open(path.parent / ".locks", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            held.callback(os.close, file)  # which unlocks
            fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
        except OSError as error:
            warn_once("lock", f"cannot lock {path} ({error}): building without a lock")
        yield


def bundled(objects: Sequence[bytes]) -> bytes:
    """Join object files; the first one has the entry. A single one stays as it is."""
    if len(objects) == 1:
        return objects[0]
    lengths = b"".join(map(_LENGTH.pack, map(len, objects)))
    return b"".join([BUNDLE_MAGIC, _LENGTH.pack(len(objects)), lengths, *objects])


def objects_of(content: bytes) -> list[bytes]:
    """The object files of a bundle, or of one object file. Raises ValueError for a damaged bundle."""
    if not content.startswith(BUNDLE_MAGIC):
        return [content]
    at = len(BUNDLE_MAGIC) + _LENGTH.size
    count = int.from_bytes(content[len(BUNDLE_MAGIC) : at], "little")
    begin = at + count * _LENGTH.size
    if begin > len(content):
        raise ValueError(f"a bundle of {count} object files has {len(content)} bytes")
    lengths = [int.from_bytes(content[i : i + _LENGTH.size], "little") for i in range(at, begin, _LENGTH.size)]
    if begin + sum(lengths) != len(content):
        raise ValueError(f"a bundle of {count} object files has {len(content)} bytes: expected {begin + sum(lengths)}")
    ends = [*itertools.accumulate(lengths, initial=begin)]
    return [content[start:end] for start, end in itertools.pairwise(ends)]
