"""Tables of measurements as files: what this machine measured, for others of its family; theirs checked and kept."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitkernels import machine, shipped
from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.disk import content_of, publish
from jitkernels.errors import ArgumentError, AttrError, UnknownNameError, shown
from jitkernels.registry import implementations
from jitkernels.shipped import FORMAT, Entry
from jitkernels.tuning import store
from jitkernels.tuning.classes import class_of, measured_member
from jitkernels.tuning.store import Measured, Record, measured_of


@dataclass(frozen=True)
class Imported:
    """What became of a table: how many classes are kept, why others are not, who is unknown here in those kept."""

    kept: int
    refused: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def measured_here(kernels: Sequence[type[KernelAttr]]) -> list[Entry]:
    """The complete records of kernels in this environment, for every number of threads."""
    found = []
    for threads in range(1, machine.cpu_count() + 1):
        place = machine.timings_directory(threads)
        for path in sorted(place.glob("*.json")) if place else ():
            attr = _attr_of(path)
            if attr is None or type(attr) not in kernels:
                continue
            record = store.read(path, attr, machine.environment_of_timings(threads))
            if record is not None and record.complete:
                found.append(Entry(attr, threads, best_variants(record)))
    return found


def best_variants(record: Record) -> tuple[Measured, ...]:
    """The first variant of each implementation, in the order of the record; none that failed."""
    best: dict[str, Measured] = {}
    for candidate in record.candidates:
        if candidate.seconds is not None:
            best.setdefault(candidate.implementation, candidate)
    return tuple(best.values())


def _attr_of(path: Path) -> KernelAttr | None:
    """The attr of a record; None for what is none of a known row."""
    try:
        return _attr(json.loads(content_of(path))["attr"])
    except (OSError, ValueError, KeyError, TypeError, AttrError, RecursionError):
        return None


def _attr(content: dict[str, Any]) -> KernelAttr | None:
    """The attr of its JSON; None where there is no such row here."""
    known = {kind.name: found for kind, found in rows.items()}
    name = content["kernel"]
    return known[name].from_json(content) if name in known else None


def export(path: Path, kernels: Sequence[type[KernelAttr]]) -> int:
    """Write what was measured here to a file; how many classes that are. Raises ArgumentError where there are none."""
    entries = measured_here(kernels)
    if not entries:
        raise ArgumentError(
            "tune: --export: expected measurements of this machine, found none: run jitkernels tune"
        )
    content = {
        "format": FORMAT,
        "cpu": machine.cpu_name(),
        "packages": {name: machine.version(name) for name in machine.PACKAGES_OF_CODE},
        "entries": [
            {
                "attr": entry.attr.to_json(),
                "threads": entry.threads,
                "candidates": [shipped.candidate_to_json(candidate) for candidate in entry.candidates],
            }
            for entry in entries
        ],
    }
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return len(entries)


def import_from(path: Path, into: Path | None = None) -> Imported:
    """Keep the classes of a file that hold here, kernel by kernel, for lookups to come; `into`: the folder of tables.

    What an implementation that there is not here was measured at is passed over: the next of its ranking is the best
    that there is. Raises ArgumentError for what is no table, or one of another family of CPUs or another version.
    """
    entries, refused, unknown = _checked(path)
    place = into or shipped.imported_folder()
    if place is None or (into is None and machine.private(place) is None):
        raise ArgumentError("tune: --import: expected a cache folder that can be written, found none")
    folder = place / machine.cpu_name()
    folder.mkdir(parents=True, exist_ok=True)
    for kernel in dict.fromkeys(entry.attr.name for entry in entries):
        text = shipped.text_of([entry for entry in entries if entry.attr.name == kernel])
        publish(folder / f"{kernel}.json", text.encode())
    shipped.forget()
    return Imported(len(entries), tuple(refused), tuple(unknown))


def _checked(path: Path) -> tuple[list[Entry], list[str], list[str]]:
    """The entries of a file that hold here, what is wrong with the others, and implementations that there are not."""
    try:
        content = json.loads(path.read_bytes())
        found, cpu, listed = content["format"], content["cpu"], list(content["entries"])
        made_by = content["packages"]["jitkernels"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArgumentError(f"tune: --import: {path}: expected a table of measurements: {error}") from None
    if found != FORMAT:
        raise ArgumentError(f"tune: --import: {path}: expected format {FORMAT}, got {found!r}")
    if cpu != machine.cpu_name():
        raise ArgumentError(
            f"tune: --import: {path}: expected a table of this family of CPUs, {machine.cpu_name()}, got {cpu!r}"
        )
    if made_by != machine.version("jitkernels"):  # whose kernels may be others of the same names
        raise ArgumentError(
            f"tune: --import: {path}: expected a table of jitkernels {machine.version('jitkernels')}, got one of "
            f"{shown(made_by)}"
        )
    entries: list[Entry] = []
    refused: list[str] = []
    unknown: dict[str, None] = {}
    for number, entry in enumerate(listed):
        try:
            checked = _entry(entry)
            known = {candidate.implementation for candidate in checked.candidates}
            names = (candidate["implementation"] for candidate in entry["candidates"])
            unknown |= {
                f"{checked.attr.name} has no implementation {n}": None for n in names if n not in known
            }
            entries.append(checked)
        except (ValueError, KeyError, TypeError, AttrError, UnknownNameError) as error:
            refused.append(f"entry {number}: {error}")
    return entries, refused, list(unknown)


def _entry(content: dict[str, Any]) -> Entry:
    """One entry, whose class and variants there are here. Raises ValueError and what reading it raises."""
    attr = _attr(content["attr"])
    if attr is None:
        raise ValueError(f"there is no kernel {content['attr']['kernel']}")
    if class_of(attr) != attr:
        raise ValueError(f"{attr.name}({attr.text()}) is no class")
    threads = content["threads"]
    if type(threads) is not int or threads < 1:
        raise ValueError(f"{threads!r} is no number of threads")
    candidates = tuple(measured_of(**candidate) for candidate in content["candidates"])
    if not candidates or candidates[0].seconds is None:
        raise ValueError(f"{attr.name}({attr.text()}) has no timing")
    existing = tuple(candidate for candidate in candidates if _exists(attr, candidate))
    if not existing:
        raise ValueError(f"{attr.name}({attr.text()}) has no implementation that there is here")
    return Entry(attr, threads, existing)


def _exists(attr: KernelAttr, candidate: Measured) -> bool:
    """Whether there is such a variant; of what cannot be used here nobody can tell, and it will not be chosen."""
    found = implementations(type(attr)).get(candidate.implementation)
    if found is None or candidate.seconds is None:
        return False
    member = measured_member(attr)
    if found.reason_against(member) is not None or not candidate.variant:
        return True
    if candidate.variant not in found.variants(member):
        raise ValueError(f"{attr.name}({attr.text()}): there is no {candidate.label}")
    return True
