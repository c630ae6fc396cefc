"""The cache of compiled models on disk: a process that loads a known file neither parses, traces nor packs it.

An entry holds what the first call of an earlier process compiled: its stored entry (`jitkernels.runtime.stored_entry`)
and its arrays, packed weights included. Its name is the SHA-256 of the whole file, so that a changed file is a miss,
whatever its size and times say; hashing takes a millisecond for each megabyte, a fraction of reading and packing them.
It is hashed only where an entry for a file of that size exists. The facts in an entry, of which each must be as it was,
are those that decide what would be compiled now: package, plug-ins, processor, settings, measurements, and the content
of external data. Kernels of which the program has registered implementations keep an entry from being used. All else is
a miss: an entry that is damaged, or whose objects are gone.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitkernels.attrs.schema import plugins
from jitkernels.codegen import object_cache
from jitkernels.core import array_archive, cache_dirs, environment, settings, source_hash, versions
from jitkernels.core.array_archive import ArrayArchive, DamagedError
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.hashing import digest
from jitkernels.errors import BuildError, ModelError
from jitkernels.onnx.model_interface import ModelInterface
from jitkernels.onnx.model_source import ModelFile, ModelSource
from jitkernels.runtime import stored_entry
from jitkernels.runtime.threads.num_threads import get_num_threads

if TYPE_CHECKING:
    from threading import Thread

    from jitkernels.compiler.export.store_entry import CallDescription

MODEL_FORMAT = 2
MODELS, MODEL_SUFFIX = "models", ".model"
MAX_MODEL_BYTES = 1 << 33
"""The most bytes of all entries of an environment: those that were used least recently make room."""
MIN_FREE_SHARE = 4
"""An entry may take at most a fourth of the free space of the disk."""
OLDEST_DRAFT_SECONDS = 3600
"""Age from which a file that some process has begun to write counts as abandoned."""
UNUSED_SETTINGS = frozenset({
    "JITKERNELS_CACHE_DIR", "JITKERNELS_WORKDIR", "JITKERNELS_KEEP_INTERM", "JITKERNELS_COMPILER",
    "JITKERNELS_NUM_THREADS",
})  # fmt: skip
"""Settings that do not decide what is compiled; the number of threads counts by itself."""
ALWAYS_MEASURED = ("fused", "program", "matmul")
"""Kernels whose measurements may decide about the code of any model."""
NOT_COMPILED_BY = frozenset({"benchmarks", "tools"})
"""The folders of the package that do not decide what is compiled."""

_writers: list["Thread"] = []
"""Threads that write entries: hashing and writing a large model takes as long as computing its first results."""


class CachedModel:
    """An entry that fits: what the model declares, and its compiled code."""

    def __init__(self, archive: ArrayArchive, external: Sequence[ModelFile]) -> None:
        self._archive, self._external = archive, external
        self._function: Any = None
        self.interface = ModelInterface.of_json(archive.header["interface"])

    def function(self, slow: Any) -> Any:
        """The compiled function of a tuple of inputs, which returns a tuple; `slow` serves what it does not accept.

        None, and one log line, where the entry is damaged or its objects are gone. Callers hold `build_lock`, so that
        the arrays are read once.
        """
        try:
            if self._function is None:
                entry = self._archive.header["entry"]
                self._function = stored_entry.function_of(entry, self._archive.arrays(), slow)
            return self._function
        except (OSError, DamagedError, BuildError) as error:
            warn_once(str(self._archive.path), f"{self._archive.path}: {error}: the model is compiled again")
            return None

    def external_files(self) -> dict[Path, ModelFile]:
        """The open files of external data. Raises ModelError where one was written to since the model was loaded."""
        for file in self._external:
            file.digest()
        return {file.path: file for file in self._external}


def find(source: ModelSource, *, winograd: bool) -> CachedModel | None:
    """The entry for a model file; None if there is none that fits."""
    folder = _folder()
    if folder is None or source.folder is None or are_pinned():
        return None
    try:
        if not any(name.startswith(f"{source.size}-") for name in os.listdir(folder)):
            return None
        path = folder / _name(source, winograd=winograd)
        archive = ArrayArchive(path)
    except FileNotFoundError:
        return None
    except (OSError, DamagedError, ValueError) as error:
        warn_once(str(folder), f"{folder}: {error}: the model is compiled again")
        return None
    if archive.header["facts"] != _facts(archive.header["kernels"]) or _are_replaced(archive.header["kernels"]):
        return None
    external = _external_files(source.folder, archive.header["external"])
    if external is None:
        return None
    with suppress(OSError):  # a cache that others prepared
        os.utime(path)
    return CachedModel(archive, external)


def store(
    source: ModelSource,
    interface: ModelInterface,
    code: "CallDescription",
    *,
    external: Sequence[ModelFile],
    winograd: bool,
) -> str:
    """Let a thread write the entry of a model file, for which the process waits at its end; what is done, as text.

    `external`: the other files with data of the model.
    """
    from threading import Thread

    folder, size = object_cache.directory_of(MODELS), sum(array.nbytes for array in code.arrays)
    if any(file.is_linked for file in external):
        return "not kept, as files of external data are links"
    if folder is None:
        return "not kept, as there is no cache folder that can be written"
    if size > MAX_MODEL_BYTES or not _has_room(folder, size):
        return f"not kept, as its {size:,} bytes are too many for the disk of the cache"
    listed = sorted({*ALWAYS_MEASURED, *code.kernels})
    facts = {**_chosen(), "measurements": _measurements(listed)}  # of which a program may change some meanwhile
    header = {"facts": facts, "kernels": listed, "interface": interface.as_json(), "entry": code.entry}
    writer = Thread(target=_write, args=(source, header, code.arrays, external), kwargs={"winograd": winograd})
    _writers[:] = [*filter(Thread.is_alive, _writers), writer]
    try:
        writer.start()
    except RuntimeError:  # the system has no more threads, or the process ends
        _writers.remove(writer)
        return "not kept, as no thread could be started that writes it"
    return "written to the cache"


def wait_for_writers() -> None:
    """Wait until all entries are written."""
    while _writers:
        _writers.pop().join()


def _write(
    source: ModelSource, header: dict[str, Any], arrays: Sequence[Any], external: Sequence[ModelFile], *, winograd: bool
) -> None:
    folder = object_cache.directory_of(MODELS)
    if folder is None or source.folder is None:
        return
    try:
        files = [[file.relative_to(source.folder), file.size, file.digest()] for file in external]
        path = folder / _name(source, winograd=winograd)
    except ModelError:  # written to meanwhile
        return
    if not all(file.is_untouched() for file in (source, *external)):
        return
    facts = {**_facts(header["kernels"]), **header["facts"]}  # as they were when it was compiled
    array_archive.write(path, {**header, "facts": facts, "external": files}, arrays)
    _make_room(folder)


def are_pinned() -> bool:
    """Whether this code runs inside of a ``with jk.use(...)`` block, whose module is loaded then."""
    overrides: Any = sys.modules.get("jitkernels.selection.overrides")
    return overrides is not None and overrides.are_pinned_here()


def _are_replaced(kernels: Sequence[str]) -> bool:
    """Whether the program has registered implementations of kernels, for which it imported the registry."""
    registry: Any = sys.modules.get("jitkernels.attrs.schema.registry")
    return registry is not None and not registry.foreign_kernels().isdisjoint(kernels)


def _folder() -> Path | None:
    """The folder of entries, if there is one that only this user can write."""
    root = cache_dirs.cache_root()
    folder = None if root is None else object_cache.path_of_directory(root, MODELS)
    return folder if folder is not None and folder.is_dir() and cache_dirs.private(folder) is not None else None


def _name(source: ModelSource, *, winograd: bool) -> str:
    """The file name of an entry; its first part tells which files need not be hashed."""
    return f"{source.size}-{digest([source.digest(), winograd])}{MODEL_SUFFIX}"


def _facts(kernels: Sequence[str]) -> dict[str, Any]:
    """Everything besides the model that decides what is compiled, as JSON."""
    return {
        "format": MODEL_FORMAT,
        "environment": environment.environment_of_code(),
        "package": source_hash.state_of(*_parts()),
        "python": sys.implementation.cache_tag,
        "onnx": versions.version("onnx"),
        "plugins": plugins.state(),
        "measurements": _measurements(kernels),
        **_chosen(),
    }


def _parts() -> list[str]:
    """The folders of the package that decide what is compiled."""
    with os.scandir(source_hash.PACKAGE) as entries:
        folders = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(("_", "."))]
    return sorted(set(folders) - NOT_COMPILED_BY)


def _chosen() -> dict[str, Any]:
    """The facts that a program may change."""
    chosen = {name: value for name, value in settings.present().items() if name not in UNUSED_SETTINGS}
    return {"threads": get_num_threads(), "settings": chosen}


def _measurements(kernels: Sequence[str]) -> list[list[Any]]:
    """The names, sizes and times of the tuning records of kernels."""
    folder = cache_dirs.timings_directory(get_num_threads())
    with suppress(OSError):
        names = [] if folder is None else os.listdir(folder)
        known = [name for name in sorted(names) if name.partition("-")[0] in kernels]
        states = [(folder / name).stat() for name in known] if folder else []
        return [[name, state.st_size, state.st_mtime_ns] for name, state in zip(known, states, strict=True)]
    return []


def _external_files(folder: Path, listed: Sequence[Sequence[Any]]) -> list[ModelFile] | None:
    """The files with data of a model; None where one of them is not as it was."""
    files = []
    for name, size, content in listed:
        try:
            file = ModelFile(folder / name)
            if file.path != folder / name or file.size != size or file.digest() != content:
                return None
        except (OSError, ModelError):
            return None
        files.append(file)
    return files


def _has_room(folder: Path, size: int) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return size * MIN_FREE_SHARE <= disk.f_bavail * disk.f_frsize


def _make_room(folder: Path) -> None:
    """Delete entries that were not used for longest where all take too much, and drafts of processes that ended."""
    with suppress(OSError), os.scandir(folder) as entries:
        states = [(entry.stat(), entry.path) for entry in entries]
        latest = sorted(((state.st_mtime, state.st_size, path) for state, path in states), reverse=True)
        total = 0
        for modified, size, path in latest:
            total += size
            is_draft = not path.endswith(MODEL_SUFFIX) and time.time() - modified > OLDEST_DRAFT_SECONDS
            if is_draft or total > MAX_MODEL_BYTES:
                with suppress(OSError):  # another process has deleted it
                    os.unlink(path)
