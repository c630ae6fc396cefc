"""Find the record of an attr's size class, or of the nearest class, by the names of record files."""

import contextlib
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.codegen import kernel_archive
from jitkernels.core import cache_dirs
from jitkernels.errors import AttrError
from jitkernels.selection import records as store
from jitkernels.selection.records import Record

FARTHEST, FARTHEST_OF_ONE = 12, 4
"""Largest distance between classes, in powers of two, over all extents and in one; farther records do not apply."""

UNIT_EXTENT_DISTANCE = 2
"""Extra powers of two between an extent of 1 and larger ones: without a second element or row the code is different."""

INAPPLICABLE_DISTANCE = 1 << 30
"""Distance in powers of two of a class whose record does not apply: larger than any sum of real ones."""


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class with a record that differs from an attr in extents only, and in these least, and that record.

    That is the attr itself if it has one. Invalid records are skipped; no file is opened twice.
    """
    folder = cache_dirs.timings_directory(threads)
    if kernel_archive.opened():
        return _nearest_with_packs(attr, threads, folder)
    return None if folder is None else _nearest_below(attr, threads, folder)


def known_extents(attr: KernelAttr, threads: int) -> list[tuple[int, ...]]:
    """The extents of all attrs with a record that differ from an attr in these only."""
    family, count = store.family_of(attr), len(attr.extents())
    names = [name.removeprefix(family) for name in kernel_archive.record_names(threads) if name.startswith(family)]
    extents_found = {*map(_extents_of, names)}
    folder = cache_dirs.timings_directory(threads)
    status = None if folder is None else _status(folder)
    if folder is not None and status is not None:
        extents_found |= {*_octaves_in(folder, (status.st_mtime_ns, store.saved), family)}
    return sorted(extents for extents in extents_found if len(extents) == count)


def _nearest_with_packs(attr: KernelAttr, threads: int, folder: Path | None) -> tuple[KernelAttr, Record] | None:
    """As `nearest`, packs included: the exact class first, then nearby records of the directory, then of packs."""
    stored = None if folder is None else _nearest_below(attr, threads, folder)
    if stored is not None and stored[0] == attr:
        return stored
    own = store.load(attr, threads)
    if own is not None:
        return attr, own
    if stored is not None:
        return stored
    family, octaves = store.family_of(attr), _octaves_of(attr.extents().values())
    names = [name.removeprefix(family) for name in kernel_archive.record_names(threads) if name.startswith(family)]
    known = [extents for extents in map(_extents_of, names) if len(extents) == len(octaves)]
    ranked = sorted((_octave_distance(octaves, _octaves_of(extents)), extents) for extents in known)
    for distance, extents in ranked:
        if distance > FARTHEST:
            break
        fields = attr.fields() | dict(zip(attr.extents(), extents, strict=True))
        near: Any = type(attr)
        record = _cached_record(near, tuple(fields.items()), threads, ())
        if record is not None:
            return record
    return None


def _nearest_below(attr: KernelAttr, threads: int, folder: Path) -> tuple[KernelAttr, Record] | None:
    """As `nearest`, for the records of one directory."""
    family, sizes = store.family_of(attr), attr.extents()
    own = tuple(sizes.values())
    exact = _record_of(attr, own, folder, threads)
    status = None if exact else _status(folder)
    if status is None:
        return exact
    octaves = _octaves_of(own)
    known = _octaves_in(folder, (status.st_mtime_ns, store.saved), family)
    ranked = [(_octave_distance(octaves, o), e) for e, o in known.items() if len(e) == len(own)]
    near = sorted(entry for entry in ranked if entry[0] <= FARTHEST)
    records = (_record_of(attr, extents, folder, threads) for _, extents in near)
    return next(filter(None, records), None)


def _record_of(
    attr: KernelAttr, extents: tuple[int, ...], folder: Path, threads: int
) -> tuple[KernelAttr, Record] | None:
    """The attr with these extents and its record, or None."""
    file = _status(folder, store.file_name(store.family_of(attr), extents))
    if file is None:
        return None
    fields = attr.fields() | dict(zip(attr.extents(), extents, strict=True))
    version = file.st_ino, file.st_mtime_ns, file.st_size
    known_class: Any = type(attr)  # hashable, though type checkers disagree
    return _cached_record(known_class, tuple(fields.items()), threads, version)


def distance(extents: Iterable[int], others: Iterable[int]) -> int:
    """The distance in powers of two between classes with these extents; more than `FARTHEST` if one is too far."""
    return _octave_distance(_octaves_of(extents), _octaves_of(others))


def _octave_distance(octaves: Iterable[int], others: Iterable[int]) -> int:
    distances = [*map(abs, map(sub, octaves, others))]
    return sum(distances) if max(distances, default=0) <= FARTHEST_OF_ONE else INAPPLICABLE_DISTANCE


def _octaves_of(extents: Iterable[int]) -> tuple[int, ...]:
    """The powers of two that bound the extents: distances between classes are counted in them."""
    return tuple([UNIT_EXTENT_DISTANCE + (extent - 1).bit_length() if extent > 1 else 0 for extent in extents])


def _status(folder: Path, name: str = "") -> os.stat_result | None:
    """The stat of a directory or of a file in it, or None."""
    try:
        return os.stat(f"{folder}/{name}")  # half the time of Path.stat
    except OSError:
        return None


@functools.lru_cache(maxsize=256)
def _octaves_in(folder: Path, changed: tuple[int, int], family: str) -> Mapping[tuple[int, ...], tuple[int, ...]]:
    """Extents and their octaves of the classes of a family that have a record in a directory."""
    known = map(_extents_of, _families(folder, changed).get(family, ()))
    return {extents: _octaves_of(extents) for extents in known if extents}


def _extents_of(ending: str) -> tuple[int, ...]:
    """The extents at the end of a record's file name; empty if it is not such a name."""
    parts = ending.removesuffix(".json").split("x")
    extents = tuple([int(part) for part in parts if part.isascii() and part.isdecimal()])
    return extents if store.file_name("", extents) == ending else ()


@functools.lru_cache(maxsize=4)
def _families(folder: Path, changed: tuple[int, int]) -> Mapping[str, Sequence[str]]:
    """The file names in a directory, grouped by family prefix, as of when it `changed`."""
    by_family: dict[str, list[str]] = {}
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        family, dash, rest = name.rpartition("-")
        by_family.setdefault(family + dash, []).append(rest)
    return by_family


@functools.lru_cache(maxsize=64)
def _cached_record(
    attr_class: type[KernelAttr],
    fields: tuple[tuple[str, Any], ...],
    threads: int,
    version: tuple[int, ...],  # the key
) -> tuple[KernelAttr, Record] | None:
    """The attr of a class and its record, cached, as many attrs may be near to it."""
    try:
        near = attr_class(**dict(fields))
    except AttrError:  # no record file of ours
        return None
    record = store.load(near, threads)
    return None if record is None else (near, record)
