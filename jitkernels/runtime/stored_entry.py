"""Stored entries: the compiled entry of a function and its segment as JSON, which a process links without the compiler.

An entry is a link of an inline cache: machine code, and a context of objects and addresses. A process that has the
objects of the code in its cache, and the arrays, makes the context again.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import Source
from jitkernels.core import dtypes
from jitkernels.errors import BuildError
from jitkernels.runtime import inline_cache, stored_source, vectorcall
from jitkernels.runtime.loading import loader
from jitkernels.runtime.stored_source import NotStorableError

TYPES: dict[str, object] = {"tuple": tuple, "list": list, "ndarray": np.ndarray}
"""Objects that the context of a stored entry may refer to, by name."""
ADDRESS_SLOT, ARRAY_SLOT, TYPE_SLOT = "address", "array", "type"
"""Kinds of context slots: the address of an array's elements, an array object, and one of `TYPES`."""


def described(
    entry: Source, segment: Source, *, count: int, objects: Sequence[Any], own: frozenset[int], max_work: int
) -> tuple[dict[str, Any], list[Any]]:
    """An entry that takes `count` positional arguments as JSON, and the arrays in its context.

    `objects` fill the context slots; those in `own` hold addresses of elements. Raises NotStorableError where the code
    or an object exists in this process only.
    """
    slots: list[tuple[str, Any]] = []
    arrays: list[Any] = []
    names = {id(one): name for name, one in TYPES.items()}
    for i, held in enumerate(objects):
        if id(held) in names:
            slots.append((TYPE_SLOT, names[id(held)]))
        elif type(held) is np.ndarray and held.flags.c_contiguous and held.dtype.name in dtypes.TABLE:
            slots.append((ADDRESS_SLOT if i in own else ARRAY_SLOT, len(arrays)))
            arrays.append(held)
        else:
            raise NotStorableError(f"an object of type {type(held).__name__}")
    sources = stored_source.described(entry, segment)
    return {"count": count, "max_work": max_work, "slots": slots, "sources": sources}, arrays


def function_of(description: Mapping[str, Any], arrays: Sequence[Any], slow: Any) -> Any:
    """A callable that runs a stored entry, and `slow` for calls that the entry does not accept.

    Raises BuildError where an object is no longer in the cache.
    """
    function: Any = _kind()()
    function.link, function.slow, function.table = (
        _Link(description, arrays),
        slow,
        inline_cache.new_table(slow, takes_out=True),
    )
    vectorcall.attach(function, function.table)
    inline_cache.enter(function.table, function.link.link)
    return function


@functools.cache
def _kind() -> type:
    """The type of callables of stored entries."""
    base = vectorcall.base()
    if base is None:
        raise BuildError("a Python or NumPy whose objects compiled code cannot read")
    kind = type("StoredFunction", (base,), {})
    vectorcall.prepare(kind)
    return kind


class _Link:
    """An inline-cache link to a stored entry; owns the code and objects that it uses."""

    def __init__(self, description: Mapping[str, Any], arrays: Sequence[Any]) -> None:
        entry, segment = stored_source.restored(description["sources"])
        self.code, self.segment, self.arrays = loader.load(entry), loader.load(segment), arrays
        words = [_word(kind, of, arrays) for kind, of in description["slots"]]
        self.context = np.array([*words, self.segment.address, description["max_work"], 0], np.int64)
        self.link = inline_cache.link(self.code.address, self.context.ctypes.data, description["count"])


def _word(kind: str, of: Any, arrays: Sequence[Any]) -> int:
    """The content of a context slot."""
    if kind == TYPE_SLOT:
        return id(TYPES[of])
    return int(arrays[of].ctypes.data) if kind == ADDRESS_SLOT else id(arrays[of])
