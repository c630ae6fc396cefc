"""Mistakes that kernels might have, planted one at a time: `testing` finds every one of them.

A mutant is a right implementation of `mistakes` with one piece of its text replaced. What is
planted has happened, or would be the next to happen: a mutant that lives shows what the checks do not look at.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import mistakes
import numpy as np
import oracles
import pytest

from jitkernels import registry, testing

SIZES = (0, 1, 2, 7, 17)
MOST_OPERATIONS = 50_000
LONG, MOST_LONG, MANY = (1_537, 20_021), 20_000_000, 24
LONG_KINDS = ("constant", "columns", "positive")
"""Each long attr sees one of them, or one and positive numbers where there are no more than so many of those."""
KINDS, ALONE = 3, 10
"""Each attr sees every third kind of data, the next attr the next ones; every tenth special values one by one."""
FAMILIES = mistakes.families()


def mutant(kernel: str, old: str, new: str) -> Callable[..., None]:
    """A right kernel with one piece of its text replaced."""
    text = inspect.getsource(getattr(FAMILIES[kernel], kernel))
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {kernel}"
    names: dict[str, Any] = {**vars(mistakes), **vars(FAMILIES[kernel])}
    exec(compile(text.replace(old, new), f"<{kernel}>", "exec"), names)  # the mutation
    function: Callable[..., None] = names[kernel]
    return function


def check_all(row: Any, function: Callable[..., None]) -> None:
    """What the suite asks of an implementation, at few sizes, which take turns."""

    def bound(attr: Any) -> Callable[..., None]:
        return lambda *arrays: attr.signature().through_numbers(partial(function, attr), arrays)

    attrs = [attr for attr in testing.attrs_around(row, SIZES) if attr.operations() <= MOST_OPERATIONS]
    with np.errstate(all="ignore"):
        for number, attr in enumerate(sorted(attrs, key=lambda attr: attr.operations())):
            called, label = bound(attr), attr.text()
            kinds = list(testing.kinds(attr))[number % KINDS :: KINDS]
            testing.check_values(attr, called, oracles.expected, label=label)
            testing.check_data(attr, {label: called}, oracles.expected, kinds=kinds)
            testing.check_bad_indices(attr, called, label=label)
            if number % KINDS < 2:
                testing.check_in_place(attr, called, oracles.expected, label=label)
            alone = (len(attrs) - 1 - number) % ALONE == 0
            if alone or number % KINDS == 0:
                testing.check_special_values(attr, called, oracles.expected, label=label, alone=alone)
        long = [attr for attr in testing.long_attrs(row, LONG) if attr.operations() <= MOST_LONG]
        for number, attr in enumerate(long):
            one = LONG_KINDS[number % 3] if len(long) > MANY else LONG_KINDS[number % 2]
            kinds = [one] if len(long) > MANY else ["positive", one]
            testing.check_data(attr, {attr.text(): bound(attr)}, oracles.expected, kinds=kinds)


def test_all_kernels_have_mistakes() -> None:
    ours = {
        row.kernel_type.name.lower()
        for row in registry.all_rows()
        if row.__module__.startswith("jitkernels.")
    }
    assert not ours - {*FAMILIES}


@pytest.mark.parametrize("kernel", FAMILIES)
def test_subject_is_right(kernel: str) -> None:
    check_all(registry.row(kernel), getattr(FAMILIES[kernel], kernel))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(kernel, name) for kernel, family in FAMILIES.items() for name in family.MISTAKES[kernel]],
)
def test_mutant_is_caught(kernel: str, name: str) -> None:
    planted = mutant(kernel, *FAMILIES[kernel].MISTAKES[kernel][name])
    with pytest.raises(AssertionError):
        check_all(registry.row(kernel), planted)
