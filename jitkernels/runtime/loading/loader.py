"""From a source to the address of its machine code in this process: built once, kept, mapped, remembered."""

import ctypes
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from jitkernels import machine, packs, settings
from jitkernels.errors import BuildError
from jitkernels.locks import making
from jitkernels.native import cache
from jitkernels.native.placing import Placed, place
from jitkernels.native.source import External, Source, digest_of, symbol_of

_loaded: dict[str, Placed] = {}
"""Code that stays as long as the process."""
watchers: list[Callable[[Source, bytes], None]] = []
"""Who is told of each object that is brought into the process, and of its content."""
_openings = itertools.count()
_held: "WeakValueDictionary[str, Placed]" = WeakValueDictionary()
"""All code, also what goes when nobody has it any more."""


def address_of(source: Source) -> int:
    """Address of the entry of a source, building it if neither this process nor the cache has it.

    Raises BuildError when it cannot be built or loaded, or an external cannot be found.
    """
    return _for_good(source).address


def _for_good(source: Source) -> Placed:
    symbol = symbol_of(source)
    with making:
        if symbol not in _loaded:
            _loaded[symbol] = placed_of(source)
        return _loaded[symbol]


def placed_of(source: Source, *, cached: bool = True) -> Placed:
    """The code of a source, which may go when nobody holds what this gives, or any code that calls it.

    Unless `cached`, the disk has no part in it. Raises as `address_of` does.
    """
    symbol = symbol_of(source)
    with making:
        code = _held.get(symbol)
        if code is None:
            code = _held[symbol] = _load(source, symbol, cached=cached)
            if code.for_good:
                _loaded[symbol] = code
        return code


def keep_for_good(source: Source) -> None:
    """Let the code of a source be there also when the interpreter has ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_for_good(source)))


def is_built(source: Source) -> bool:
    """Whether what a source becomes is in this process or in the cache, so that to have it takes milliseconds."""
    return symbol_of(source) in _loaded or is_kept(source)


def is_kept(source: Source) -> bool:
    """Whether what is built from a source lies in the cache."""
    if any(pack_key(source) in pack.objects for pack in packs.opened()):
        return True
    place = cache.objects_directory()
    return place is not None and os.path.exists(place / f"{cache.key_of(_key(source))}{source.suffix}")


def can_be_had(source: Source) -> bool:
    """Whether there is what a source becomes, or it can be built: without LLVM there is only what was built before."""
    return machine.has_compiler() or is_built(source)


def _key(source: Source) -> str:
    """The symbol is part of the key: two names of one text are two objects."""
    return f"{symbol_of(source)}\n{getattr(source, 'built_by', '')}{digest_of(source)}"


def pack_key(source: Source) -> str:
    """The key of what is built from a source in packs, each of which is for one environment."""
    return f"{source.name}-{digest_of(source)}{source.suffix}"


def packed(source: Source) -> bytes | None:
    """What a source becomes, if a pack has it."""
    given = packs.opened()
    key = pack_key(source) if given else ""
    return next(filter(None, (pack.find(key) for pack in given)), None)


def _load(source: Source, symbol: str, *, cached: bool) -> Placed:
    """Find or build what a source becomes, and bring it into the process."""
    settings.read("JITKERNELS_KEEP_INTERM")  # so that a wrong value is said also where nothing is built
    addresses = {one.symbol: one.address for one in source.externals}

    def address(name: str) -> int:
        return addresses[name]() if name in addresses else _of_system(name)

    content, path = built(source, cached=cached)
    try:
        if source.suffix == ".so":
            return _open(content, path, symbol)
        placed = place(content, symbol, address)
        if placed is None:
            from jitkernels.native import linker

            placed = linker.mapped(content, symbol, source.externals)
        return placed
    except BuildError:
        raise
    except (OSError, RuntimeError, AttributeError, LookupError) as error:
        raise BuildError(f"cannot load {source.name} ({path or 'not cached'}): {error}") from error


def built(source: Source, *, cached: bool = True) -> tuple[bytes, Path | None]:
    """What a source becomes, out of a pack or the cache or built now, and the file that the cache has of it.

    Raises BuildError when it cannot be built.
    """
    symbol = symbol_of(source)

    def build() -> bytes:
        try:
            return source.object_code(symbol)
        except ImportError as error:
            raise BuildError(
                f"{source.name} cannot be built, and neither the cache nor a pack has it: {error}"
            ) from error

    found = packed(source) if cached else None
    if found is not None:
        content, path = found, None
    else:
        content, path = cache.fetch(_key(source), source.suffix, build) if cached else (build(), None)
    for watch in watchers:
        watch(source, content)
    return content, path


def _of_system(name: str) -> int:
    """A function of C that LLVM calls where no source says so, such as ``memset``."""
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


def _open(content: bytes, path: Path | None, symbol: str) -> Placed:
    """Let the system open a shared library, which takes a file."""
    if path is None and hasattr(os, "memfd_create"):
        memory = os.memfd_create(symbol, os.MFD_CLOEXEC)
        try:
            with os.fdopen(memory, "wb", closefd=False) as whole:
                whole.write(content)
            # The system takes a library that was opened by the same name for this one, and numbers are used again.
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


def _opened(path: str, symbol: str) -> Placed:
    library = ctypes.CDLL(path)  # never closed: ctypes has no way to
    return Placed({}, ctypes.cast(library[symbol], ctypes.c_void_p).value or 0)


def functions_of(source: Source, names: tuple[str, ...]) -> dict[str, int]:
    """Addresses of further functions and variables that an already loaded object defines."""
    symbols = _for_good(source).symbols
    return {name: symbols[name] for name in names}


def entry_of(source: Source, arguments: tuple[str, ...]) -> Any:
    """The entry of a source as a function that loop nests call; it returns a status."""
    return External(symbol_of(source), "int64", arguments, lambda: address_of(source), lambda: source)


def range_of(source: Source, arguments: tuple[str, ...]) -> Any:
    """The range function of a source that has one, as a function that loop nests call: arguments, begin, end."""
    name = f"{symbol_of(source)}_range"
    ranged = (*arguments, "int64", "int64")
    return External(name, "int64", ranged, lambda: functions_of(source, (name,))[name], lambda: source)
