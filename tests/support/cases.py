"""The cases of the suite, generated from the registry: a new row or implementation is in them by itself.

What is collected grows with the number of implementations, not of sizes: a test goes through the attrs of its
implementation itself, when it runs, and tells all that fail (`Failures`). How many it goes through, and how many
objects it may compile for them, are shares of what the whole suite may, so that more rows do not make it slower;
``-m full`` goes through all attrs.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.kernel import Kernel
from jitkernels.registry import Variant, all_rows, implementation, implementations
from jitkernels.signature import Argument
from jitkernels.testing import sizes

ATTRS, FEWEST = 900, 12
"""How many attrs all rows together may try for each implementation in one test, and how many each row at least."""
OBJECTS = 180
"""How many objects beyond those of the "ci" cases all rows together may cost for each implementation."""
ROWS_PER_TURN = 20
"""Rows that share what every one of them would go through if there were few, are so many for each share."""
SHOWN = 10

Row = type[KernelAttr]
Item = TypeVar("Item")


@functools.cache
def every_row() -> Sequence[Any]:
    """One parameter per row, such as ``vexp``."""
    return [pytest.param(row, id=row.kernel_type.name.lower()) for row in all_rows()]


@functools.cache
def every_implementation() -> Sequence[Any]:
    """One parameter (row, name) per implementation, such as ``vexp-mkl``."""
    return _by_implementation(every_row())


@functools.cache
def every_compiled() -> Sequence[Any]:
    """`every_implementation` but the references."""
    return [case for case in every_implementation() if case.values[1] != "refer"]


def turns() -> int:
    """How many shares the rows make of what they have in common: 1 where they are few."""
    return max(1, len(all_rows()) // ROWS_PER_TURN)


def in_turn(row: Row, items: Sequence[Item]) -> Sequence[Item]:
    """The share of a row, whose neighbours have the others."""
    return items[all_rows().index(row) % turns() :: turns()]


def _by_implementation(params: Sequence[Any]) -> list[Any]:
    return [
        pytest.param(row, name, id=f"{param.id}-{name}")
        for param in params
        for row in param.values
        for name in implementations(row)
    ]


@functools.cache
def every_form() -> Sequence[Any]:
    """One parameter per way to declare arrays and fields: one row of each, the first.

    For what the machinery does, which sees nothing of a row but its declaration, such as the launcher and the
    everyday functions; values are checked for every row.
    """
    first: dict[Any, Any] = {}
    for row in all_rows():
        first.setdefault(form(row), pytest.param(row, id=row.kernel_type.name.lower()))
    return list(first.values())


def form(row: Row) -> Any:
    """What a row declares, but for names and domains: equal for rows whose calls are bound and launched alike."""
    known = row.known_fields()
    places = {name: place for place, name in enumerate(known)}
    arrays = [
        dataclasses.replace(argument, name="", domain=(0, 0), shape=_numbered(argument, places))
        for argument in row.arrays
    ]
    checks = row.check_data is not KernelAttr.check_data
    return (*arrays, *(known[name].kind for name in known), len(row.floats), len(row.options), checks)


def _numbered(argument: Argument, places: Mapping[str, int]) -> str:
    """A shape with the place of each field instead of its name."""
    numbered = [
        dataclasses.replace(extent, symbols=tuple(str(places[symbol]) for symbol in extent.symbols))
        for extent in argument.extents
    ]
    return str(numbered)


@functools.cache
def every_form_implemented() -> Sequence[Any]:
    """One parameter (row, name) per implementation of the rows of `every_form`."""
    return _by_implementation(every_form())


def middle(row: Row, name: str) -> KernelAttr:
    """A middle case that an implementation computes, the dtypes taking turns from one implementation to the next."""
    attrs = middles_in_scope(row, name)
    turn = all_rows().index(row) + list(implementations(row)).index(name)
    return attrs[turn % len(attrs)]


def middles(row: Row) -> list[KernelAttr]:
    """The middle "ci" case of each dtype."""
    return _middles(row)  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _middles(row: Row) -> list[KernelAttr]:
    return testing.middles(row)


def middles_in_scope(row: Row, name: str) -> list[KernelAttr]:
    """The middle cases, or, where an implementation does not compute one, the middle of those it does."""
    found = []
    mine = in_scope(row, name)
    for attr in middles(row):
        dtype = attr.fields()["dtype"]
        others = [other for other in mine if other.fields()["dtype"] == dtype]
        found.append(attr if attr in mine or not others else sizes.middle_of(others))
    return only_in_scope(row, name, found)


def in_scope(row: Row, name: str) -> list[KernelAttr]:
    """The "ci" attrs that an implementation computes here; all of them if it cannot be used for any."""
    return only_in_scope(row, name, _ci_attrs(row))  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _ci_attrs(row: Row) -> list[KernelAttr]:
    return [case.attr for case in testing.ci_cases(row)]


def only_in_scope(row: Row, name: str, attrs: Sequence[KernelAttr]) -> list[KernelAttr]:
    """Leave out what an implementation does not compute anywhere, such as a maximum by a library of sums.

    One that cannot be used for any attr lacks its library: its middle cases stay, skipped with the reason.
    """
    found = implementation(row, name)
    if name == "refer" or not _useless(row, name):  # type: ignore[arg-type]  # a class is hashable
        return [attr for attr in attrs if found.reason_against(attr) is None]
    return [attr for attr in attrs if attr in middles(row)]


@functools.cache
def _useless(row: Row, name: str) -> bool:
    found = implementation(row, name)
    return all(found.reason_against(attr) is not None for attr in _ci_attrs(row))  # type: ignore[arg-type]


def affordable(row: Row, name: str, attrs: Sequence[KernelAttr]) -> list[KernelAttr]:
    """Of the attrs that an implementation computes an even choice, if they are many or many objects to compile."""
    mine = evenly(only_in_scope(row, name, attrs), max(FEWEST, ATTRS // len(all_rows())))
    if name == "refer":
        return mine
    basic = in_scope(row, name)
    known = {text for attr in basic for text in _texts(attr, name)}
    costly = [attr for attr in mine if attr not in basic and not _texts(attr, name) <= known]
    new = {text for attr in costly for text in _texts(attr, name)}
    share = max(4, OBJECTS // len(all_rows()))
    kept = evenly(costly, len(costly) * share // len(new)) if len(new) > share else costly
    return [attr for attr in mine if attr in kept or attr not in costly]


def evenly(attrs: Sequence[KernelAttr], most: int) -> list[KernelAttr]:
    """At most so many of them, from the first to the last."""
    step = max(1, -(-len(attrs) // max(1, most)))
    return list(attrs[::step])


def _texts(attr: KernelAttr, name: str) -> set[str]:
    """The sources of `variants_of` it; empty if there are none for this attr, which its test will tell."""
    found = implementation(type(attr), name)
    if found.reason_against(attr) is not None:
        return set()
    return {found.function(attr, **variant).text for variant in variants_of(attr, name)}


def usable(attr: KernelAttr, name: str) -> None:
    """Skip the test, with the reason, where the implementation cannot be used at all."""
    reason = implementation(type(attr), name).reason_against(attr)
    if reason is not None:
        pytest.skip(f"{name} of {attr.name}: {reason}")


def variants_of(attr: KernelAttr, name: str, *, everything: bool = False) -> Sequence[Variant]:
    """The variants that tests look at: all where rows are few, and otherwise the first and another one in turn.

    That is of those without threads, and of those with them. The other one is not the same for rows that are
    neighbours, nor for the dtypes of a row, so that a family meets all.
    """
    found = implementation(type(attr), name).variants(attr)
    if everything or turns() == 1:
        return found
    turn = all_rows().index(type(attr)) + (attr.fields().get("dtype") == "float64")
    chosen: list[Variant] = []
    for parallel in (False, True):
        kind = [variant for variant in found if bool(variant.get("parallel")) is parallel]
        others = kind[1:]
        chosen += [*kind[:1], *(others[turn % len(others) :][:1] if others else ())]
    return chosen


def kernels_of(attr: KernelAttr, name: str, *, everything: bool = False) -> list[Kernel]:
    """The kernels of `variants_of` an implementation; skips where it cannot be used."""
    usable(attr, name)
    found = implementation(type(attr), name)
    return [Kernel(attr, found, variant) for variant in variants_of(attr, name, everything=everything)]


def callables_of(attr: KernelAttr, name: str, *, everything: bool = False) -> dict[str, Any]:
    """The callables of `variants_of` an implementation by label."""
    return {repr(kernel): kernel.callable for kernel in kernels_of(attr, name, everything=everything)}


def together(
    row: Row, attrs: Sequence[KernelAttr], *, everything: bool = False
) -> Iterator[tuple[KernelAttr, dict[str, Any]]]:
    """Each attr with the callables of all implementations that compute it here and can afford it."""
    choose = only_in_scope if everything else affordable
    chosen = {name: set(choose(row, name, attrs)) for name in implementations(row)}
    for attr in attrs:
        names = [name for name, mine in chosen.items() if attr in mine]
        names = [name for name in names if implementation(row, name).reason_against(attr) is None]
        if names:
            yield (
                attr,
                {
                    label: call
                    for name in names
                    for label, call in callables_of(attr, name, everything=everything).items()
                },
            )


class Failures:
    """What failed in a test that goes through many cases; it must have gone through some."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._tried = 0

    @contextlib.contextmanager
    def gathered(self, label: str = "") -> Iterator[None]:
        """One case."""
        self._tried += 1
        try:
            yield
        except (AssertionError, pytest.fail.Exception) as error:
            self._found.append(f"{label} {error}".strip().split("\n")[0])

    def tell(self) -> None:
        """Fail with the first of them."""
        assert self._tried, "nothing was tried"
        assert not self._found, "\n".join(
            [f"{len(self._found)} of {self._tried} cases fail", *self._found[:SHOWN]]
        )
