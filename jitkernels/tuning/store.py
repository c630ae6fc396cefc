"""Measured results on disk: one JSON file per tuning class below the hash of the environment they hold for.

Whatever is not a whole record of this attr in this environment is a miss with one log line.
"""

import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import publish, say_once

FORMAT = 1
DAY = 86400
FARTHEST = 4.0
"""Powers of two between classes, over all extents, beyond which one tells nothing of the other."""


@dataclass(frozen=True)
class Measured:
    """One candidate of a record: its time, or why it has none."""

    implementation: str
    variant: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    spread: float | None = None
    error: str | None = None

    @property
    def label(self) -> str:
        """The implementation, with its variant in brackets if it has one."""
        variant = ",".join(f"{key}={value}" for key, value in self.variant.items())
        return f"{self.implementation}[{variant}]" if variant else self.implementation


@dataclass(frozen=True)
class Record:
    """What was measured for one attr, fastest pick first.

    `complete` is False when the budget ran out before every candidate was measured.
    """

    candidates: tuple[Measured, ...]
    complete: bool = True

    @property
    def pick(self) -> Measured:
        return self.candidates[0]


def _key(attr: KernelAttr) -> dict[str, Any]:
    return attr.to_json()


def directory(threads: int) -> Path | None:
    """Where records for this environment and number of threads lie, or None without a cache."""
    root = machine.cache_root()
    return root and _below(root, threads)


@functools.cache
def _below(root: Path, threads: int) -> Path:
    """Neither machine nor versions change while a process lives."""
    return root / machine.digest(machine.environment_of_timings(threads))[:16] / "tuning"


def path_of(attr: KernelAttr, threads: int) -> Path | None:
    """The file of an attr's record."""
    place = directory(threads)
    return place and place / _name_of(attr)


@functools.lru_cache(maxsize=256)
def _name_of(attr: KernelAttr) -> str:
    """Extents stand in the name, so that the files of classes nearby are found by their names."""
    return f"{_family_of(attr)}{'x'.join(map(str, attr.extents().values()))}.json"


def _family_of(attr: KernelAttr) -> str:
    """How the names begin of all classes that differ from this one in their extents alone."""
    others = {key: value for key, value in _key(attr).items() if key not in attr.extents()}
    return f"{attr.name}-{machine.digest(others)[:24]}-"


def save(attr: KernelAttr, record: Record, threads: int) -> None:
    """Write a record whole or not at all; a disk that refuses costs one log line."""
    path = path_of(attr, threads)
    if path is None:
        return
    content = {
        "format": FORMAT,
        "attr": _key(attr),
        "environment": machine.environment_of_timings(threads),
        "complete": record.complete,
        "candidates": [asdict(candidate) for candidate in record.candidates],
    }
    place = path.parent
    if machine.private(place.parent) is None or machine.private(place) is None:
        say_once("tuning", f"{place} cannot be written, or is not private: measurements are not kept")
        return
    publish(path, json.dumps(content, indent=1, sort_keys=True).encode())


def load(attr: KernelAttr, threads: int) -> Record | None:
    """The record of an attr, or None."""
    path = path_of(attr, threads)
    if path is None or not os.path.exists(path):  # noqa: PTH110  # half the time of the method
        return None
    return read(path, attr, machine.environment_of_timings(threads))


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class with a record that differs from an attr in extents alone, and in these least, and that record."""
    place = directory(threads)
    try:
        changed = place and place.stat().st_mtime_ns
    except OSError:
        return None
    if place is None or changed is None:
        return None
    own = attr.extents()
    known = _families(place, changed).get(_family_of(attr), ())
    apart = sorted(
        (_octaves(own.values(), extents), extents) for extents in known if len(extents) == len(own)
    )
    if not apart or apart[0][0] > FARTHEST:
        return None
    near = replace(attr, **dict(zip(own, apart[0][1], strict=True)))  # type: ignore[type-var]  # attrs are dataclasses
    record = load(near, threads)
    return None if record is None else (near, record)


def _octaves(some: Iterable[int], others: Iterable[int]) -> float:
    """How far apart extents are: the sum of their ratios, in powers of two."""
    return sum(abs(log2(max(a, 1) / max(b, 1))) for a, b in zip(some, others, strict=True))


@functools.lru_cache(maxsize=4)
def _families(place: Path, changed: int) -> Mapping[str, Sequence[tuple[int, ...]]]:  # the key
    """The extents of all classes with a record in a folder that was `changed` then, by the beginning of their names."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for name in os.listdir(place):
        family, _, extents = name.removesuffix(".json").rpartition("-")
        if re.fullmatch(r"\d+(x\d+)*", extents):
            found.setdefault(f"{family}-", []).append(tuple(map(int, extents.split("x"))))
    return found


def read(path: Path, attr: KernelAttr, environment: dict[str, str] | None) -> Record | None:
    """The record in a file if it is whole and of that attr and environment (any, if None)."""
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT or content["attr"] != _key(attr):
            raise ValueError("it is of another attr or format")
        if environment is not None and content["environment"] != environment:
            raise ValueError("it is of another environment")
        candidates = tuple(_measured(**candidate) for candidate in content["candidates"])
        if not candidates or candidates[0].seconds is None:
            raise ValueError("it has no timing")
        return Record(candidates, bool(content["complete"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        say_once(str(path), f"ignoring the measurement {path}: {error}")
        return None


def _measured(**content: Any) -> Measured:
    """A candidate as it was stored; raises ValueError if a value is of a type that none could have had."""
    measured = Measured(**content)
    numbers = (measured.seconds, measured.spread)
    if not isinstance(measured.implementation, str) or not isinstance(measured.variant, dict):
        raise ValueError("a candidate has no name or no variant")
    if not all(number is None or isinstance(number, float | int) and 0 <= number < DAY for number in numbers):
        raise ValueError("a time is not a number of seconds")
    if not isinstance(measured.error, str | None):
        raise ValueError("an error is not text")
    return measured


def files(root: Path) -> Iterator[Path]:
    """All records below a cache folder, whatever their environment."""
    return root.glob("*/tuning/*.json")
