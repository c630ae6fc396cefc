"""Measured results on disk: one JSON file per tuning class below the hash of the environment they hold for.

Whatever is not a whole record of this attr in this environment is a miss with one log line.
"""

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from jitkernels import machine, packs
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import content_of, publish, say_once
from jitkernels.records import record

FORMAT = 1
DAY = 86400
saved = 0
"""How often this process has written a record, which a folder does not always show: clocks stand for milliseconds."""


@record
class Measured:
    """One candidate of a record: its time, or why it has none."""

    implementation: str
    variant: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    spread: float | None = None
    error: str | None = None

    @property
    def label(self) -> str:
        """The implementation, with its variant in brackets if it has one, the same in whatever order that came."""
        variant = ",".join(f"{key}={value}" for key, value in sorted(self.variant.items()))
        return f"{self.implementation}[{variant}]" if variant else self.implementation


@record
class Record:
    """What was measured for one attr, fastest pick first.

    `complete` is False when the budget ran out before every candidate was measured.
    """

    candidates: tuple[Measured, ...]
    complete: bool = True

    @property
    def pick(self) -> Measured:
        return self.candidates[0]

    def before(self, earlier: "Record | None") -> "Record":
        """Its own order first, then who was in an earlier record alone; those that failed go last."""
        labels = {measured.label for measured in self.candidates}
        others = earlier.candidates if earlier else ()
        everyone = [*self.candidates, *(measured for measured in others if measured.label not in labels)]
        everyone.sort(key=lambda measured: measured.seconds is None)  # stable
        return Record(tuple(everyone), self.complete)


def _key(attr: KernelAttr) -> dict[str, Any]:
    return attr.to_json()


def path_of(attr: KernelAttr, threads: int) -> Path | None:
    """The file of an attr's record."""
    place = machine.timings_directory(threads)
    return place and place / name_of(attr)


@functools.lru_cache(maxsize=256)
def name_of(attr: KernelAttr) -> str:
    """Extents stand in the name, so that the files of classes nearby are found by their names."""
    return file_name(family_of(attr), attr.extents().values())


def file_name(family: str, extents: Iterable[int]) -> str:
    """Of the class of a family that has these extents."""
    return f"{family}{'x'.join(map(str, extents))}.json"


def family_of(attr: KernelAttr) -> str:
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
    content = content_of_record(attr, record, threads)
    place = path.parent
    if machine.private(place.parent) is None or machine.private(place) is None:
        say_once("tuning", f"{place} cannot be written, or is not private: measurements are not kept")
        return
    publish(path, json.dumps(content, indent=1, sort_keys=True).encode())
    global saved
    saved += 1


def content_of_record(attr: KernelAttr, record: Record, threads: int) -> dict[str, Any]:
    """What the file of a record holds."""
    return {
        "format": FORMAT,
        "attr": _key(attr),
        "environment": machine.environment_of_timings(threads),
        "complete": record.complete,
        "candidates": [asdict(candidate) for candidate in record.candidates],
    }


def load(attr: KernelAttr, threads: int) -> Record | None:
    """The record of an attr, or None."""
    path = path_of(attr, threads)
    found = None if path is None else read(path, attr, machine.environment_of_timings(threads))
    if found is not None or not packs.opened():
        return found
    content = packs.record_of(name_of(attr), threads)
    return None if content is None else _checked(content, attr, None, f"{name_of(attr)} of a pack")


def read(path: Path, attr: KernelAttr | None, environment: dict[str, str] | None) -> Record | None:
    """The record in a file if there is one, whole and of that attr and environment (any, if None)."""
    try:
        content = json.loads(content_of(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        say_once(str(path), f"ignoring the measurement {path}: {error}")
        return None
    return _checked(content, attr, environment, str(path))


def _checked(
    content: Any, attr: KernelAttr | None, environment: dict[str, str] | None, where: str
) -> Record | None:
    """The record that a file, or a pack, holds."""
    try:
        if content["format"] != FORMAT or (attr is not None and content["attr"] != _key(attr)):
            raise ValueError("it is of another attr or format")
        if environment is not None and content["environment"] != environment:
            raise ValueError("it is of another environment")
        candidates = tuple(measured_of(**candidate) for candidate in content["candidates"])
        if not candidates or candidates[0].seconds is None:
            raise ValueError("it has no timing")
        return Record(candidates, bool(content["complete"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        say_once(where, f"ignoring the measurement {where}: {error}")
        return None


def measured_of(**content: Any) -> Measured:
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
