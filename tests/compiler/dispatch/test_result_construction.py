"""Results that compiled calls construct: lists, dicts, named tuples, dataclasses, conditionals, appended lists."""

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from jitted import same

import jitkernels as jk
from jitkernels.compiler.capture.pytree.result_spec import ResultPlan


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Body:
    place: Any
    mass: float


@dataclass(frozen=True)
class Slotted:
    __slots__ = ("name", "of")
    name: str
    of: Any


def nested(x: Any, k: Any) -> Any:
    return {"sum": x + k, 3: [x * k, (x, "text", None)], "none": {}}


def records(x: Any, k: Any) -> Any:
    return Point(x * k, k), Body(x + 1, 2.5), Slotted("a", [k])


def digits(x: Any, k: Any) -> Any:
    n, found = int(k * 1.0), []  # of an int, sizes are computed by Python
    while n:
        found.append(n % 2)
        n //= 2
    return found[::-1]


def pairs(x: Any, k: Any) -> Any:
    found = []
    for i in range(len(x)):
        if x[i] > 0.5:
            found.append((i, x[i] * k, x[i] > 0.7))  # noqa: PERF401
    return found


def words(x: Any, k: Any) -> Any:
    return ["none" if one < 0.3 else one if one < 0.6 else None for one in x]


def doubled(x: Any, k: Any) -> Any:
    return [one * 2 for one in x], len(x), x.shape


def by_choice(x: Any, k: Any) -> Any:
    for i in range(len(x)):
        if x[i] > k:
            return {"at": i}
    return None


def early(x: Any, k: Any) -> Any:
    if k == 3:
        return None
    if k == 5:
        return "five"
    return x * k


FUNCTIONS: list[Callable[..., Any]] = [nested, records, digits, pairs, words, doubled, by_choice, early]


def alike(found: Any, wanted: Any) -> None:
    """The same types, and the same values, however nested."""
    assert type(found) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            alike(one, other)
    elif isinstance(wanted, dict):
        assert [*found] == [*wanted]
        for name in wanted:
            alike(found[name], wanted[name])
    elif isinstance(wanted, Body):
        alike([found.place, found.mass], [wanted.place, wanted.mass])
    elif isinstance(wanted, Slotted):
        alike([found.name, found.of], [wanted.name, wanted.of])
    elif isinstance(wanted, np.ndarray):
        same(found, wanted)
    else:
        assert found == wanted


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_built_without_python(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """They equal those that Python builds, and nothing is kept alive."""

    def refusing(*_: Any) -> Any:
        raise AssertionError("Python puts it together")

    monkeypatch.setattr(ResultPlan, "finisher", refusing)
    compiled = jk.jit(function)
    numbers = np.random.default_rng(0)
    given = [(numbers.random(n), k) for n, k in ((7, 0.9), (20, 13.0), (300, 2.0), (7, 3), (7, 5), (9, 1000))]
    for x, k in given:
        for one in (x, x.astype(np.float32)):
            for _ in range(3):
                alike(compiled(one, k), function(one, k))
    for x, k in given:
        compiled(x, k)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(500):
        for x, k in given:
            compiled(x, k)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


def test_failed_allocations_leak_nothing() -> None:
    """Each allocation of a call fails in turn."""
    testing = pytest.importorskip("_testcapi")
    x = np.random.default_rng(0).random(9)
    failed = 0
    for function in (nested, records, pairs, words):
        compiled = jk.jit(function)
        for _ in range(3):
            compiled(x, 2.0)
        gc.collect()
        gc.disable()
        before = sys.getallocatedblocks()
        for number in range(40):
            testing.set_nomemory(number, number + 1)
            try:
                compiled(x, 2.0)
            except MemoryError:
                failed += 1
            finally:
                testing.remove_mem_hooks()
        gc.enable()
        assert sys.getallocatedblocks() - before < 30
        alike(compiled(x, 2.0), function(x, 2.0))
    assert failed > 8


def test_numbers_that_are_keys_or_large() -> None:
    """Keys are numbers, and computed ints keep all their bits."""

    @jk.jit
    def made(x: Any, i: Any, j: Any) -> Any:
        return {i: x[::2], (j, "a"): [i * j, i + j, len(x)]}

    for i, j in ((2**62, 4), (3, 5), (2**62, 2**62)):
        for size in (3, 100_000):
            for _ in range(3):
                alike(made(np.ones(size), i, j), made.__wrapped__(np.ones(size), i, j))


def test_repeated_lists_and_arrays_are_one_object() -> None:
    """A list, and an array."""

    @jk.jit
    def twice(x: Any) -> Any:
        row = [x + 1]
        return [row, row]

    for _ in range(3):
        found = twice(np.ones(3))
        assert found[0] is found[1]
    y = jk.jit(lambda x: [one := x * 2, one])
    for _ in range(3):
        first, second = y(np.ones(500))
        assert first is second
