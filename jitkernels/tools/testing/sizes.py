"""Which attrs of a row are checked: the cases it names, sizes that leave every tail, and each field in turn."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from jitkernels.attrs.base import Case, KernelAttr
from jitkernels.attrs.roles import singles_of
from jitkernels.errors import AttrError, DataIndexError

SIZES = (*range(34), 47, 64, 65, 100, 127, 255, 257, 513)
"""Extents that leave every tail of every vector width and unrolling, and none."""
LONG = (1_537, 50_257)
"""Extents at which sums need care."""
MOST_WORK = 3e7
"""Operations of a long attr: where sizes multiply, two of them need not be long to show an error."""
NUMBERS = (0.0, 1.0, 0.5, -1.5, 1e-3)
"""What float fields are tried with, beside their default and where they have no ``samples`` of their own."""


def attrs_around(row: type[KernelAttr], sizes: Sequence[int] = SIZES) -> list[KernelAttr]:
    """The "ci" cases of a row, and for each dtype a middle one with each field in turn changed.

    Extents take `sizes`, all other fields the values of `flags`. Of more than three extents each takes every second
    size with one base, and the others with the next. Combinations that the row refuses, and those for which no valid
    data exist (ids into a table of no rows), are left out.
    """
    found = [case.attr for case in ci_cases(row)]
    for turn, base in enumerate([*middles(row), *_alone(row)]):
        names = integers(base)
        step = 2 if len(names) > 3 else 1
        taken = {name: sizes[(turn + place) % step :: step] for place, name in enumerate(names)}
        changes = ({name: size} for name in names for size in taken[name])
        found += [attr for change in changes if (attr := changed(base, change)) is not None]
        found += flags(base)
    return list(dict.fromkeys(found))


def _alone(row: type[KernelAttr]) -> list[KernelAttr]:
    """The middle cases of a row with 1 for extents for which there may be code of its own then."""
    changes = [changed(base, {name: 1}) for name in singles_of(row) for base in middles(row)]
    return [attr for attr in changes if attr is not None]


def long_attrs(row: type[KernelAttr], sizes: Sequence[int] = LONG) -> list[KernelAttr]:
    """Each integer in turn long and the others small, for every flag and choice (of the first dtype, if longest)."""
    found = []
    for turn, base in enumerate(middles(row)):
        small = changed(base, {name: min(getattr(base, name), 5) for name in integers(base)}) or base
        for name, size in itertools.product(integers(base), sizes):
            attr = changed(small, {name: size})
            if attr is not None and attr.operations() <= MOST_WORK:
                found += [attr] if turn and size == max(sizes) else flags(attr, numbers=False)
    return list(dict.fromkeys(found))


def flags(base: KernelAttr, *, numbers: bool = True) -> list[KernelAttr]:
    """The attr, and it with each flag, choice and (if asked) number in turn at its other values."""
    found = [base]
    for name, values in _values(base).items():
        if numbers or base.known_fields()[name].kind not in ("float", "whole"):
            found += [attr for value in values if (attr := changed(base, {name: value})) is not None]
    return list(dict.fromkeys(found))


def ci_cases(row: type[KernelAttr]) -> list[Case]:
    """The cases of a row's sweep that are tested everywhere."""
    return [case for case in row.sweep() if "ci" in case.tags]


def middles(row: type[KernelAttr]) -> list[KernelAttr]:
    """The middle "ci" case of each dtype."""
    return [middle(row, dtype) for dtype in dict.fromkeys(_dtype(case.attr) for case in ci_cases(row))]


def middle(row: type[KernelAttr], dtype: str) -> KernelAttr:
    """The middle "ci" case of that dtype."""
    return middle_of([case.attr for case in ci_cases(row) if _dtype(case.attr) == dtype])


def middle_of(found: Sequence[KernelAttr]) -> KernelAttr:
    """The attr whose arrays have the median size, of those with no extent below 2 if any."""
    proper = [attr for attr in found if min(itertools.chain(*(a.shape for a in attr.signature().arrays))) > 1]
    ordered = sorted(proper or found, key=nbytes)
    return ordered[len(ordered) // 2]


def nbytes(attr: KernelAttr) -> int:
    """Bytes of all arrays of a call."""
    return sum(array.nbytes for array in attr.signature().arrays)


def integers(attr: KernelAttr) -> list[str]:
    """The names of the fields that are extents."""
    return [name for name, field in attr.known_fields().items() if field.kind == "int"]


def changed(base: KernelAttr, change: dict[str, Any], most: int | None = None) -> KernelAttr | None:
    """The attr with other values of some fields, or None if the row refuses that or no data exist for it.

    Also None if its arrays have `most` bytes or more, of which none is made then.
    """
    try:
        attr = type(base)(**base.fields() | change)
        if most is not None and nbytes(attr) >= most:
            return None
        if type(attr).check_data is not KernelAttr.check_data:
            attr.check_data(attr.signature().sample())
        return attr
    except (AttrError, DataIndexError):
        return None


def _values(base: KernelAttr) -> dict[str, Sequence[Any]]:
    """What each field that is neither an extent nor a dtype may be, or is tried with."""
    found: dict[str, Sequence[Any]] = {}
    for field in dataclasses.fields(base):  # type: ignore[arg-type]  # attrs are dataclasses
        value = getattr(base, field.name)
        if values := field.metadata.get("values"):
            found[field.name] = values
        elif isinstance(value, bool):
            found[field.name] = (False, True)
        elif isinstance(value, float):
            found[field.name] = field.metadata.get("samples") or NUMBERS
        elif samples := field.metadata.get("samples"):
            found[field.name] = samples
    return found


def _dtype(attr: KernelAttr) -> Any:
    return attr.fields().get("dtype")
