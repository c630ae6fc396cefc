"""Translations of the package's own scalar functions, kept on disk.

The text of a function is a part of the key of what calls it, so that even a process whose code is all there needs it.
Reading that of `sin` takes a tenth of the time of making it. Short ones are made as quickly as they are read.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jitkernels.native import cache
from jitkernels.native.language.types import NUMBERS, Type, tuple_of
from jitkernels.states import state_of

OWN = "jitkernels.maths."
"""Where the functions of the package are."""
LEAST, LEAST_CODE = 4000, 100
"""Characters from which on texts are kept, and bytes of Python's code from which on they are looked for."""
SUFFIX = ".json"
"""Of the files, which are beside the objects."""


def path_of(function: Callable[..., Any], kinds: Sequence[Type], lanes: int) -> Path | None:
    """The file for a function of the package; None for others, whose constants nobody watches, or where none can be."""
    name = f"{function.__module__}.{function.__qualname__}"
    is_own = name.startswith(OWN) and "<locals>" not in name
    if not is_own or len(function.__code__.co_code) < LEAST_CODE:
        return None
    place = cache.objects_directory()
    what = [
        "a translation",
        name,
        *(kind.name for kind in kinds),
        str(lanes),
        state_of("maths"),
    ]
    return place and place / f"{cache.key_of(' '.join(what))}{SUFFIX}"


def read(path: Path, made: Callable[..., Any]) -> Any:
    """What a file holds, as the class of definitions that `made` is; None if there is none."""
    content = cache.read(path)
    if content is None:
        return None
    found: dict[str, Any] = {}
    last = None
    for fields in json.loads(content):
        needed = {symbol: found[symbol] for symbol in fields.pop("needed")}
        last = made(result=_type(fields.pop("result")), needed=needed, **fields)
        found[last.symbol] = last
    return last


def keep(path: Path, definition: Any) -> None:
    """Write a definition and what it needs, unless that is short."""
    listed: dict[str, Any] = {}
    _list(definition, listed)
    if sum(len(one.text) for one in listed.values()) < LEAST:
        return
    entries = [
        {
            "lanes": one.lanes, "symbol": one.symbol, "result": one.result.name, "text": one.text,
            "declared": one.declared, "needed": list(one.needed), "declaration": one.declaration,
            "is_alone": one.is_alone,
        }
        for one in listed.values()
    ]  # fmt: skip
    cache.keep(path, json.dumps(entries).encode())


def _list(definition: Any, listed: dict[str, Any]) -> None:
    """What is needed comes before what needs it."""
    if definition.symbol not in listed:
        for needed in definition.needed.values():
            _list(needed, listed)
        listed[definition.symbol] = definition


def _type(name: str) -> Type:
    if not name.startswith("("):
        return NUMBERS[name]
    return tuple_of(tuple(NUMBERS[part] for part in name.strip("()").split(", ")))
