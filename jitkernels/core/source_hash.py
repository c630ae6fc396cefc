"""Which state modules of this package are in: keys of code have it, so that an edit of the compiler is a miss.

That is the hash of their text. To read some hundred files takes several milliseconds, so what hash they have is noted
beside their names, sizes and times, which Python as well takes to tell whether it has compiled them: in the cache and
in packs. Where times tell nothing, since whoever installed the package gave all files the same one, the files are read;
nothing is noted of a file that may change once more without another time.
"""

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from jitkernels import machine
from jitkernels.checksums import sha256
from jitkernels.disk import content_of, publish

PACKAGE = Path(__file__).parent
FILE = "states.json"
MOST = 64
"""Notes that the cache keeps."""
OLDEST = 1_000_000_000
"""Seconds of the year 2001: no file of ours is older, so one that says so tells nothing."""
RECENT = 3 * 10**9
"""Nanoseconds within which a file may change twice and have one time, on disks that count in seconds."""
_noted: dict[str, str] = {}
_used: dict[str, str] = {}


@functools.cache
def state_of(*places: str) -> str:
    """The hash of modules and of all that are in folders, given by their place in the package."""
    files = _modules_of(*places)
    listing, last = _listing(files)
    if listing is None:
        return _hash(files)
    if listing not in _noted:
        _noted.update(_kept())
    found = _noted.get(listing)
    if found is None:
        found = _hash(files)
        if time.time_ns() - last < RECENT:
            return found
        _keep(listing, found)
    _used[listing] = found
    return found


def note(known: Mapping[str, str]) -> None:
    """Take the word of a pack for what files of such names, sizes and times hold."""
    _noted.update(known)


def noted() -> dict[str, str]:
    """What this process has asked for, for a pack."""
    return dict(_used)


def forget() -> None:
    """Delete the notes in the cache."""
    root = machine.cache_root()
    if root is not None:
        with contextlib.suppress(OSError):
            (root / FILE).unlink()


def _modules_of(*places: str) -> list[str]:
    return [file for place in places for file in _modules(f"{PACKAGE}/{place}")]


def _modules(place: str) -> Iterator[str]:
    if place.endswith(".py"):
        yield place
        return
    with os.scandir(place) as entries:
        found = sorted((entry.name, entry.path) for entry in entries)
    for name, path in found:
        if name.endswith(".py"):
            yield path
        elif "." not in name and not name.startswith("_"):
            yield from _modules(path)


def _listing(files: list[str]) -> tuple[str | None, int]:
    """What stands for names, sizes and times of files, None where the latter tell nothing, and the last time."""
    told = [machine.version("jitkernels")]
    times = set()
    for file in files:
        status = os.stat(file)  # half the time of the method
        times.add(status.st_mtime_ns)
        told.append(f"{file.removeprefix(str(PACKAGE))} {status.st_size} {status.st_mtime_ns}")
    if len(times) < 2 or min(times) < OLDEST * 10**9:
        return None, 0
    return str(sha256("\n".join(told).encode()).hexdigest()[:32]), max(times)


def _hash(files: list[str]) -> str:
    return str(sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest())


def _kept() -> dict[str, str]:
    """The notes in the cache; none where there are none that are whole."""
    root = machine.cache_root()
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        if root is not None:
            return {
                str(listing): str(state) for listing, state in json.loads(content_of(root / FILE)).items()
            }
    return {}


def _keep(listing: str, state: str) -> None:
    root = machine.cache_root()
    _noted[listing] = state
    if root is not None:
        last = [*(_kept() | {listing: state}).items()][-MOST:]
        publish(root / FILE, json.dumps(dict(last)).encode())
