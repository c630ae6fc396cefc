"""Packs: files of built objects and measurements that lie, read-only, under the user's cache.

``JITKERNELS_PACK`` names them. What is in one is used as if it were in the cache, so that a process needs no compiler;
whatever the cache has comes first. `jitkernels.packing` makes them.

A pack is a line that says so, the length and SHA-256 of a header, the header as JSON, and the contents of objects, each
with a SHA-256 in the header. The header says what processor, package, NumPy and Python the pack is for, and where in
the file each object is by the hash of its source. A pack for anything else is left out, with one log line, and so is
one that is damaged or that others may write to: machine code is loaded from it.
"""

import functools
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jitkernels import machine, settings, states
from jitkernels.checksums import sha256
from jitkernels.disk import say_once

MAGIC = b"jitkernels pack, format 2\n"
LENGTH_BYTES, CHECKSUM_BYTES = 8, 32
MOST_BYTES = 1 << 28
"""Of a header: a larger one is none."""


COMPILER = (
    "native/language", "native/source.py", "native/parsing.py", "native/loop_nest.py", "native/link.py",
    "native/codegen.py", "native/passes.py", "native/ir.py", "native/c.py", "dtypes.py",
)  # fmt: skip


def compiler_version() -> str:
    """The state of the modules that turn a text into code, so that an edit of the compiler is a miss."""
    return states.state_of(*COMPILER)


class Pack:
    """One pack whose header is whole and fits this process. Raises ValueError or OSError for any other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            _demand_private(status)
            start = file.read(len(MAGIC) + LENGTH_BYTES + CHECKSUM_BYTES)
            if not start.startswith(MAGIC):
                raise ValueError("it is not a pack of this format")
            length = int.from_bytes(start[len(MAGIC) :][:LENGTH_BYTES], "little")
            text = file.read(min(length, MOST_BYTES))
        if len(text) != length or sha256(text).digest() != start[-CHECKSUM_BYTES:]:
            raise ValueError("its header is damaged")
        header = json.loads(text)
        self._contents = len(start) + length
        if status.st_size != self._contents + header["bytes"]:
            raise ValueError(f"it has {status.st_size} bytes and not {self._contents + header['bytes']}")
        states.note(header["states"])
        _demand_same(header["for"], environment())
        self.objects: Mapping[str, tuple[int, int, str]] = header["objects"]
        self.records: Mapping[str, Mapping[str, Any]] = header["records"]

    def find(self, key: str) -> bytes | None:
        """An object by the hash of its source, whose content is as the header says; else None."""
        found = self.objects.get(key)
        if found is None:
            return None
        at, size, checksum = found
        try:
            with self.path.open("rb") as file:
                file.seek(self._contents + at)
                content = file.read(size)
        except OSError as error:
            say_once(f"{self.path} cannot", f"the pack {self.path} cannot be read any more: {error}")
            return None
        if sha256(content).hexdigest() != checksum:
            say_once(f"{self.path} damaged", f"the pack {self.path} is damaged: some of its code is left out")
            return None
        return content


def environment() -> dict[str, str]:
    """What a pack is for. The compiler that made it need not be here, nor the libraries that were."""
    own = {name: value for name, value in machine.environment_of_code().items() if name != "llvmlite"}
    return {**own, "python": f"{sys.implementation.cache_tag}", "compiler": compiler_version()}


def _demand_same(wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raise ValueError, naming the first difference, unless a pack is for what is present."""
    for name in ("system", "jitkernels", "compiler", "python", "numpy", "cpu", "features"):
        if wanted.get(name) == present[name]:
            continue
        if name == "compiler":
            raise ValueError("it was made by another state of this version of jitkernels")
        if name == "python":
            own = f"it is for python {wanted.get(name)}, this is {present[name]}"
            raise ValueError(f"{own}: each Python needs packs that were made with it")
        if name == "features":
            there, here = ({*text.split(",")} for text in (wanted.get(name, ""), present[name]))
            more = [f"needs {', '.join(sorted(there - here))}"] if there - here else []
            more += [f"is without {', '.join(sorted(here - there))}"] if here - there else []
            raise ValueError(f"it is for another CPU: it {' and '.join(more)}")
        raise ValueError(f"it is for {name} {wanted.get(name)}, this is {present[name]}")


def _demand_private(status: os.stat_result) -> None:
    """Raise ValueError for a file that is no file, or whose content others could make."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is no file")
    if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
        raise ValueError("it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError("others may write to it: take that right from them (chmod go-w)")


def opened() -> tuple[Pack, ...]:
    """The packs of ``JITKERNELS_PACK`` that fit."""
    named = settings.read("JITKERNELS_PACK")
    return _opened(named) if named else ()


@functools.cache
def _opened(named: str) -> tuple[Pack, ...]:
    return tuple(_fitting(named))


def _fitting(named: str) -> Iterator[Pack]:
    for name in filter(None, named.split(os.pathsep)):
        try:
            yield Pack(Path(name))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error) if isinstance(error, OSError | ValueError) else "its header is damaged"
            say_once(f"pack {name}", f"JITKERNELS_PACK: leaving out the pack {name}: {reason}")


def record_of(name: str, threads: int) -> Any:
    """The content of a record in a pack, by the name of its file; None if none has it."""
    found = (pack.records.get(str(threads), {}).get(name) for pack in opened())
    return next(filter(None, found), None)


def record_names(threads: int) -> list[str]:
    """The names of all records that are in packs."""
    return [name for pack in opened() for name in pack.records.get(str(threads), {})]


def write(place: Path, objects: Mapping[str, bytes], records: Mapping[str, Mapping[str, Any]]) -> int:
    """Write a pack, whole or not at all; its size. Raises OSError where it cannot be written."""
    listed: dict[str, tuple[int, int, str]] = {}
    contents: list[bytes] = []
    known: dict[str, int] = {}
    end = 0
    for key, content in sorted(objects.items()):
        checksum = sha256(content).hexdigest()
        if checksum not in known:
            known[checksum] = end
            contents.append(content)
            end += len(content)
        listed[key] = (known[checksum], len(content), checksum)
    header = {
        "for": environment(), "bytes": end, "objects": listed, "records": records, "states": states.noted()
    }  # fmt: skip
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    start = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + sha256(text).digest()
    free = place.with_name(f".unfinished-{os.urandom(8).hex()}")
    handle = os.open(free, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([start, text, *contents])
        free.chmod(0o644)
        free.replace(place)
    except OSError:
        free.unlink(missing_ok=True)
        raise
    return len(start) + len(text) + end
