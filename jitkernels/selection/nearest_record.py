"""The record of an attr's tuning class, or of the class nearest to it, found by the names of files."""

import contextlib
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from pathlib import Path
from typing import Any

from jitkernels import machine, packs
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import AttrError
from jitkernels.tuning import store
from jitkernels.tuning.store import Record

FARTHEST, FARTHEST_OF_ONE = 12, 4
"""Powers of two between classes, over all extents and in one of them, beyond which one tells nothing of the other."""

MANY = 2
"""So many more powers of two lie between one and many: what has no second element, or row, is computed otherwise."""

BEYOND = 1 << 30


def nearest(attr: KernelAttr, threads: int) -> tuple[KernelAttr, Record] | None:
    """The class with a record that differs from an attr in extents alone, and in these least, and that record.

    That is the attr itself if it has one. What is no whole record is passed over; no file is opened twice.
    """
    place = machine.timings_directory(threads)
    if packs.opened():
        return _nearest_with_packs(attr, threads, place)
    return None if place is None else _nearest_below(attr, threads, place)


def known_extents(attr: KernelAttr, threads: int) -> list[tuple[int, ...]]:
    """The extents of all attrs with a record that differ from an attr in these alone."""
    family, count = store.family_of(attr), len(attr.extents())
    names = [name.removeprefix(family) for name in packs.record_names(threads) if name.startswith(family)]
    found = {*map(_extents_of, names)}
    place = machine.timings_directory(threads)
    folder = None if place is None else _status(place)
    if place is not None and folder is not None:
        found |= {*_octaves_in(place, (folder.st_mtime_ns, store.saved), family)}
    return sorted(extents for extents in found if len(extents) == count)


def _nearest_with_packs(
    attr: KernelAttr, threads: int, place: Path | None
) -> tuple[KernelAttr, Record] | None:
    """As `nearest`: what is of the very class comes first, and of what is near that which is not packed."""
    found = None if place is None else _nearest_below(attr, threads, place)
    if found is not None and found[0] == attr:
        return found
    own = store.load(attr, threads)
    if own is not None:
        return attr, own
    if found is not None:
        return found
    family, octaves = store.family_of(attr), _octaves_of(attr.extents().values())
    names = [name.removeprefix(family) for name in packs.record_names(threads) if name.startswith(family)]
    known = [extents for extents in map(_extents_of, names) if len(extents) == len(octaves)]
    apart = sorted((_apart(octaves, _octaves_of(extents)), extents) for extents in known)
    for distance, extents in apart:
        if distance > FARTHEST:
            break
        fields = attr.fields() | dict(zip(attr.extents(), extents, strict=True))
        near: Any = type(attr)
        kept = _kept(near, tuple(fields.items()), threads, ())
        if kept is not None:
            return kept
    return None


def _nearest_below(attr: KernelAttr, threads: int, place: Path) -> tuple[KernelAttr, Record] | None:
    """As `nearest`, of what is in a folder."""
    family, sizes = store.family_of(attr), attr.extents()
    own = tuple(sizes.values())
    found = _record_of(attr, own, place, threads)
    folder = None if found else _status(place)
    if folder is None:
        return found
    octaves = _octaves_of(own)
    known = _octaves_in(place, (folder.st_mtime_ns, store.saved), family)
    apart = [(_apart(octaves, o), e) for e, o in known.items() if len(e) == len(own)]
    near = sorted(entry for entry in apart if entry[0] <= FARTHEST)
    records = (_record_of(attr, extents, place, threads) for _, extents in near)
    return next(filter(None, records), None)


def _record_of(
    attr: KernelAttr, extents: tuple[int, ...], place: Path, threads: int
) -> tuple[KernelAttr, Record] | None:
    """The class that is an attr's but for these extents, and its record, if it has one."""
    file = _status(place, store.file_name(store.family_of(attr), extents))
    if file is None:
        return None
    fields = attr.fields() | dict(zip(attr.extents(), extents, strict=True))
    version = file.st_ino, file.st_mtime_ns, file.st_size
    known_class: Any = type(attr)  # which is hashable, whatever type checkers say
    return _kept(known_class, tuple(fields.items()), threads, version)


def distance(one: Iterable[int], other: Iterable[int]) -> int:
    """Powers of two between classes of these extents, over all of them; more than `FARTHEST` if one is too far."""
    return _apart(_octaves_of(one), _octaves_of(other))


def _apart(one: Iterable[int], other: Iterable[int]) -> int:
    each = [*map(abs, map(sub, one, other))]
    return sum(each) if max(each, default=0) <= FARTHEST_OF_ONE else BEYOND


def _octaves_of(extents: Iterable[int]) -> tuple[int, ...]:
    """The powers of two that extents go up to: distances between classes are counted in them."""
    return tuple([MANY + (extent - 1).bit_length() if extent > 1 else 0 for extent in extents])


def _status(place: Path, name: str = "") -> os.stat_result | None:
    """Of a folder or a file in it, if there is one."""
    try:
        return os.stat(f"{place}/{name}")  # half the time of the method
    except OSError:
        return None


@functools.lru_cache(maxsize=256)
def _octaves_in(
    place: Path, changed: tuple[int, int], family: str
) -> Mapping[tuple[int, ...], tuple[int, ...]]:
    """Extents and their octaves of the classes of a family that have a record in a folder."""
    found = map(_extents_of, _families(place, changed).get(family, ()))
    return {extents: _octaves_of(extents) for extents in found if extents}


def _extents_of(ending: str) -> tuple[int, ...]:
    """The extents that the name of a record ends with; none where it is no name that a record is given."""
    parts = ending.removesuffix(".json").split("x")
    extents = tuple([int(part) for part in parts if part.isascii() and part.isdecimal()])
    return extents if store.file_name("", extents) == ending else ()


@functools.lru_cache(maxsize=4)
def _families(place: Path, changed: tuple[int, int]) -> Mapping[str, Sequence[str]]:
    """What stands behind the beginnings of names in a folder, as of when it `changed`."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(place)
    for name in names:
        family, dash, rest = name.rpartition("-")
        found.setdefault(family + dash, []).append(rest)
    return found


@functools.lru_cache(maxsize=64)
def _kept(
    attr_class: type[KernelAttr],
    fields: tuple[tuple[str, Any], ...],
    threads: int,
    version: tuple[int, ...],  # the key
) -> tuple[KernelAttr, Record] | None:
    """A class and its record, which many others may be near to."""
    try:
        near = attr_class(**dict(fields))
    except AttrError:  # of a name that nobody here gave a file
        return None
    record = store.load(near, threads)
    return None if record is None else (near, record)
