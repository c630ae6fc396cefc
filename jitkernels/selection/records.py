"""Tuning records on disk: one JSON file per size class, below the hash of their environment.

A file that is not a valid record of this attr in this environment is a miss with one log line.
"""

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.codegen import kernel_archive
from jitkernels.core import cache_dirs, environment, hashing
from jitkernels.core.atomic_files import content_of, publish, warn_once
from jitkernels.core.frozen_dataclass import frozen_dataclass

RECORD_FORMAT = 1
DAY = 86400
saved = 0
"""Records written by this process: a directory's modification time misses some, as its clock ticks in milliseconds."""


@frozen_dataclass
class Measured:
    """One candidate of a record: its time, or why it has none."""

    implementation: str
    variant: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    spread: float | None = None
    error: str | None = None

    @property
    def label(self) -> str:
        """The implementation, with its sorted variant in brackets if it has one."""
        variant = ",".join(f"{key}={value}" for key, value in sorted(self.variant.items()))
        return f"{self.implementation}[{variant}]" if variant else self.implementation


@frozen_dataclass
class Record:
    """The measurements of one attr, fastest candidate first.

    `complete` is False when the budget ran out before every candidate was measured.
    """

    candidates: tuple[Measured, ...]
    complete: bool = True

    @property
    def pick(self) -> Measured:
        return self.candidates[0]

    def before(self, earlier: "Record | None") -> "Record":
        """Merge records: this order first, then candidates that only an earlier record has; failed ones go last."""
        labels = {measured.label for measured in self.candidates}
        others = earlier.candidates if earlier else ()
        everyone = [*self.candidates, *(measured for measured in others if measured.label not in labels)]
        everyone.sort(key=lambda measured: measured.seconds is None)  # stable
        return Record(tuple(everyone), self.complete)


def _key(attr: KernelAttr) -> dict[str, Any]:
    return attr.to_json()


def path_of(attr: KernelAttr, threads: int) -> Path | None:
    """The file of an attr's record."""
    folder = cache_dirs.timings_directory(threads)
    return folder and folder / name_of(attr)


@functools.lru_cache(maxsize=256)
def name_of(attr: KernelAttr) -> str:
    """The file name of an attr's record; it contains the extents, so that nearby classes are found by name."""
    return file_name(family_of(attr), attr.extents().values())


def file_name(family: str, extents: Iterable[int]) -> str:
    """The file name of the class of a family that has these extents."""
    return f"{family}{'x'.join(map(str, extents))}.json"


def family_of(attr: KernelAttr) -> str:
    """The common prefix of the file names of all classes that differ from this one in their extents only."""
    family = type(attr), attr.without_extents
    if family not in _family_prefixes:
        others = {key: value for key, value in _key(attr).items() if key not in attr.extents()}
        _family_prefixes[family] = f"{attr.name}-{hashing.digest(others)[:24]}-"
    return _family_prefixes[family]


_family_prefixes: dict[tuple[type[KernelAttr], tuple[Any, ...]], str] = {}


def save(attr: KernelAttr, record: Record, threads: int) -> None:
    """Write a record atomically; a failed write costs one log line."""
    path = path_of(attr, threads)
    if path is None:
        return
    content = content_of_record(attr, record, threads)
    folder = path.parent
    if cache_dirs.private(folder.parent) is None or cache_dirs.private(folder) is None:
        warn_once("tuning", f"{folder} cannot be written, or is not private: measurements are not stored")
        return
    publish(path, json.dumps(content, indent=1, sort_keys=True).encode())
    global saved
    saved += 1


def content_of_record(attr: KernelAttr, record: Record, threads: int) -> dict[str, Any]:
    """The JSON content of a record file."""
    return {
        "format": RECORD_FORMAT,
        "attr": _key(attr),
        "environment": environment.environment_of_timings(threads),
        "complete": record.complete,
        "candidates": [asdict(candidate) for candidate in record.candidates],
    }


def load(attr: KernelAttr, threads: int) -> Record | None:
    """The record of an attr, or None."""
    path = path_of(attr, threads)
    record = None if path is None else read(path, attr, environment.environment_of_timings(threads))
    if record is not None or not kernel_archive.opened():
        return record
    content = kernel_archive.record_of(name_of(attr), threads)
    return None if content is None else _checked(content, attr, None, f"{name_of(attr)} of a pack")


def read(path: Path, attr: KernelAttr | None, environment: dict[str, str] | None) -> Record | None:
    """The record in a file, if it is valid and of that attr and environment (any, if None)."""
    try:
        content = json.loads(content_of(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        warn_once(str(path), f"ignoring the measurement {path}: {error}")
        return None
    return _checked(content, attr, environment, str(path))


def _checked(content: Any, attr: KernelAttr | None, environment: dict[str, str] | None, where: str) -> Record | None:
    """Parse the content of a record file or pack entry; None, with one log line, if it is invalid."""
    try:
        if content["format"] != RECORD_FORMAT or (attr is not None and content["attr"] != _key(attr)):
            raise ValueError("it has another attr or format")
        if environment is not None and content["environment"] != environment:
            raise ValueError("it has another environment")
        candidates = tuple(measured_of(**candidate) for candidate in content["candidates"])
        if not candidates or candidates[0].seconds is None:
            raise ValueError("it has no timing")
        return Record(candidates, bool(content["complete"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        warn_once(where, f"ignoring the measurement {where}: {error}")
        return None


def measured_of(**content: Any) -> Measured:
    """Parse a stored candidate; raises ValueError for a value of the wrong type."""
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
