"""Export tables of measurements to files, and import the checked tables of other machines of the same CPU family."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.registry import implementations
from jitkernels.core import cache_dirs, cpu_target, environment, versions
from jitkernels.core.atomic_files import content_of, publish
from jitkernels.errors import ArgumentError, AttrError, UnknownNameError, shown
from jitkernels.selection import records, shipped_tables
from jitkernels.selection.records import Measured, Record, measured_of
from jitkernels.selection.shipped_tables import TABLE_FORMAT, Entry
from jitkernels.selection.size_classes import class_of, measured_member


@dataclass(frozen=True)
class Imported:
    """The result of an import: the number of classes stored, why others were refused, and unknown implementations."""

    kept: int
    refused: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def measured_here(kernels: Sequence[type[KernelAttr]]) -> list[Entry]:
    """The complete records of kernels in this environment, for every number of threads."""
    entries = []
    for threads in range(1, cpu_target.cpu_count() + 1):
        folder = cache_dirs.timings_directory(threads)
        for path in sorted(folder.glob("*.json")) if folder else ():
            attr = _attr_of(path)
            if attr is None or type(attr) not in kernels:
                continue
            record = records.read(path, attr, environment.environment_of_timings(threads))
            if record is not None and record.complete:
                entries.append(Entry(attr, threads, best_variant_per_implementation(record)))
    return entries


def best_variant_per_implementation(record: Record) -> tuple[Measured, ...]:
    """The best variant of each implementation, in the order of the record; failed ones are omitted."""
    best: dict[str, Measured] = {}
    for candidate in record.candidates:
        if candidate.seconds is not None:
            best.setdefault(candidate.implementation, candidate)
    return tuple(best.values())


def _attr_of(path: Path) -> KernelAttr | None:
    """The attr of a record file; None if it is invalid or its schema unknown."""
    try:
        return _attr(json.loads(content_of(path))["attr"])
    except (OSError, ValueError, KeyError, TypeError, AttrError, RecursionError):
        return None


def _attr(content: dict[str, Any]) -> KernelAttr | None:
    """The attr of its JSON; None if the schema is unknown."""
    known = {kind.name: schema for kind, schema in schemas.items()}
    name = content["kernel"]
    return known[name].from_json(content) if name in known else None


def export(path: Path, kernels: Sequence[type[KernelAttr]]) -> int:
    """Write this machine's measurements to a file; returns how many classes. Raises ArgumentError if there are none."""
    entries = measured_here(kernels)
    if not entries:
        raise ArgumentError("tune: --export: expected measurements of this machine, found none: run jitkernels tune")
    content = {
        "format": TABLE_FORMAT,
        "cpu": cpu_target.cpu_name(),
        "packages": {name: versions.version(name) for name in environment.PACKAGES_OF_CODE},
        "entries": [
            {
                "attr": entry.attr.to_json(),
                "threads": entry.threads,
                "candidates": [shipped_tables.candidate_to_json(candidate) for candidate in entry.candidates],
            }
            for entry in entries
        ],
    }
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return len(entries)


def import_from(path: Path, into: Path | None = None) -> Imported:
    """Store the valid classes of a file, kernel by kernel, for later lookups; `into`: the directory of tables.

    Candidates of implementations that do not exist here are skipped: the next one of the ranking wins. Raises
    ArgumentError for an invalid table, or one of another CPU family or version.
    """
    entries, refused, unknown = _checked(path)
    root = into or shipped_tables.imported_folder()
    if root is None or (into is None and cache_dirs.private(root) is None):
        raise ArgumentError("tune: --import: expected a cache folder that can be written, found none")
    folder = root / cpu_target.cpu_name()
    folder.mkdir(parents=True, exist_ok=True)
    for kernel in dict.fromkeys(entry.attr.name for entry in entries):
        text = shipped_tables.text_of([entry for entry in entries if entry.attr.name == kernel])
        publish(folder / f"{kernel}.json", text.encode())
    shipped_tables.forget()
    return Imported(len(entries), tuple(refused), tuple(unknown))


def _checked(path: Path) -> tuple[list[Entry], list[str], list[str]]:
    """The valid entries of a file, the errors of the others, and the names of unknown implementations."""
    try:
        content = json.loads(path.read_bytes())
        table_format, cpu, listed = content["format"], content["cpu"], list(content["entries"])
        made_by = content["packages"]["jitkernels"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArgumentError(f"tune: --import: {path}: expected a table of measurements: {error}") from None
    if table_format != TABLE_FORMAT:
        raise ArgumentError(f"tune: --import: {path}: expected format {TABLE_FORMAT}, got {table_format!r}")
    if cpu != cpu_target.cpu_name():
        raise ArgumentError(
            f"tune: --import: {path}: expected a table of this family of CPUs, {cpu_target.cpu_name()}, got {cpu!r}"
        )
    if made_by != versions.version("jitkernels"):  # another version's kernels may differ under the same names
        raise ArgumentError(
            f"tune: --import: {path}: expected a table of jitkernels {versions.version('jitkernels')}, got one of "
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
            unknown |= {f"{checked.attr.name} has no implementation {n}": None for n in names if n not in known}
            entries.append(checked)
        except (ValueError, KeyError, TypeError, AttrError, UnknownNameError) as error:
            refused.append(f"entry {number}: {error}")
    return entries, refused, list(unknown)


def _entry(content: dict[str, Any]) -> Entry:
    """One entry whose class and variants exist here. Raises ValueError, or any error of parsing it."""
    attr = _attr(content["attr"])
    if attr is None:
        raise ValueError(f"there is no kernel {content['attr']['kernel']}")
    if class_of(attr) != attr:
        raise ValueError(f"{attr.name}({attr.text()}) is not a size class")
    threads = content["threads"]
    if type(threads) is not int or threads < 1:
        raise ValueError(f"{threads!r} is not a number of threads")
    candidates = tuple(measured_of(**candidate) for candidate in content["candidates"])
    if not candidates or candidates[0].seconds is None:
        raise ValueError(f"{attr.name}({attr.text()}) has no timing")
    existing = tuple(candidate for candidate in candidates if _exists(attr, candidate))
    if not existing:
        raise ValueError(f"{attr.name}({attr.text()}) has no implementation that exists here")
    return Entry(attr, threads, existing)


def _exists(attr: KernelAttr, candidate: Measured) -> bool:
    """Whether the variant exists; unusable implementations are not checked, as they will not be selected."""
    implementation = implementations(type(attr)).get(candidate.implementation)
    if implementation is None or candidate.seconds is None:
        return False
    member = measured_member(attr)
    if implementation.reason_against(member) is not None or not candidate.variant:
        return True
    if candidate.variant not in implementation.variants(member):
        raise ValueError(f"{attr.name}({attr.text()}): no variant {candidate.label}")
    return True
