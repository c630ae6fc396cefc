"""Which cases of a test run per push: each value of each parameter, equally often, and the same cases in each run."""

import itertools
from collections import Counter
from typing import Any

import cases
import cases_per_push
import pytest

from jitkernels.attrs.schema.registry import all_schemas

SHAPES = ((1, 2), (3,), (4, 5, 6))
PRODUCT = list(itertools.product(range(7), "abc", SHAPES))


@pytest.mark.per_push
@pytest.mark.parametrize("seed", [0, 1, 2**31])
@pytest.mark.parametrize("count", [7, 21, 40])
def test_each_value_is_chosen_equally_often(count: int, seed: int) -> None:
    found = cases_per_push.selected(PRODUCT, count, seed)
    assert len(found) == len(set(found)) == count
    for position, values in enumerate((range(7), "abc", SHAPES)):
        uses = Counter(PRODUCT[number][position] for number in found)
        assert len(uses) == len(values)
        assert max(uses.values()) - min(uses.values()) <= 2


def test_few_cases_are_all_chosen() -> None:
    assert sorted(cases_per_push.selected([(1,), (2,)], 5, 3)) == [0, 1]
    assert cases_per_push.selected([], 5, 3) == []


def test_selections_of_one_parameter_are_spread_and_differ_between_tests() -> None:
    rows = [(number,) for number in range(98)]
    found = [sorted(cases_per_push.selected(rows, 24, seed)) for seed in range(8)]
    for numbers in found:
        assert max(b - a for a, b in itertools.pairwise([-1, *numbers, 98])) <= 8
    assert len({*itertools.chain(*found)}) > 90


def test_each_row_is_among_the_cases_of_every_implementation() -> None:
    """Where a test of all implementations runs as many cases as there are rows and names."""
    parameters = [case.values for case in cases.every_implementation()]
    rows, names = {*all_schemas()}, {name for _, name in parameters}
    found = cases_per_push.selected(parameters, len(rows) + len(names), 5)
    assert {parameters[number][0] for number in found} == rows
    assert {parameters[number][1] for number in found} == names


class Item:
    """A collected test, as far as `mark_others` looks at it."""

    def __init__(self, nodeid: str, marks: list[Any], **params: Any) -> None:
        self.nodeid = nodeid
        self.callspec = type("CallSpec", (), {"params": params})()
        self.marks = [*marks]

    def get_closest_marker(self, name: str) -> Any:
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, marker: Any) -> None:
        self.marks.append(marker.mark)


def test_others_are_marked_full() -> None:
    """Values without a hash are compared by identity."""
    lists: list[list[int]] = [[1], [2], [3]]
    marks = [pytest.mark.per_push(3).mark]
    items: Any = [Item(f"file.py::test[{k}]", marks, values=lists[k % 3], number=k) for k in range(9)]
    cases_per_push.mark_others(items)
    stay = [item for item in items if item.get_closest_marker("full") is None]
    assert len(stay) == 3
    assert {id(item.callspec.params["values"]) for item in stay} == {*map(id, lists)}


@pytest.mark.parametrize(
    ("marks", "count"), [([], cases_per_push.CASES), ([pytest.mark.per_push().mark], 40)], ids=["default", "all"]
)
def test_unmarked_tests_run_some_cases(marks: list[Any], count: int) -> None:
    items: Any = [Item(f"file.py::test[{k}]", marks, number=k) for k in range(40)]
    cases_per_push.mark_others(items)
    assert sum(item.get_closest_marker("full") is None for item in items) == count
