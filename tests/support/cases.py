"""The test cases, generated from the registry: a new row or implementation is included automatically.

The number of collected tests grows with the number of implementations, not of sizes: a test iterates over the attrs
of its implementation when it runs, and reports all failures (`Failures`). The number of attrs, and of objects to
compile for them, is a share of a total for the whole suite, so that more rows do not make it slower; ``-m full``
tests all attrs.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import processor_skips
import pytest

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Variant, all_schemas, implementation, implementations
from jitkernels.attrs.schema.signature import Argument
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools import testing
from jitkernels.tools.testing import sizes

ATTRS, FEWEST = 900, 12
"""Attrs of all rows together for each implementation in one test, and the minimum of each row."""
OBJECTS = 180
"""Objects of all rows together for each implementation, beyond those of the "ci" cases."""
ROWS_PER_TURN = 20
"""With more rows than this, rows take turns: each tests a share of the common list."""
SHOWN = 10
OF_PROCESSOR = "on this processor"
"""What reasons say that no package mends."""

Row = type[KernelAttr]
Item = TypeVar("Item")


@functools.cache
def every_row() -> Sequence[Any]:
    """Return one parameter per row, such as ``vexp``."""
    return [pytest.param(row, id=row.kernel_type.name.lower()) for row in all_schemas()]


@functools.cache
def every_implementation() -> Sequence[Any]:
    """Return one parameter (row, name) per implementation, such as ``vexp-mkl``."""
    return _by_implementation(every_row())


@functools.cache
def every_compiled() -> Sequence[Any]:
    """Return the parameters of `every_implementation` except the references."""
    return [case for case in every_implementation() if case.values[1] != "refer"]


def turns() -> int:
    """Return the number of shares into which rows split a common list: 1 for few rows."""
    return max(1, len(all_schemas()) // ROWS_PER_TURN)


def in_turn(row: Row, items: Sequence[Item]) -> Sequence[Item]:
    """Return the share of a row; neighbouring rows have the other shares."""
    return items[all_schemas().index(row) % turns() :: turns()]


def _by_implementation(params: Sequence[Any]) -> list[Any]:
    return [
        pytest.param(row, name, id=f"{param.id}-{name}")
        for param in params
        for row in param.values
        for name in implementations(row)
    ]


@functools.cache
def every_form() -> Sequence[Any]:
    """Return one parameter per form of arrays and fields: the first row of each form.

    For tests of machinery that depends on the declaration of a row alone, such as the launcher and the
    everyday functions; values are checked for every row.
    """
    first: dict[Any, Any] = {}
    for row in all_schemas():
        first.setdefault(form(row), pytest.param(row, id=row.kernel_type.name.lower()))
    return list(first.values())


def form(row: Row) -> Any:
    """Return a row's declaration without names and domains: equal for rows that bind and launch calls alike."""
    known = row.known_fields()
    indices = {name: index for index, name in enumerate((*known, *row.derived))}
    arrays = [
        dataclasses.replace(argument, name="", domain=(0, 0), shape=_numbered(argument, indices))
        for argument in row.arrays
    ]
    checks = row.check_data is not KernelAttr.check_data
    return (*arrays, *(known[name].kind for name in known), len(row.floats), len(row.options), checks)


def _numbered(argument: Argument, indices: Mapping[str, int]) -> str:
    """Return a shape with the index of each field instead of its name."""
    numbered = [
        dataclasses.replace(extent, symbols=tuple(str(indices[symbol]) for symbol in extent.symbols))
        for extent in argument.extents
    ]
    return str(numbered)


@functools.cache
def every_form_implemented() -> Sequence[Any]:
    """Return one parameter (row, name) per implementation of the rows of `every_form`."""
    return _by_implementation(every_form())


def middle(row: Row, name: str) -> KernelAttr:
    """Return a middle case that an implementation supports; dtypes alternate between implementations."""
    attrs = middles_in_scope(row, name)
    turn = all_schemas().index(row) + list(implementations(row)).index(name)
    return attrs[turn % len(attrs)]


def middles(row: Row) -> list[KernelAttr]:
    """Return the middle "ci" case of each dtype."""
    return _middles(row)  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _middles(row: Row) -> list[KernelAttr]:
    return testing.middles(row)


def middles_in_scope(row: Row, name: str) -> list[KernelAttr]:
    """Return the supported middle cases, or else the middle of all supported cases."""
    cases = []
    supported = in_scope(row, name)
    for attr in middles(row):
        dtype = attr.fields()["dtype"]
        others = [other for other in supported if other.fields()["dtype"] == dtype]
        cases.append(attr if attr in supported or not others else sizes.middle_of(others))
    return only_in_scope(row, name, cases)


def in_scope(row: Row, name: str) -> list[KernelAttr]:
    """Return the "ci" attrs that an implementation supports here; all of them if it is unusable for any."""
    return only_in_scope(row, name, _ci_attrs(row))  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _ci_attrs(row: Row) -> list[KernelAttr]:
    return [case.attr for case in testing.ci_cases(row)]


def only_in_scope(row: Row, name: str, attrs: Sequence[KernelAttr]) -> list[KernelAttr]:
    """Omit attrs that an implementation supports on no machine, such as a maximum by a library of sums.

    An implementation unusable for all attrs lacks its library: its middle cases remain, skipped with the reason.
    """
    entry = implementation(row, name)
    if name == "refer" or not _useless(row, name):  # type: ignore[arg-type]  # a class is hashable
        return [attr for attr in attrs if entry.reason_against(attr) is None]
    return [attr for attr in attrs if attr in middles(row)]


@functools.cache
def _useless(row: Row, name: str) -> bool:
    entry = implementation(row, name)
    return all(entry.reason_against(attr) is not None for attr in _ci_attrs(row))  # type: ignore[arg-type]


def affordable(row: Row, name: str, attrs: Sequence[KernelAttr]) -> list[KernelAttr]:
    """Return an even selection of the supported attrs, if they or the objects to compile are many."""
    selected = evenly(only_in_scope(row, name, attrs), max(FEWEST, ATTRS // len(all_schemas())))
    if name == "refer":
        return selected
    basic = in_scope(row, name)
    known = {text for attr in basic for text in _texts(attr, name)}
    costly = [attr for attr in selected if attr not in basic and not _texts(attr, name) <= known]
    new = {text for attr in costly for text in _texts(attr, name)}
    share = max(4, OBJECTS // len(all_schemas()))
    affordable_ones = evenly(costly, len(costly) * share // len(new)) if len(new) > share else costly
    return [attr for attr in selected if attr in affordable_ones or attr not in costly]


def evenly(attrs: Sequence[KernelAttr], most: int) -> list[KernelAttr]:
    """Return at most `most` of them, evenly spaced, with the first and the last."""
    step = max(1, -(-len(attrs) // max(1, most)))
    return list(attrs[::step])


def _texts(attr: KernelAttr, name: str) -> set[str]:
    """Return the source texts of `variants_of` it; empty if there are none for this attr, which its test reports."""
    entry = implementation(type(attr), name)
    if entry.reason_against(attr) is not None:
        return set()
    return {entry.function(attr, **variant).text for variant in variants_of(attr, name)}


def usable(attr: KernelAttr, name: str) -> None:
    """Skip the test, with the reason, if the implementation is unusable: the processor's, where that rules out all."""
    found = implementation(type(attr), name)
    reason = found.reason_against(attr)
    if reason is not None:
        every = [found.reason_against(other) for other in _ci_attrs(type(attr))]  # type: ignore[arg-type]
        reason = next((other for other in every if other and all(every) and OF_PROCESSOR in other), reason)
        skip = processor_skips.skip if OF_PROCESSOR in reason else pytest.skip
        skip(f"{name} of {attr.name}: {reason}")


def variants_of(attr: KernelAttr, name: str, *, everything: bool = False) -> Sequence[Variant]:
    """Return the variants to test: all if rows are few, otherwise the first and one more in turn.

    This applies separately to variants with and without threads. The second variant differs between neighbouring rows
    and between the dtypes of a row, so that a family covers all.
    """
    variants = implementation(type(attr), name).variants(attr)
    if everything or turns() == 1:
        return variants
    turn = all_schemas().index(type(attr)) + (attr.fields().get("dtype") == "float64")
    chosen: list[Variant] = []
    for parallel in (False, True):
        kind = [variant for variant in variants if bool(variant.get("parallel")) is parallel]
        others = kind[1:]
        chosen += [*kind[:1], *(others[turn % len(others) :][:1] if others else ())]
    return chosen


def kernels_of(attr: KernelAttr, name: str, *, everything: bool = False) -> list[Kernel]:
    """Return the kernels of `variants_of` an implementation; skip if it is unusable."""
    usable(attr, name)
    entry = implementation(type(attr), name)
    return [Kernel(attr, entry, variant) for variant in variants_of(attr, name, everything=everything)]


def callables_of(attr: KernelAttr, name: str, *, everything: bool = False) -> dict[str, Any]:
    """Return the callables of `variants_of` an implementation by label."""
    return {repr(kernel): kernel.callable for kernel in kernels_of(attr, name, everything=everything)}


def together(
    row: Row, attrs: Sequence[KernelAttr], *, everything: bool = False
) -> Iterator[tuple[KernelAttr, dict[str, Any]]]:
    """Yield each attr with the callables of all implementations that support it here within the budget."""
    choose = only_in_scope if everything else affordable
    chosen = {name: set(choose(row, name, attrs)) for name in implementations(row)}
    for attr in attrs:
        names = [name for name, selected in chosen.items() if attr in selected]
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
    """Collected failures of a test that iterates over many cases; the test must have run at least one."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._tried = 0

    @contextlib.contextmanager
    def gathered(self, label: str = "") -> Iterator[None]:
        """Collect the failure of one case."""
        self._tried += 1
        try:
            yield
        except (AssertionError, pytest.fail.Exception) as error:
            self._found.append(f"{label} {error}".strip().split("\n")[0])

    def tell(self) -> None:
        """Fail with the first failure and the count of all."""
        assert self._tried, "nothing was tried"
        assert not self._found, "\n".join([f"{len(self._found)} of {self._tried} cases fail", *self._found[:SHOWN]])
