"""Which attrs of a schema are tested: its named cases, sizes that leave every tail, and each field varied in turn."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from jitkernels.attrs.schema.base import Case, KernelAttr
from jitkernels.attrs.schema.schema_queries import specialised_extents_of
from jitkernels.errors import AttrError, DataIndexError

SIZES = (*range(34), 47, 64, 65, 100, 127, 255, 257, 513)
"""Extents that leave every tail, and no tail, of every vector width and unroll factor."""
LONG = (1_537, 50_257)
"""Extents at which the summation order matters."""
MOST_WORK = 3e7
"""Limit of operations of a large attr: where sizes multiply, one large size suffices to show an error."""
NUMBERS = (0.0, 1.0, 0.5, -1.5, 1e-3)
"""Values of float fields, besides their default, for fields without ``samples``."""


def attrs_around(schema: type[KernelAttr], sizes: Sequence[int] = SIZES) -> list[KernelAttr]:
    """Return the "ci" cases of a schema, and for each dtype a middle case with each field varied in turn.

    Extents take `sizes`, all other fields the values of `flags`. Of more than three extents each takes every second
    size with one base, and the others with the next. Combinations that the schema rejects, and those for which no valid
    data exist (ids into a table of no rows), are omitted.
    """
    attrs = [case.attr for case in ci_cases(schema)]
    for number, base in enumerate([*middles(schema), *_singletons(schema)]):
        names = integers(base)
        step = 2 if len(names) > 3 else 1
        sizes_of = {name: sizes[(number + index) % step :: step] for index, name in enumerate(names)}
        changes = ({name: size} for name in names for size in sizes_of[name])
        attrs += [attr for change in changes if (attr := changed(base, change)) is not None]
        attrs += flags(base)
    return list(dict.fromkeys(attrs))


def _singletons(schema: type[KernelAttr]) -> list[KernelAttr]:
    """Return the middle cases of a schema with 1 for extents which may have specialized code for that."""
    changes = [changed(base, {name: 1}) for name in specialised_extents_of(schema) for base in middles(schema)]
    return [attr for attr in changes if attr is not None]


def long_attrs(schema: type[KernelAttr], sizes: Sequence[int] = LONG, *, everything: bool = True) -> list[KernelAttr]:
    """Return attrs with each integer in turn large and the others small.

    The first dtype takes every flag and choice; the others take them except at the largest size. Unless `everything`,
    they are taken at the smallest size, by the first dtype alone.
    """
    attrs = []
    for number, base in enumerate(middles(schema)):
        small = changed(base, {name: min(getattr(base, name), 5) for name in integers(base)}) or base
        for name, size in itertools.product(integers(base), sizes):
            attr = changed(small, {name: size})
            if attr is not None and attr.operations() <= MOST_WORK:
                is_flagged = not (number and size == max(sizes)) if everything else not number and size == min(sizes)
                attrs += flags(attr, numbers=False) if is_flagged else [attr]
    return list(dict.fromkeys(attrs))


def flags(base: KernelAttr, *, numbers: bool = True) -> list[KernelAttr]:
    """Return the attr, and the attr with each flag, choice and (if `numbers`) number in turn at its other values."""
    attrs = [base]
    for name, values in _values(base).items():
        if numbers or base.known_fields()[name].kind not in ("float", "whole"):
            attrs += [attr for value in values if (attr := changed(base, {name: value})) is not None]
    return list(dict.fromkeys(attrs))


def ci_cases(schema: type[KernelAttr]) -> list[Case]:
    """Return the cases of a schema's sweep that are tested on every machine."""
    return [case for case in schema.sweep() if "ci" in case.tags]


def middles(schema: type[KernelAttr]) -> list[KernelAttr]:
    """Return the middle "ci" case of each dtype."""
    by_dtype: dict[str, list[KernelAttr]] = {}
    for case in ci_cases(schema):
        by_dtype.setdefault(_dtype(case.attr), []).append(case.attr)
    return [middle_of(attrs) for attrs in by_dtype.values()]


def middle(schema: type[KernelAttr], dtype: str) -> KernelAttr:
    """Return the middle "ci" case of that dtype."""
    return middle_of([case.attr for case in ci_cases(schema) if _dtype(case.attr) == dtype])


def middle_of(attrs: Sequence[KernelAttr]) -> KernelAttr:
    """Return the attr whose arrays have the median size, of those with no extent below 2 if any."""
    proper = [attr for attr in attrs if min(itertools.chain(*(a.shape for a in attr.signature().arrays))) > 1]
    ordered = sorted(proper or attrs, key=nbytes)
    return ordered[len(ordered) // 2]


def nbytes(attr: KernelAttr) -> int:
    """Return the bytes of all arrays of a call."""
    return sum(array.nbytes for array in attr.signature().arrays)


def integers(attr: KernelAttr) -> list[str]:
    """Return the names of the fields that are extents."""
    return [name for name, field in attr.known_fields().items() if field.kind == "int"]


def changed(base: KernelAttr, change: dict[str, Any], most: int | None = None) -> KernelAttr | None:
    """Return the attr with changed fields, or None if the schema rejects that or no data exist for it.

    Also returns None, without creating arrays, if these would have `most` bytes or more.
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
    """Return the values to try for each field that is neither an extent nor a dtype."""
    attrs: dict[str, Sequence[Any]] = {}
    for field in dataclasses.fields(base):  # type: ignore[arg-type]  # attrs are dataclasses
        value = getattr(base, field.name)
        if values := field.metadata.get("values"):
            attrs[field.name] = values
        elif isinstance(value, bool):
            attrs[field.name] = (False, True)
        elif isinstance(value, float):
            attrs[field.name] = field.metadata.get("samples") or NUMBERS
        elif samples := field.metadata.get("samples"):
            attrs[field.name] = samples
    return attrs


def _dtype(attr: KernelAttr) -> Any:
    return attr.fields().get("dtype")
