"""Mutation tests: `testing` finds each mistake that is planted in a kernel.

A mutant is a right implementation of `mistakes` with one piece of its text replaced. What is
planted has happened, or would be the next to happen: a mutant that lives shows what the checks do not look at.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import mistakes
import numpy as np
import oracles
import pytest

from jitkernels.attrs.schema import registry
from jitkernels.tools import testing

SIZES = (0, 1, 2, 7, 17)
MOST_OPERATIONS = 50_000
LONG, MAX_LONG, MANY = (1_537, 20_021), 20_000_000, 24
MAX_STEPS = 1_537
"""Of what goes step by step, and loses no more in many of them."""
LONG_KINDS = ("constant", "columns", "positive")
"""Each long attr sees one of them, or one and positive numbers where there are no more than so many of those."""
KINDS, ALONE = 3, 10
"""Each attr sees every third kind of data, the next attr the next ones; every tenth special values one by one."""
RIGHT = "without a mistake"
FAMILIES = mistakes.families()


def mutant(kernel: str, old: str, new: str) -> Callable[..., None]:
    """A right kernel with one piece of its text replaced."""
    text = inspect.getsource(getattr(FAMILIES[kernel], kernel))
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {kernel}"
    names: dict[str, Any] = {**vars(mistakes), **vars(FAMILIES[kernel])}
    exec(compile(text.replace(old, new), f"<{kernel}>", "exec"), names)  # the mutation
    function: Callable[..., None] = names[kernel]
    return function


class Subjects:
    """Functions of one row by name, each of which is checked until it fails, and what was said of those that did.

    They go through each check one after the other, so that its truth is computed once for all of them. Once the right
    one is alone there is nothing more to find: what the other checks say of right functions the tests of values ask of
    every implementation.
    """

    def __init__(self, row: Any, functions: Mapping[str, Callable[..., None]]) -> None:
        self.row = row
        self.right = dict(functions)
        self.wrong: dict[str, str] = {}

    def check_all(self) -> None:
        """What the suite asks of an implementation, at few sizes, which take turns, until all mistakes are found."""
        attrs = [a for a in testing.attrs_around(self.row, SIZES) if a.operations() <= MOST_OPERATIONS]
        long = [attr for attr in testing.long_attrs(self.row, LONG) if attr.operations() <= MAX_LONG]
        long = [attr for attr in long if attr.fields().get("seq_len", 0) <= MAX_STEPS]
        with np.errstate(all="ignore"):
            for number, attr in enumerate(sorted(attrs, key=lambda attr: attr.operations())):
                self.check(attr, number, alone=(len(attrs) - 1 - number) % ALONE == 0)
                if self.is_done:
                    return
            for number, attr in enumerate(long):
                one = LONG_KINDS[number % 3] if len(long) > MANY else LONG_KINDS[number % 2]
                self.check_data(attr, [one] if len(long) > MANY else ["positive", one])

    @property
    def is_done(self) -> bool:
        """Whether all that have mistakes are found."""
        return [*self.right] == [RIGHT]

    def check(self, attr: Any, number: int, *, alone: bool) -> None:
        self.each(attr, testing.check_values, oracles.expected)
        self.check_data(attr, list(testing.kinds(attr))[number % KINDS :: KINDS])
        self.each(attr, testing.check_bad_indices)
        if number % KINDS < 2:
            self.each(attr, testing.check_aliased_arguments, oracles.expected)
        if alone or number % KINDS == 0:
            self.each(attr, testing.check_special_values, oracles.expected, alone=alone)

    def check_data(self, attr: Any, kinds: Sequence[str]) -> None:
        def check(attr: Any, function: Any, kind: str, *, label: str) -> None:
            testing.check_data(attr, {label: function}, oracles.expected, kinds=[kind])

        for kind in kinds:
            self.each(attr, check, kind)

    def each(self, attr: Any, check: Callable[..., object], *more: Any, **options: Any) -> None:
        """One check of all that are right so far."""
        if self.is_done:
            return
        for name, function in list(self.right.items()):
            try:
                check(attr, _bound(attr, function), *more, label=attr.text(), **options)
            except AssertionError as error:
                self.wrong[name] = str(error)
                del self.right[name]


def _bound(attr: Any, function: Callable[..., None]) -> Callable[..., None]:
    return lambda *arrays: attr.signature().through_numbers(partial(function, attr), arrays)


def test_all_kernels_have_mistakes() -> None:
    ours = {row.kernel_type.name.lower() for row in registry.all_schemas() if row.__module__.startswith("jitkernels.")}
    assert not ours - {*FAMILIES}


@pytest.mark.parametrize("kernel", FAMILIES)
def test_the_original_passes_and_every_mutant_is_caught(kernel: str) -> None:
    family = FAMILIES[kernel]
    planted = {name: mutant(kernel, *pieces) for name, pieces in family.MISTAKES[kernel].items()}
    subjects = Subjects(registry.op_schema(kernel), {RIGHT: getattr(family, kernel), **planted})
    subjects.check_all()
    assert RIGHT in subjects.right, subjects.wrong[RIGHT]
    assert [*subjects.right] == [RIGHT]
    assert subjects.wrong.keys() == planted.keys()
