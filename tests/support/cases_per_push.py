"""Which cases of a parametrized test run per push: `CASES`, or what ``per_push`` says; ``-m full`` runs the others.

Products of rows, implementations, modes and sizes grow faster than what they find: most mistakes show with one value
of one parameter. The selected cases have each value of each parameter, equally often, as far as `count` allows, and
are the same in each run. Tests begin at different cases, so that tests of the same rows have different rows. Under
``-k`` nothing is left out, since who selects cases means them.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import pytest

CASES = 4
"""How many cases of a test run, unless it is marked ``per_push(count)`` or, for all of them, ``per_push``."""
GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, are evenly spread however many there are."""


def mark_others(items: Sequence[pytest.Item]) -> None:
    """Mark as `full` the cases that are not selected for a push."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("full") is None:
            groups[item.nodeid.partition("[")[0]].append(item)
    for name, group in groups.items():
        mark = group[0].get_closest_marker("per_push")
        count = CASES if mark is None else mark.args[0] if mark.args else len(group)
        if count >= len(group):
            continue
        chosen = set(selected([_values(item) for item in group], count, zlib.crc32(name.encode())))
        for number, item in enumerate(group):
            if number not in chosen:
                item.add_marker(pytest.mark.full)


def selected(cases: Sequence[Sequence[Hashable]], count: int, seed: int) -> list[int]:
    """The indices of at most `count` cases, chosen one by one.

    The next has the most values that none has yet, and then those of which the smallest shares were chosen.
    """
    rest = sorted(range(len(cases)), key=lambda number: (number + seed) * GOLDEN % 1)
    total = Counter(value for case in cases for value in enumerate(case))
    used: Counter[tuple[int, Hashable]] = Counter()
    found: list[int] = []

    def order(number: int) -> tuple[int, float]:
        shares = [used[value] / total[value] for value in enumerate(cases[number])]
        return -shares.count(0), sum(shares)

    while rest and len(found) < count:
        best = min(rest, key=order)
        rest.remove(best)
        used.update(enumerate(cases[best]))
        found.append(best)
    return found


def _values(item: pytest.Item) -> list[Hashable]:
    """The values of a case's parameters: equal ones of a type are the same, and those without a hash are themselves."""
    specification = getattr(item, "callspec", None)
    return [] if specification is None else [_key(value) for value in specification.params.values()]


def _key(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
