"""Shipped tables: measurements of other machines of this CPU's family, used where this machine has none.

They come with the package, in ``selection/shipped/<name of the CPU>/<kernel>.json``, or are imported into the cache by
``jitkernels tune --import``; imported ones take precedence. For each family of classes (the fields that are not
extents) and each number of threads, a table has, by the extents of its classes, the best variant of each
implementation, best first. Like tuning records, it also applies to nearby classes (see `selection.nearest_record`).
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.core import cache_dirs, cpu_target, versions
from jitkernels.core.atomic_files import content_of, warn_once
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import AttrError
from jitkernels.selection.nearest_record import FARTHEST, distance
from jitkernels.selection.records import Measured, Record, measured_of
from jitkernels.selection.size_classes import class_of

FOLDER = Path(__file__).parent / "shipped"
TABLE_FORMAT = 1
Classes = Mapping[tuple[int, ...], Sequence[Measured]]


@frozen_dataclass
class Entry:
    """The measurements of one class with one number of threads: the best variant of each implementation, best first."""

    attr: KernelAttr
    threads: int
    candidates: tuple[Measured, ...]


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class in the table that differs from an attr's in extents only, and in these least, and its record.

    Of the thread counts in the table, the largest one up to `threads` applies.
    """
    of_class = class_of(attr)
    by_threads = _table(attr.name).get(_family_of(of_class), {})
    known = [count for count in by_threads if count <= threads]
    if not known:
        return None
    classes = by_threads[max(known)]
    own = tuple(of_class.extents().values())
    extents = own if own in classes else min(classes, key=lambda other: (distance(own, other), other))
    if distance(own, extents) > FARTHEST:
        return None
    try:
        near = type(of_class)(**of_class.fields() | dict(zip(of_class.extents(), extents, strict=True)))
    except AttrError:
        return None
    return near, Record(tuple(classes[extents]))


def _family_of(attr: KernelAttr) -> str:
    """The fields of an attr that are not extents, as the key of a table."""
    extents = attr.extents()
    return json.dumps({k: v for k, v in attr.to_json().items() if k not in extents}, sort_keys=True)


@functools.cache
def _table(kernel: str) -> Mapping[str, Mapping[int, Classes]]:
    """The entries of a kernel on this CPU: by family, by threads, by extents."""
    table: dict[str, dict[int, dict[tuple[int, ...], Sequence[Measured]]]] = {}
    for folder in (FOLDER, imported_folder()):
        path = folder and folder / cpu_target.cpu_name() / f"{kernel}.json"
        if not path or not path.exists():
            continue
        try:
            for family, threads, extents, candidates in _read(path, imported=folder != FOLDER):
                table.setdefault(family, {}).setdefault(threads, {})[extents] = candidates
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            warn_once(str(path), f"ignoring the table {path}: {error}")
    return table


def _read(path: Path, *, imported: bool = False) -> list[tuple[str, int, tuple[int, ...], list[Measured]]]:
    content = json.loads(content_of(path))
    if content["format"] != TABLE_FORMAT:
        raise ValueError("it is of another format")
    # Tables shipped with a version are tested with it.
    if imported and content["jitkernels"] != versions.version("jitkernels"):
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
    """The directory of imported tables, or None without a cache."""
    root = cache_dirs.cache_root()
    return root and root / "tables"


def text_of(entries: Sequence[Entry]) -> str:
    """The table of one kernel as text, independent of the order of the entries."""
    families: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for entry in sorted(entries, key=lambda entry: tuple(entry.attr.extents().values())):
        extents = "x".join(map(str, entry.attr.extents().values()))
        candidates = [candidate_to_json(candidate) for candidate in entry.candidates]
        families.setdefault((_family_of(entry.attr), entry.threads), {})[extents] = candidates
    listed = [
        {"fields": fields, "threads": threads, "classes": classes}
        for (fields, threads), classes in sorted(families.items())
    ]
    head = {"format": TABLE_FORMAT, "jitkernels": versions.version("jitkernels")}
    return json.dumps({**head, "families": listed}, separators=(",", ":")) + "\n"


def candidate_to_json(candidate: Measured) -> dict[str, Any]:
    """A candidate without its spread, and with times rounded to three digits."""
    seconds = float(f"{candidate.seconds:.3g}")
    variant = {"variant": candidate.variant} if candidate.variant else {}
    return {"implementation": candidate.implementation, **variant, "seconds": seconds}


def forget() -> None:
    """Reload tables on next use: some have been imported."""
    _table.cache_clear()
