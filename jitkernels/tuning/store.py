"""Measured results on disk: one JSON file per tuning class below the hash of the environment they hold for.

Whatever is not a whole record of this attr in this environment is a miss with one log line.
"""

import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import sub
from pathlib import Path
from typing import Any

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import publish, say_once

FORMAT = 1
DAY = 86400
FARTHEST = 4
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
    return _file_name(_family_of(attr), attr.extents().values())


def _file_name(family: str, extents: Iterable[int]) -> str:
    return f"{family}{'x'.join(map(str, extents))}.json"


def _family_of(attr: KernelAttr) -> str:
    """How the names begin of all classes that differ from this one in their extents alone, of which there are few."""
    family = type(attr), attr.without_extents
    if family not in _beginnings:
        others = {key: value for key, value in _key(attr).items() if key not in attr.extents()}
        _beginnings[family] = f"{attr.name}-{machine.digest(others)[:24]}-"
    return _beginnings[family]


_beginnings: dict[tuple[type[KernelAttr], tuple[Any, ...]], str] = {}


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
    _families.cache_clear()  # clocks of files stand still for milliseconds


def load(attr: KernelAttr, threads: int) -> Record | None:
    """The record of an attr, or None."""
    path = path_of(attr, threads)
    if path is None or not path.exists():
        return None
    return read(path, attr, machine.environment_of_timings(threads))


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class with a record that differs from an attr in extents alone, and in these least, and that record.

    That is the attr itself if it has one. No file is opened that has been before.
    """
    place = directory(threads)
    try:
        changed = place and os.stat(place).st_mtime_ns  # noqa: PTH116  # half the time of the method
    except OSError:
        return None
    if place is None or changed is None:
        return None
    sizes = attr.extents()
    own = tuple(sizes.values())
    known = _families(place, changed).get(_family_of(attr), {})
    if own not in known:
        octaves = _octaves_of(own)
        apart = [(sum(map(abs, map(sub, octaves, o))), e) for e, o in known.items() if len(e) == len(own)]
        steps, own = min(apart, default=(FARTHEST + 1, own))
        if steps > FARTHEST:
            return None
    fields = attr.fields() | dict(zip(sizes, own, strict=True))
    try:
        file = os.stat(f"{place}/{_file_name(_family_of(attr), own)}")  # noqa: PTH116  # as above
    except OSError:
        return None
    version = file.st_ino, file.st_mtime_ns, file.st_size
    known_class: Any = type(attr)  # which is hashable, whatever type checkers say
    return _kept(known_class, tuple(fields.items()), threads, version)


def _octaves_of(extents: Iterable[int]) -> tuple[int, ...]:
    """The powers of two that extents go up to: distances between classes are counted in them."""
    return tuple([max(extent - 1, 0).bit_length() for extent in extents])


@functools.lru_cache(maxsize=4)
def _families(
    place: Path, changed: int
) -> Mapping[str, Mapping[tuple[int, ...], tuple[int, ...]]]:  # the key
    """Extents and their octaves, by the beginning of a name, of the classes with a record in a folder."""
    found: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {}
    for name in os.listdir(place):
        family, _, listed = name.removesuffix(".json").rpartition("-")
        if re.fullmatch(r"\d+(x\d+)*", listed):
            extents = tuple(map(int, listed.split("x")))
            found.setdefault(f"{family}-", {})[extents] = _octaves_of(extents)
    return found


@functools.lru_cache(maxsize=64)
def _kept(
    attr_class: type[KernelAttr],
    fields: tuple[tuple[str, Any], ...],
    threads: int,
    version: tuple[int, ...],  # the key
) -> tuple[KernelAttr, Record] | None:
    """A class and its record, which many others may be near to."""
    near = attr_class(**dict(fields))
    record = load(near, threads)
    return None if record is None else (near, record)


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
