"""Measurements of other machines of this CPU's family, for those that have made none of their own.

They come with the package, in ``tuning/shipped/<name of the CPU>/<kernel>.json``, or by ``jitkernels tune --import``,
into the cache; what was imported goes before what came with the package. A table has for each family of classes, that
is the fields that are no extents, and each number of threads, by the extents of its classes, the best variant of each
implementation, best first. Like measurements, it also serves classes that are not far (see `tuning.nearby`).
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import content_of, say_once
from jitkernels.errors import AttrError
from jitkernels.records import record
from jitkernels.tuning.classes import class_of
from jitkernels.tuning.nearby import FARTHEST, distance
from jitkernels.tuning.store import Measured, Record, measured_of

FOLDER = Path(__file__).parent / "tuning" / "shipped"
FORMAT = 1
Classes = Mapping[tuple[int, ...], Sequence[Measured]]


@record
class Entry:
    """What was measured for one class, by so many threads: the best variant of each implementation, best first."""

    attr: KernelAttr
    threads: int
    candidates: tuple[Measured, ...]


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class in the table that differs from an attr's in extents alone, and in these least, and its record.

    Of the numbers of threads that there are measurements for, that counts which is nearest from below.
    """
    of_class = class_of(attr)
    by_threads = _table(attr.name).get(_family_of(of_class), {})
    known = [count for count in by_threads if count <= threads]
    if not known:
        return None
    classes = by_threads[max(known)]
    own = tuple(of_class.extents().values())
    found = own if own in classes else min(classes, key=lambda other: (distance(own, other), other))
    if distance(own, found) > FARTHEST:
        return None
    try:
        near = type(of_class)(**of_class.fields() | dict(zip(of_class.extents(), found, strict=True)))
    except AttrError:
        return None
    return near, Record(tuple(classes[found]))


def _family_of(attr: KernelAttr) -> str:
    """The fields of an attr that are no extents, as the key of a table."""
    extents = attr.extents()
    return json.dumps({k: v for k, v in attr.to_json().items() if k not in extents}, sort_keys=True)


@functools.cache
def _table(kernel: str) -> Mapping[str, Mapping[int, Classes]]:
    """What is known of a kernel on this CPU: by family, by threads, by extents."""
    found: dict[str, dict[int, dict[tuple[int, ...], Sequence[Measured]]]] = {}
    for folder in (FOLDER, imported_folder()):
        path = folder and folder / machine.cpu_name() / f"{kernel}.json"
        if not path or not path.exists():
            continue
        try:
            for family, threads, extents, candidates in _read(path, imported=folder != FOLDER):
                found.setdefault(family, {}).setdefault(threads, {})[extents] = candidates
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            say_once(str(path), f"ignoring the table {path}: {error}")
    return found


def _read(path: Path, *, imported: bool = False) -> list[tuple[str, int, tuple[int, ...], list[Measured]]]:
    content = json.loads(content_of(path))
    if content["format"] != FORMAT:
        raise ValueError("it is of another format")
    # What comes with a version is tested with it.
    if imported and content["jitkernels"] != machine.version("jitkernels"):
        raise ValueError(f"it is of jitkernels {content['jitkernels']}")
    return [
        (
            family["fields"],
            int(family["threads"]),
            tuple(int(extent) for extent in extents.split("x")),
            [measured_of(**candidate) for candidate in candidates],
        )
        for family in content["families"]
        for extents, candidates in family["classes"].items()
    ]


def imported_folder() -> Path | None:
    """Where imported tables are kept, or None without a cache."""
    root = machine.cache_root()
    return root and root / "tables"


def text_of(entries: Sequence[Entry]) -> str:
    """The table of one kernel, the same for the same entries in whatever order."""
    families: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for entry in sorted(entries, key=lambda entry: tuple(entry.attr.extents().values())):
        extents = "x".join(map(str, entry.attr.extents().values()))
        candidates = [candidate_to_json(candidate) for candidate in entry.candidates]
        families.setdefault((_family_of(entry.attr), entry.threads), {})[extents] = candidates
    listed = [
        {"fields": fields, "threads": threads, "classes": classes}
        for (fields, threads), classes in sorted(families.items())
    ]
    head = {"format": FORMAT, "jitkernels": machine.version("jitkernels")}
    return json.dumps({**head, "families": listed}, separators=(",", ":")) + "\n"


def candidate_to_json(candidate: Measured) -> dict[str, Any]:
    """A candidate without what a table does not need: spread, and times beyond three digits."""
    seconds = float(f"{candidate.seconds:.3g}")
    variant = {"variant": candidate.variant} if candidate.variant else {}
    return {"implementation": candidate.implementation, **variant, "seconds": seconds}


def forget() -> None:
    """Read tables anew: some have been imported."""
    _table.cache_clear()
