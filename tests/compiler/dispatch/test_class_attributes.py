"""Class attributes of objects may change between calls, however they are read."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import same

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

X = np.arange(5.0)


def _gain_of(one: Any) -> Any:
    return one.gain


def _class() -> Any:
    """A class whose methods read what it has, each in its way."""

    class Made:
        gain = 2.0

        def __init__(self, other: Any = None) -> None:
            self.other = other

        def method(self) -> Any:
            return self.gain

        compiled = jk.jit(method)
        made_of = functools.partialmethod(method)

        @property
        def read(self) -> Any:
            return self.gain

        def __getattr__(self, name: str) -> Any:
            if name == "dynamic":
                return self.gain
            raise AttributeError(name)

        def __call__(self) -> Any:
            return self.gain

        def __getitem__(self, key: Any) -> Any:
            return self.gain

        def __mul__(self, other: Any) -> Any:
            return self.gain * other

        def __float__(self) -> Any:
            return float(self.gain)

        def __bool__(self) -> bool:
            return bool(self.gain > 3)

        def of_other(self) -> Any:
            return self.other.gain

        def of_given(self, other: Any) -> Any:
            return other.gain

    return Made


WAYS: list[Callable[[Any, Any], Any]] = [
    lambda one, x: x * one.method(),
    lambda one, x: x * one.compiled(),
    lambda one, x: x * one.made_of(),
    lambda one, x: x * one.read,
    lambda one, x: x * one.dynamic,
    lambda one, x: x * one(),
    lambda one, x: x * one[0],
    lambda one, x: one * x,
    lambda one, x: x * float(one),
    lambda one, x: x if one else -x,
    lambda one, x: x * getattr(one, "gain"),  # noqa: B009  # by a string
    lambda one, x: x * _gain_of(one),
    lambda one, x: x * one.of_other(),
    lambda one, x: x * one.other.of_given(one),
    lambda one, x: x * one.of_given(one.other),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_changed_class_attributes(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):
        monkeypatch.setattr(specialization, name, 0.0)
    function, made = WAYS[number], _class()
    compiled, one = jk.jit(function), made(made())
    for gain in (2.0, 5.0, 7, np.float32(1.5)):
        made.gain = gain
        for _ in range(2):
            same(compiled(one, X), function(one, X))


def test_two_arguments_may_be_the_same_array() -> None:
    @jk.jit
    def difference(a: Any, b: Any) -> Any:
        return a * 2 if a is b else a - b

    x = np.arange(100_000.0)
    for y in (x + 1, x, x[:]):
        assert np.array_equal(difference(x, y), x * 2 if y is x else x - y)
