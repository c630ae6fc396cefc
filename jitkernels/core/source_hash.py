"""The hash of the package's source files, part of the keys of compiled code: an edit of the compiler is a cache miss.

Reading some hundred files takes several milliseconds, so their hash is stored under their names, sizes and
modification times (the facts by which Python itself decides whether to recompile) in the cache and in packs. Where the
times say nothing, since an installer gave all files the same one, the files are read; nothing is stored for a file
that may change once more without a new time.
"""

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from jitkernels.core import cache_dirs, versions
from jitkernels.core.atomic_files import content_of, publish
from jitkernels.core.hashing import sha256

PACKAGE = Path(__file__).parents[1]
FILE = "states.json"
MAX_STORED_ENTRIES = 64
"""Entries that the stored table holds at most."""
OLDEST = 1_000_000_000
"""Seconds since the epoch of the year 2001: no file of ours is older, so an earlier time is not a real one."""
RECENT_NANOSECONDS = 3 * 10**9
"""Nanoseconds within which a file may change twice with one modification time, on disks that count in seconds."""
_noted: dict[str, str] = {}
_used: dict[str, str] = {}


@functools.cache
def state_of(*paths: str) -> str:
    """The hash of modules and folders, given as paths relative to the package."""
    files = _modules_of(*paths)
    listing, last = _listing(files)
    if listing is None:
        return _hash(files)
    if listing not in _noted:
        _noted.update(_stored_table())
    state = _noted.get(listing)
    if state is None:
        state = _hash(files)
        if time.time_ns() - last < RECENT_NANOSECONDS:
            return state
        _store(listing, state)
    _used[listing] = state
    return state


def note(known: Mapping[str, str]) -> None:
    """Add a pack's table: the hash of files with these names, sizes and times."""
    _noted.update(known)


def noted() -> dict[str, str]:
    """The entries that this process has used, for a pack."""
    return dict(_used)


def forget() -> None:
    """Delete the stored table."""
    root = cache_dirs.cache_root()
    if root is not None:
        with contextlib.suppress(OSError):
            (root / FILE).unlink()


def _modules_of(*paths: str) -> list[str]:
    return [file for path in paths for file in _modules(f"{PACKAGE}/{path}")]


def _modules(folder: str) -> Iterator[str]:
    if folder.endswith(".py"):
        yield folder
        return
    with os.scandir(folder) as entries:
        entries_by_name = sorted((entry.name, entry.path) for entry in entries)
    for name, child in entries_by_name:
        if name.endswith(".py"):
            yield child
        elif "." not in name and not name.startswith("_"):
            yield from _modules(child)


def _listing(files: list[str]) -> tuple[str | None, int]:
    """A hash of the names, sizes and times of files (None where the times say nothing), and the latest time."""
    facts = [versions.version("jitkernels")]
    times = set()
    for file in files:
        status = os.stat(file)  # half the time of Path.stat
        times.add(status.st_mtime_ns)
        facts.append(f"{file.removeprefix(str(PACKAGE))} {status.st_size} {status.st_mtime_ns}")
    if len(times) < 2 or min(times) < OLDEST * 10**9:
        return None, 0
    return str(sha256("\n".join(facts).encode()).hexdigest()[:32]), max(times)


def _hash(files: list[str]) -> str:
    return str(sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest())


def _stored_table() -> dict[str, str]:
    """The table stored in the cache; empty if there is no valid one."""
    root = cache_dirs.cache_root()
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        if root is not None:
            return {str(listing): str(state) for listing, state in json.loads(content_of(root / FILE)).items()}
    return {}


def _store(listing: str, state: str) -> None:
    root = cache_dirs.cache_root()
    _noted[listing] = state
    if root is not None:
        last = [*(_stored_table() | {listing: state}).items()][-MAX_STORED_ENTRIES:]
        publish(root / FILE, json.dumps(dict(last)).encode())
