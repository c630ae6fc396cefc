"""Load sources: from a source to the address of its machine code in this process, built once and cached."""

import ctypes
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from jitkernels.codegen import kernel_archive, object_cache
from jitkernels.codegen.ir_source import I64Source, IRSource
from jitkernels.codegen.source_protocol import External, Source, digest_of, symbol_of
from jitkernels.core import cpu_target, settings
from jitkernels.core.c_symbols import symbol_address
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BuildError
from jitkernels.runtime.loading.elf_loader import LoadedObject, load_object

_loaded: dict[str, LoadedObject] = {}
"""Code that stays for the life of the process."""
runtime_sources: dict[str, Source] = {}
"""Sources of code that is no kernel, such as that of threads: processes that do the same need them all, by symbol."""
watchers: list[Callable[[Source, bytes], None]] = []
"""Callbacks for each object that is loaded, with its content."""
begun_elsewhere: list[Callable[[str], None]] = []
"""Callbacks before a source is built, with its symbol: they wait for what builds it already."""
part_builders: list[Callable[[str], None]] = []
"""Callbacks that build the lazy function whose words have a symbol."""
_openings = itertools.count()
_held: "WeakValueDictionary[str, LoadedObject]" = WeakValueDictionary()
"""All loaded code, including code that is freed with its last reference."""


def address_of(source: Source) -> int:
    """The address of a source's entry; built if neither this process nor the cache has it.

    Raises BuildError if it cannot be built or loaded, or an external cannot be resolved.
    """
    return _for_good(source).address


def _for_good(source: Source) -> LoadedObject:
    symbol = symbol_of(source)
    with build_lock:
        if symbol not in _loaded:
            _loaded[symbol] = load(source)
            if isinstance(source, IRSource | I64Source):
                runtime_sources[symbol] = source
        return _loaded[symbol]


def load(source: Source, *, cached: bool = True) -> LoadedObject:
    """The loaded code of a source, which is freed with the last reference to the result or to code that calls it.

    Unless `cached`, the disk cache is not used. Raises as `address_of` does.
    """
    symbol = symbol_of(source)
    with build_lock:
        code = _held.get(symbol)
        if code is None:
            cached = cached and not getattr(source, "is_transient", False)
            code = _held[symbol] = _load(source, symbol, cached=cached)
            if code.for_good:
                _loaded[symbol] = code
        return code


def keep_for_good(source: Source) -> None:
    """Keep the code of a source even after the interpreter has exited."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_for_good(source)))


def is_built(source: Source) -> bool:
    """Return whether the object is in this process or in the cache, so that loading takes milliseconds."""
    return symbol_of(source) in _loaded or is_kept(source)


def is_kept(source: Source) -> bool:
    """Return whether the object of a source is in the cache or an archive."""
    if any(pack_key(source) in pack.objects for pack in kernel_archive.opened()):
        return True
    directory = object_cache.objects_directory()
    return directory is not None and os.path.exists(directory / f"{object_cache.key_of(_key(source))}{source.suffix}")


def keep(source: Source, content: bytes) -> None:
    """Write an object that another process has built to the cache."""
    directory = object_cache.objects_directory()
    if directory is not None:
        object_cache.keep(directory / f"{object_cache.key_of(_key(source))}{source.suffix}", content)


def is_loadable(source: Source) -> bool:
    """Return whether the object exists or can be built: without LLVM only existing objects can be loaded."""
    return cpu_target.has_compiler() or is_built(source)


def _key(source: Source) -> str:
    """The symbol is part of the key: two names of one text are two objects."""
    return f"{symbol_of(source)}\n{getattr(source, 'built_by', '')}{digest_of(source)}"


def pack_key(source: Source) -> str:
    """The key of an object in archives, each of which is for one environment."""
    return f"{source.name}-{digest_of(source)}{source.suffix}"


def packed(source: Source) -> bytes | None:
    """The object of a source, if an archive has it."""
    archives = kernel_archive.opened()
    key = pack_key(source) if archives else ""
    return next(filter(None, (pack.find(key) for pack in archives)), None)


def _load(source: Source, symbol: str, *, cached: bool) -> LoadedObject:
    """Find or build the object of a source, and load it."""
    for name in ("JITKERNELS_KEEP_INTERM", "JITKERNELS_COMPILER"):
        settings.read(name)  # report a wrong value even if nothing is built
    addresses = {external.symbol: external.address for external in source.externals}

    def address(name: str) -> int:
        """Others are functions of libc that LLVM calls implicitly, such as ``memset``."""
        return addresses[name]() if name in addresses else symbol_address(name)

    content, path = built(source, cached=cached)
    try:
        if source.suffix == ".so":
            return _open(content, path, symbol)
        loaded = load_object(content, symbol, address)
        if loaded is None:
            from jitkernels.runtime.loading import mcjit_loader

            loaded = mcjit_loader.mapped(content, symbol, source.externals)
        return loaded
    except BuildError:
        raise
    except (OSError, RuntimeError, AttributeError, LookupError) as error:
        raise BuildError(f"cannot load {source.name} ({path or 'not cached'}): {error}") from error


def built(source: Source, *, cached: bool = True) -> tuple[bytes, Path | None]:
    """The object of a source, from an archive, the cache or built now, and its file in the cache.

    Raises BuildError if it cannot be built.
    """
    symbol = symbol_of(source)
    for wait in begun_elsewhere if cached else ():
        wait(symbol)

    def build() -> bytes:
        try:
            return source.object_code(symbol)
        except ImportError as error:
            raise BuildError(
                f"{source.name} cannot be built, and neither the cache nor a pack has it: {error}"
            ) from error

    archived = packed(source) if cached else None
    if archived is not None:
        content, path = archived, None
    else:
        content, path = object_cache.fetch(_key(source), source.suffix, build) if cached else (build(), None)
    for watch in watchers:
        watch(source, content)
    return content, path


def _open(content: bytes, path: Path | None, symbol: str) -> LoadedObject:
    """Let the system open a shared library, which needs a file."""
    if path is None and hasattr(os, "memfd_create"):
        memory = os.memfd_create(symbol, os.MFD_CLOEXEC)
        try:
            with os.fdopen(memory, "wb", closefd=False) as whole:
                whole.write(content)
            # dlopen identifies libraries by path, and descriptor numbers are reused.
            return _opened(f"/proc/self/fd/{next(_openings) * './'}{memory}", symbol)
        finally:
            os.close(memory)
    if path is None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
            file = Path(folder, f"{symbol}.so")
            file.write_bytes(content)
            return _opened(str(file), symbol)
    return _opened(str(path), symbol)


def _opened(path: str, symbol: str) -> LoadedObject:
    library = ctypes.CDLL(path)  # never closed: ctypes cannot
    return LoadedObject({}, symbol_address(symbol, library))


def functions_of(source: Source, names: tuple[str, ...]) -> dict[str, int]:
    """Addresses of further functions and variables of a loaded object."""
    symbols = _for_good(source).symbols
    return {name: symbols[name] for name in names}


def entry_of(source: Source, arguments: tuple[str, ...], python: Callable[..., Any] | None = None) -> Any:
    """The entry of a source as a function that range kernels call; it returns a status. `python`: see `IRFunction`."""
    return External(symbol_of(source), "int64", arguments, lambda: _whole_address(source), lambda: source, python)


def checked_entry_of(source: Source, arguments: tuple[str, ...]) -> tuple[External, External]:
    """The entry of a kernel in parts, and its check, for callers that call the check before they write anything.

    What the check finds missing is built then (`lazy_link`).
    """
    symbol = symbol_of(source)
    name = f"{symbol}_check"
    entry = External(symbol, "int64", arguments, lambda: address_of(source), lambda: source)
    return entry, External(name, "int64", arguments, lambda: functions_of(source, (name,))[name], lambda: source)


def _whole_address(source: Source) -> int:
    """The address of the entry, after all parts of a kernel are there."""
    address = address_of(source)
    for part in getattr(source, "parts", ()):
        for bring in part_builders:
            bring(part.symbol)
    return address


def range_of(source: Source, arguments: tuple[str, ...]) -> Any:
    """The range function of a source as a function that range kernels call: arguments, begin, end."""
    name = f"{symbol_of(source)}_range"
    ranged = (*arguments, "int64", "int64")

    def address() -> int:
        _whole_address(source)
        return functions_of(source, (name,))[name]

    return External(name, "int64", ranged, address, lambda: source)
