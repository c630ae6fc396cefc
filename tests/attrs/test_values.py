"""Every implementation of every row gives the right values and writes nowhere else."""

from collections.abc import Iterable, Sequence
from typing import Any

import cases
import numpy as np
import oracles
import pytest
from cases import Failures, Row

from jitkernels import set_num_threads
from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementation
from jitkernels.tools import testing

LONG_KINDS = ("positive", "constant", "columns", "ties")
EVERY = 5
"""At most sizes only each fifth kind of data is tried, another fifth at the next size."""


@pytest.mark.per_push
@pytest.mark.parametrize("row", cases.every_row())
def test_values(row: Row) -> None:
    """Check every variant at all sizes, flush against guard pages on both sides, and in place where allowed."""
    _check(cases.together(row, testing.attrs_around(row)), EVERY)


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_values_of_all_kinds_at_all_sizes(row: Row) -> None:
    """Check all kinds of data, of which the test above takes a part."""
    _check(cases.together(row, testing.attrs_around(row), everything=True), 1)


def _check(tried: Iterable[tuple[KernelAttr, dict[str, Any]]], every: int) -> None:
    failures = Failures()
    for number, (attr, callables) in enumerate(tried):
        for label, function in callables.items():
            with failures.gathered():
                testing.check_values(attr, function, oracles.expected, label=label)
                testing.check_aliased_arguments(attr, function, oracles.expected, label=label)
        with failures.gathered():
            kinds = list(testing.kinds(attr))[number % every :: every]
            testing.check_data(attr, callables, oracles.expected, kinds=kinds)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_row())
def test_every_kind_of_data(row: Row) -> None:
    """At the middle size, for every value of every flag, choice and float; the truth is computed once for all."""
    failures = Failures()
    for attr, callables in cases.together(row, [a for m in cases.middles(row) for a in testing.flags(m)]):
        with failures.gathered():
            testing.check_data(attr, callables, oracles.expected)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_row())
def test_long_extents_are_accurate(row: Row) -> None:
    """Check lengths at which a single chain of additions would be off."""
    _check_long(row, testing.long_attrs(row, everything=False), max(2, cases.turns()))


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_very_long_extents_are_accurate(row: Row) -> None:
    _check_long(row, testing.long_attrs(row), 1)
    _check_long(row, testing.long_attrs(row, sizes=(1_000_003,)), 1)


def _check_long(row: Row, attrs: Sequence[KernelAttr], every: int) -> None:
    """Each attr meets one kind of data in `every`, in turns that keep no step with those of flags and dtypes.

    Rows begin with different kinds, since those of few attrs do not come to all.
    """
    failures, first = Failures(), all_schemas().index(row)
    for number, (attr, callables) in enumerate(cases.together(row, attrs)):
        peaks = [kind for kind in testing.kinds(attr) if kind.startswith("peak")]
        kinds = [*LONG_KINDS, *peaks[::2]][(first + number.bit_count()) % every :: every]
        with failures.gathered():
            testing.check_data(attr, callables, oracles.expected, kinds=kinds)
    failures.tell()


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_slow_path_gives_the_same_results(row: cases.Row, name: str) -> None:
    """`Kernel.run` serves calls that the compiled launcher rejects."""
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name):
        testing.check_values(attr, kernel.run, oracles.expected, label=f"run of {kernel!r}")


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_several_threads(row: type[KernelAttr], name: str) -> None:
    """Run all variants of large cases on two threads and on more threads than cores."""
    from jitkernels import get_num_threads

    before = get_num_threads()
    mine = cases.middles_in_scope(row, name)
    for dtype, threads in cases.in_turn(row, [("float32", 2), ("float64", 5), ("float32", 5), ("float64", 2)]):
        attr = _large(next((attr for attr in mine if attr.fields()["dtype"] == dtype), mine[0]), name)
        cases.usable(attr, name)
        try:
            set_num_threads(threads)
            for kernel in cases.kernels_of(attr, name):
                label = f"{kernel!r} on {threads} threads"
                testing.check_values(attr, kernel.callable, oracles.expected, label=label)
        finally:
            set_num_threads(before)


def _large(attr: KernelAttr, name: str) -> KernelAttr:
    """The attr, its extents doubled in turn where an implementation takes that, until a call takes some 100 us."""
    found = implementation(type(attr), name)
    usable = found.reason_against(attr) is None
    names = testing.sizes.integers(attr)
    for turn in range(64 * len(names)):
        if attr.operations() >= 2**18:
            break
        key = names[turn % len(names)]
        for size in (2 * max(1, attr.fields()[key]) + 1, 2 * attr.fields()[key]):
            larger = testing.changed(attr, {key: size})
            if larger is not None and (not usable or found.reason_against(larger) is None):
                attr = larger
                break
    return attr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_oracle_exponential_agrees_with_fifty_digits(dtype: str) -> None:
    """Long double's exp, which the oracles lean on, is much closer to the truth than the tolerance."""
    points = np.concatenate([np.linspace(-11, 11, 397), np.linspace(-80, 80, 41)]).astype(dtype)
    true = oracles.mpmath_exp(points)
    got = oracles.exp(points.astype(oracles.WIDE)).astype(np.float64)
    off = error_bounds.beyond(got, true, error_bounds.unit(true, "float64"))
    assert not off.any()


@pytest.mark.parametrize("row", cases.every_row())
def test_sweep_names_are_unique_and_cover_both_types(row: type[KernelAttr]) -> None:
    names = [case.name for case in row.sweep()]
    assert len(names) == len(set(names))
    assert {"float32", "float64"} <= {case.attr.fields()["dtype"] for case in testing.ci_cases(row)}
