"""Translations of the package's own scalar functions, kept on disk.

The text of a function is a part of the key of what calls it, so that even a process whose code is all there needs it.
Reading that of `sin` takes a tenth of the time of making it. Short ones are made as quickly as they are read.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jitkernels.codegen import object_cache
from jitkernels.codegen.python.types import NUMBERS, Type, tuple_of
from jitkernels.core.source_hash import state_of

OWN = "jitkernels.microkernels.maths."
"""The package of cached functions."""
MIN_TEXT_CHARS, MIN_CODE_BYTES = 4000, 100
"""The least characters of a cached text, and the least bytecode bytes of a function that is looked up."""
SUFFIX = ".json"
"""The suffix of cache files, which are beside the objects."""


def path_of(function: Callable[..., Any], kinds: Sequence[Type], lanes: int) -> Path | None:
    """The cache file of one of the package's functions; None for other functions, whose constants may change."""
    name = f"{function.__module__}.{function.__qualname__}"
    is_own = name.startswith(OWN) and "<locals>" not in name
    if not is_own or len(function.__code__.co_code) < MIN_CODE_BYTES:
        return None
    directory = object_cache.objects_directory()
    key_parts = ["a translation", name, *(kind.name for kind in kinds), str(lanes), state_of("microkernels/maths")]
    return directory and directory / f"{object_cache.key_of(' '.join(key_parts))}{SUFFIX}"


def read(path: Path, construct: Callable[..., Any]) -> Any:
    """Read a definition from a file with the constructor `made`; None if there is none."""
    content = object_cache.read(path)
    if content is None:
        return None
    definitions: dict[str, Any] = {}
    last = None
    for fields in json.loads(content):
        needed = {symbol: definitions[symbol] for symbol in fields.pop("needed")}
        last = construct(result=_type(fields.pop("result")), needed=needed, **fields)
        definitions[last.symbol] = last
    return last


def keep(path: Path, definition: Any) -> None:
    """Write a definition and its dependences, unless the text is short."""
    listed: dict[str, Any] = {}
    _list(definition, listed)
    if sum(len(entry.text) for entry in listed.values()) < MIN_TEXT_CHARS:
        return
    entries = [
        {
            "lanes": entry.lanes, "symbol": entry.symbol, "result": entry.result.name, "text": entry.text,
            "declared": entry.declared, "needed": list(entry.needed), "declaration": entry.declaration,
            "is_alone": entry.is_alone,
        }
        for entry in listed.values()
    ]  # fmt: skip
    object_cache.keep(path, json.dumps(entries).encode())


def _list(definition: Any, listed: dict[str, Any]) -> None:
    """Collect a definition behind its dependences."""
    if definition.symbol not in listed:
        for needed in definition.needed.values():
            _list(needed, listed)
        listed[definition.symbol] = definition


def _type(name: str) -> Type:
    if not name.startswith("("):
        return NUMBERS[name]
    return tuple_of(tuple(NUMBERS[part] for part in name.strip("()").split(", ")))
