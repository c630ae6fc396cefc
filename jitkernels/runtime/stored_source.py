"""Stored sources: a source of machine code by its key and by what it links to, as JSON.

Making a source costs far more than loading its object: a graph is traced, and the bytecode of kernels becomes their
keys. A stored source has the key alone; only objects that the cache or a pack has can be loaded by it.

Of functions that are built when a call first needs them, those are stored that were built: code that needs another one
says so, and its caller compiles again.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from jitkernels.codegen.source_protocol import External, Source, digest_of, symbol_of
from jitkernels.core.c_symbols import symbol_address
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import BuildError
from jitkernels.runtime import c_api, vectorcall
from jitkernels.runtime.loading import lazy_link, loader
from jitkernels.runtime.threads import team_size

IN_PROCESS, NOT_BUILT = -1, -2
"""In place of the number of a source: what each process has, and a lazy function that nobody has built."""


class NotStorableError(Exception):
    """Code or data that only this process has."""


@frozen_dataclass
class StoredSource:
    """A source by its key. `digest` is that of the source it stands for: both have one symbol and one object."""

    name: str
    digest: str
    externals: tuple[External, ...] = field(compare=False, repr=False)
    suffix: str = ".o"
    built_by: str = ""
    text: str = ""
    has_range: bool = False

    def __post_init__(self) -> None:
        self.__dict__["_digest"] = self.digest

    def object_code(self, symbol: str) -> bytes:
        """Raises BuildError: the object is no longer there."""
        raise BuildError(f"{symbol} is not in the cache")


def described(*sources: Source) -> list[dict[str, Any]]:
    """Sources and all that they link to, as JSON, each after what it links to; the last ones are `sources`.

    Raises NotStorableError where one links to what a process finds by no name.
    """
    known: dict[str, int] = {}
    table: list[dict[str, Any]] = []
    here = process_externals()

    def add(source: Source) -> int:
        symbol = symbol_of(source)
        if symbol in known:
            return known[symbol]
        links: list[tuple[str, int]] = []
        for external in source.externals:
            lazy = lazy_link.of_words(external.symbol)
            if external.symbol in here:
                links.append((external.symbol, IN_PROCESS))
            elif external.source is None:
                raise NotStorableError(f"{symbol} links to {external.symbol}")
            else:
                is_missing = lazy is not None and not lazy.is_there
                links.append((external.symbol, NOT_BUILT if is_missing else add(external.source())))
        known[symbol] = len(table)
        table.append({
            "name": source.name, "digest": digest_of(source), "suffix": source.suffix,
            "built_by": getattr(source, "built_by", ""), "links": links,
        })  # fmt: skip
        return known[symbol]

    for source in sources:
        add(source)
    return [*table, *({"same": known[symbol_of(source)]} for source in sources)]


def restored(table: Sequence[Mapping[str, Any]]) -> list[Source]:
    """The sources that `described` has described, in their order."""
    here, sources = process_externals(), list[StoredSource]()
    results: list[Source] = []
    for one in table:
        if "same" in one:
            results.append(sources[one["same"]])
            continue
        links = tuple(_linked(symbol, at, sources, here) for symbol, at in one["links"])
        sources.append(StoredSource(one["name"], one["digest"], links, one["suffix"], one["built_by"]))
    return results


def _linked(symbol: str, at: int, sources: Sequence[StoredSource], here: Mapping[str, External]) -> External:
    if at == IN_PROCESS:
        return here[symbol]
    if at == NOT_BUILT:
        return External(symbol, "int64", (), partial(_words, symbol, None))
    find = _words if lazy_link.is_of_words(symbol) else _address
    return External(symbol, "void", (), partial(find, symbol, sources[at]), partial(sources.__getitem__, at))


def _address(symbol: str, source: Source) -> int:
    """The address of a function of a source's object.

    Names of functions beside the entry begin with that of the entry. Other names are further ones of the entry, such as
    those of slow paths.
    """
    if symbol == symbol_of(source) or not symbol.startswith(symbol_of(source)):
        return loader.address_of(source)
    return loader.functions_of(source, (symbol,))[symbol]


def _words(symbol: str, source: Source | None) -> int:
    """The address of the words of a lazy function, which lead to its source if that was built."""
    if source is not None:
        lazy_link.bring(symbol, source)
    return ctypes.addressof(lazy_link.words_of(symbol))


def process_externals() -> dict[str, External]:
    """Functions and objects that each process has, by symbol."""
    return {one.symbol: one for one in _process_externals()}


def _process_externals() -> Iterator[External]:
    yield from vectorcall.externals()
    yield from c_api.signals()
    yield from c_api.calling()
    yield from team_size.externals()
    yield team_size.sharing_function()
    yield team_size.run_function()
    yield team_size.parallel_loop_function()
    yield External("sched_yield", "int32", (), partial(symbol_address, "sched_yield"))
