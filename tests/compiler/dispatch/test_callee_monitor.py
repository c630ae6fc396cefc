"""User functions that a trace calls: later calls see changes of what these read."""

import functools
import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.lowering import lower_graph

SCALE = [2.0]


def scale() -> float:
    """What a later call finds to be something else: its caller is not rewritten, and nothing guards the list."""
    return SCALE[0]


class Scaled:
    """An object with code of its own behind operators, elements, numbers, truth and calls."""

    __array_ufunc__ = None

    def __add__(self, other: Any) -> Any:
        return other + scale()

    __radd__ = __add__

    def __index__(self) -> int:
        return int(scale())

    def __getitem__(self, key: Any) -> Any:
        return key * scale()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held = value * scale()

    def __bool__(self) -> bool:
        return scale() > 2

    def __lt__(self, other: Any) -> Any:
        return other < scale()

    def __call__(self, value: Any) -> Any:
        return value * scale()

    def __len__(self) -> int:
        return int(scale())

    def __iter__(self) -> Any:
        return iter([scale(), 1.0])

    @property
    def own(self) -> float:
        return scale()

    def __enter__(self) -> float:
        return scale()

    def __exit__(self, *_: object) -> None:
        pass


class Given:
    """What NumPy takes for an array, by code of its own."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.full(3, scale())


def in_a_loop(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(x: Any, one: Any) -> Any:
        total = x * 0
        for i in range(len(x)):
            total = total + of(x, one) * i
        return total

    return function


def in_a_branch(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(x: Any, one: Any) -> Any:
        found = x * 1
        if x[0] > 0:
            found = found + of(x, one)
        return found

    return function


def in_a_while_loop(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(x: Any, one: Any) -> Any:
        i = 0
        while x[i] + np.sum(of(x, one)) * 0 < 11:
            i += 1
        total = x * i
        while total[0] < 50:
            total = total + abs(of(x, one)) + 1
        return total

    return function


def in_functions_of_numpy(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, one: np.where(x > 1, of(x, one), np.add(x, of(x, one)))


def in_loops_as_functions(of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, one: jk.fori_loop(0, x.shape[0], lambda i, value: value + of(x, one) * i, x * 0)


READ: list[Callable[[Any, Any], Any]] = [
    lambda x, one: x * scale(),
    lambda x, one: x + one,
    lambda x, one: one + x,
    lambda x, one: x + x[one],
    lambda x, one: x[one:].sum() + x,
    lambda x, one: np.roll(x, one),
    lambda x, one: one[x],
    lambda x, one: x * (one < 2.5),
    lambda x, one: x if one else -x,
    lambda x, one: one(x),
    lambda x, one: x * len(one),
    lambda x, one: x * sum(one),
    lambda x, one: x + one.own,
    lambda x, one: x + np.asarray(Given()),
    lambda x, one: np.add(x, Given()),
    lambda x, one: x + functools.reduce(lambda a, b: a + b * scale(), [1.0, 2.0]),
    lambda x, one: x + max([1.0, 2.0], key=lambda a: a * (scale() - 3)),
    lambda x, one: np.apply_along_axis(lambda row: row * scale(), 0, x),
    lambda x, one: np.stack([x * scale(), x]).sum(axis=0),
    lambda x, one: x + next(map(one, [1.0])),
]  # fmt: skip


@pytest.mark.parametrize(
    "around", [in_a_loop, in_a_branch, in_a_while_loop, in_functions_of_numpy, in_loops_as_functions]
)
@pytest.mark.parametrize("number", range(len(READ)))
def test_globals_of_callees_are_guarded(around: Any, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function = around(READ[number])
    compiled, one = jk.jit(function), Scaled()
    x = np.arange(1.0, 13.0)
    if number in (13, 14):
        x = x[[0, 1, 11]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (2.0, 3.0, 1.0, 2.0):
            monkeypatch.setitem(globals(), "SCALE", [value])
            np.testing.assert_allclose(compiled(x, one), function(x, one), rtol=1e-12)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_collection_is_disabled_during_compilation(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is restored afterwards, also where the compiler fails."""
    seen = []

    def compiled(*_: Any) -> None:
        seen.append(gc.isenabled())
        raise AssertionError

    monkeypatch.setattr(lower_graph, "compile_graph", compiled)
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        jk.jit(lambda x: x + 1)(np.ones(3))
        after = gc.isenabled()
    finally:
        (gc.enable if was else gc.disable)()
    assert after == collects
    assert seen == [False]
