"""The objects of a compiled function as bytes, which its pickles carry: another process of its kind builds nothing.

That process traces the function and finds each object by the hash of its source, as it would in the cache on disk.
Objects are left out, and compiled there, where they exist in this process only, or where all are too many.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jitkernels.codegen.source_protocol import Source, symbol_of
from jitkernels.runtime import fp_status, python_fallback
from jitkernels.runtime.loading import lazy_link, loader
from jitkernels.runtime.loading.object_payload import EMPTY, Payload, payload_with

if TYPE_CHECKING:
    from jitkernels.compiler.dispatch.compiled_link import CompiledLink

MAX_PAYLOAD_BYTES = 180_000
"""The most bytes of the objects in a pickle, which may be sent with each task of a graph."""


def payload_of(links: "Iterable[CompiledLink]") -> Payload:
    """The objects that compiled entries use, those that every process needs included."""
    sources: dict[str, Source] = {}
    for link in links:
        for source in link.sources:
            _collect(source, sources)
    if not sources:
        return EMPTY
    for needed in _process_sources():
        if sources.setdefault(symbol_of(needed), needed) is needed and loader.is_loadable(needed):
            loader.built(needed)  # which this process may not have needed
    packed = dict(_packed(sources.values()))
    total = 0
    objects: dict[str, bytes] = {}
    for key in sorted(packed, key=lambda key: len(packed[key])):
        total += len(packed[key])
        if total <= MAX_PAYLOAD_BYTES:
            objects[key] = packed[key]
    return payload_with(objects)


def _collect(source: Source, found: dict[str, Source]) -> None:
    """A source and all that it links to, but for functions that no call has needed."""
    symbol = symbol_of(source)
    if symbol in found:
        return
    found[symbol] = source
    for external in source.externals:
        lazy = lazy_link.of_words(external.symbol)
        if external.source is not None and (lazy is None or lazy.is_there):
            _collect(external.source(), found)


def _process_sources() -> Iterator[Source]:
    """The sources that calls of compiled functions may need in any process, and those that were needed in this one."""
    yield from (fp_status.source(), python_fallback.source())
    yield from loader.runtime_sources.values()


def _packed(sources: Iterable[Source]) -> Iterator[tuple[str, bytes]]:
    """The objects that are built, compressed, by the keys of archives."""
    for source in sources:
        if not getattr(source, "is_transient", False) and loader.is_kept(source):
            content, _ = loader.built(source)
            yield loader.pack_key(source), zlib.compress(content)
