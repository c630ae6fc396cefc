"""Kernel archives (packs): read-only files of built objects and tuning records, so that a process needs no compiler.

``JITKERNELS_PACK`` names them, and the package `jitkernels_warm` has more, where it is installed. Their objects are
used as if they were in the cache; the cache itself has precedence. `jitkernels.tools.archive_builder` builds them, and
`jitkernels.tools.warm_wheel` makes that package of them.

An archive is a magic line, the length and SHA-256 of a header, the header as JSON, and the contents of objects, each
with a SHA-256 in the header. The header holds the processor, package, NumPy and Python that the archive is for, and
the offset of each object by the hash of its source. An archive for anything else is ignored, with one log line, and
so is one that is damaged or writable by others: machine code is loaded from it.
"""

import functools
import importlib.util
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jitkernels.core import cpu_target, environment, settings, source_hash
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.fork_locks import writing
from jitkernels.core.hashing import sha256

WARM_PACKAGE = "jitkernels_warm"
"""The import name of the package of archives, one per CPU family and Python."""
MAGIC = b"jitkernels pack, format 2\n"
LENGTH_BYTES, CHECKSUM_BYTES = 8, 32
MAX_HEADER_BYTES = 1 << 28
"""The most bytes of a header; a larger length is damage."""
MAX_CARRIED_BYTES = 1 << 26
"""The most bytes of compressed objects that a process holds; those that came first make room."""


COMPILER = (
    "codegen/python", "codegen/source_protocol.py", "codegen/function_ast.py", "codegen/range_kernel.py",
    "codegen/module_link.py", "codegen/compile_job.py", "codegen/compiling.py",
    "codegen/llvm_backend.py", "codegen/llvm_passes.py", "codegen/ir_source.py", "codegen/c_source.py",
    "core/dtypes.py",
)  # fmt: skip


def compiler_version() -> str:
    """The source hash of the compiler's modules, so that an edit of the compiler is a miss."""
    return source_hash.state_of(*COMPILER)


class KernelArchive:
    """One archive whose header is intact and fits this process. Raises ValueError or OSError for any other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        header, self._contents = _header(path)
        source_hash.note(header["states"])
        _demand_same(header["for"], archive_environment())
        self.objects: Mapping[str, tuple[int, int, str]] = header["objects"]
        self.records: Mapping[str, Mapping[str, Any]] = header["records"]

    def find(self, key: str) -> bytes | None:
        """Return an object by the hash of its source, if its checksum holds; else None."""
        entry = self.objects.get(key)
        if entry is None:
            return None
        offset, size, checksum = entry
        try:
            with self.path.open("rb") as file:
                file.seek(self._contents + offset)
                content = file.read(size)
        except OSError as error:
            warn_once(f"{self.path} cannot", f"the pack {self.path} cannot be read any more: {error}")
            return None
        if sha256(content).hexdigest() != checksum:
            warn_once(f"{self.path} damaged", f"the pack {self.path} is damaged: some of its code is left out")
            return None
        return content


class CarriedObjects:
    """An archive in memory: the objects that came with pickles, for this environment, compressed.

    A process whose own cache is empty starts warm with them.
    """

    records: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._bytes = 0

    def find(self, key: str) -> bytes | None:
        """Return an object by the hash of its source, or None."""
        packed = self.objects.get(key)
        return None if packed is None else zlib.decompress(packed)

    def has_all(self, keys: Iterable[str]) -> bool:
        """Whether none of these objects is missing, or was dropped for later ones."""
        return all(key in self.objects for key in keys)

    def admit(self, objects: Mapping[str, bytes]) -> None:
        """Add compressed objects, which are for this environment."""
        with writing:
            for key, packed in objects.items():
                if key not in self.objects:
                    self._bytes += len(packed)
                    self.objects[key] = packed
            while self._bytes > MAX_CARRIED_BYTES:
                self._bytes -= len(self.objects.pop(next(iter(self.objects))))


carried = CarriedObjects()
"""The objects of this process."""


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header of an intact archive, and the offset of the contents."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        _demand_private(status)
        start = file.read(len(MAGIC) + LENGTH_BYTES + CHECKSUM_BYTES)
        if not start.startswith(MAGIC):
            raise ValueError("it is not a pack of this format")
        length = int.from_bytes(start[len(MAGIC) :][:LENGTH_BYTES], "little")
        text = file.read(min(length, MAX_HEADER_BYTES))
    if len(text) != length or sha256(text).digest() != start[-CHECKSUM_BYTES:]:
        raise ValueError("its header is damaged")
    header = json.loads(text)
    contents = len(start) + length
    if status.st_size != contents + header["bytes"]:
        raise ValueError(f"it has {status.st_size} bytes and not {contents + header['bytes']}")
    return header, contents


def environment_of(path: Path) -> dict[str, str]:
    """The environment that an archive is for. Raises ValueError or OSError for anything but an intact archive."""
    required: dict[str, str] = _header(path)[0]["for"]
    return required


def archive_environment() -> dict[str, str]:
    """The environment that an archive is for. It needs neither the compiler that built it nor its libraries."""
    own = {name: value for name, value in environment.environment_of_code().items() if name != "llvmlite"}
    return {**own, "python": f"{sys.implementation.cache_tag}", "compiler": compiler_version()}


def _demand_same(required: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raise ValueError with the first difference between an archive's environment and the present one."""
    for name in ("system", "jitkernels", "compiler", "python", "numpy", "cpu", "features"):
        if required.get(name) == present[name]:
            continue
        if name == "compiler":
            raise ValueError("it was made by another state of this version of jitkernels")
        if name == "python":
            own = f"it is for python {required.get(name)}, this is {present[name]}"
            raise ValueError(f"{own}: each Python needs packs that were made with it")
        if name == "features":
            needed, available = ({*text.split(",")} for text in (required.get(name, ""), present[name]))
            more = [f"needs {', '.join(sorted(needed - available))}"] if needed - available else []
            more += [f"is without {', '.join(sorted(available - needed))}"] if available - needed else []
            raise ValueError(f"it is for another CPU: it {' and '.join(more)}")
        raise ValueError(f"it is for {name} {required.get(name)}, this is {present[name]}")


def _demand_private(status: os.stat_result) -> None:
    """Raise ValueError for anything but a regular file that only its owner or root can write."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
        raise ValueError("it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError("others may write to it: take that right from them (chmod go-w)")


def opened() -> tuple[KernelArchive | CarriedObjects, ...]:
    """The archives of ``JITKERNELS_PACK`` that fit, that of `jitkernels_warm`, and objects of pickles."""
    files = _opened(settings.read("JITKERNELS_PACK"))
    return (*files, carried) if carried.objects else files


@functools.cache
def _opened(named: str) -> tuple[KernelArchive, ...]:
    paths = [Path(name) for name in named.split(os.pathsep) if name]
    return (*_fitting(paths, "JITKERNELS_PACK"), *_fitting(_installed(), WARM_PACKAGE))


def _installed() -> list[Path]:
    """The archive of the package `jitkernels_warm` for this CPU and this Python, if the package is installed."""
    spec = importlib.util.find_spec(WARM_PACKAGE)
    name = installed_name(cpu_target.cpu_name(), f"{sys.implementation.cache_tag}")
    folders = spec.submodule_search_locations or () if spec else ()
    return [path for path in (Path(folder, name) for folder in folders) if path.is_file()]


def installed_name(cpu: str, python: str) -> str:
    """The file name of the archive for a CPU family and a Python in the package `jitkernels_warm`."""
    return f"{cpu}.{python}.pack"


def _fitting(paths: Iterable[Path], origin: str) -> Iterator[KernelArchive]:
    for path in paths:
        try:
            yield KernelArchive(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error) if isinstance(error, OSError | ValueError) else "its header is damaged"
            warn_once(f"pack {path}", f"{origin}: leaving out the pack {path}: {reason}")


def record_of(name: str, threads: int) -> Any:
    """The content of a tuning record, by file name; None if no archive has it."""
    result = (pack.records.get(str(threads), {}).get(name) for pack in opened())
    return next(filter(None, result), None)


def record_names(threads: int) -> list[str]:
    """The names of all tuning records in archives."""
    return [name for pack in opened() for name in pack.records.get(str(threads), {})]


def write(path: Path, objects: Mapping[str, bytes], records: Mapping[str, Mapping[str, Any]]) -> int:
    """Write an archive atomically; return its size. Raises OSError if it cannot be written."""
    listed: dict[str, tuple[int, int, str]] = {}
    contents: list[bytes] = []
    offsets: dict[str, int] = {}
    end = 0
    for key, content in sorted(objects.items()):
        checksum = sha256(content).hexdigest()
        if checksum not in offsets:
            offsets[checksum] = end
            contents.append(content)
            end += len(content)
        listed[key] = (offsets[checksum], len(content), checksum)
    header = {
        "for": archive_environment(), "bytes": end, "objects": listed, "records": records, "states": source_hash.noted()
    }  # fmt: skip
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    start = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + sha256(text).digest()
    temporary = path.with_name(f".unfinished-{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([start, text, *contents])
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return len(start) + len(text) + end
