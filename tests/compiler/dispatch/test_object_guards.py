"""What compiled guards reach without Python: defaults, methods, names of other modules; rebinding is seen."""

import dataclasses
import enum
import functools
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

SHIFT = np.arange(4.0)
TIMES = 3


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


def doubled(x: Any) -> Any:
    return x * 2


def shifted(x: Any, by: Any = 1.0, *, times: Any = SHIFT) -> Any:
    return (x + by) * times + SHIFT


class Model:
    rate = 0.5
    axes = (0,)

    def __init__(self) -> None:
        self.weights, self.scale = np.arange(4.0) + 1, 3.0

    def scaled(self, x: Any) -> Any:
        return x * self.weights * self.rate + self.scale

    def forward(self, x: Any) -> Any:
        return self.scaled(x).sum(axis=self.axes) + x


@dataclasses.dataclass(slots=True)
class Pair:
    weights: Any
    scale: float


MODEL = Model()
OTHER: Any = types.ModuleType("jit_other")
INNER: Any = types.ModuleType("jit_other.inner")
OTHER.inner = INNER
exec(
    "import numpy as np\nK = 2.0\nW = np.ones(4)\ndef scaled(x, by=2.0):\n    return np.exp(x) * K * by + W",
    vars(OTHER),
)
exec("K = 5.0\nclass Settings:\n    rate = 0.25", vars(INNER))
EULER = types.SimpleNamespace(value=1.0)


@pytest.fixture(autouse=True)
def _default_python_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the time below which the plain function serves calls to its default, and install module `jit_other`."""
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 40e-6)
    monkeypatch.setitem(sys.modules, "jit_other", OTHER)


def some(count: int = 4) -> Any:
    return np.arange(count, dtype=float)


def by_tuple(x: Any, axes: Any = (0,), weights: Any = (1.0, SHIFT)) -> Any:
    return x.sum(axis=axes) * weights[0] + weights[1]


def by_containers(x: Any, parts: Any = [1.0, SHIFT], named: Any = {"a": SHIFT}) -> Any:  # noqa: B006  # what is tested
    return x * parts[1] + named["a"] * parts[0]


def own_out(x: Any, out: Any = None) -> Any:
    return np.multiply(x, 2, out=out)


def variable(x: Any, *more: Any, out: Any = None, **named: Any) -> Any:
    for one in more:
        x = x * one
    return x + named.get("by", 0)


Made = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]


def X() -> tuple[tuple[Any, ...], dict[str, Any]]:  # noqa: N802  # as in the function
    return (some(),), {}


PARTIAL, PAIR, SINGLE = functools.partial(shifted, by=2.0), Pair(SHIFT, 2.0), np.dtype("f4")
CALLS: dict[str, tuple[Callable[..., Any], Made]] = {
    "a function": (lambda x, g=doubled: g(x) + 1, X),
    "a function of names": (lambda x, g=shifted: g(x) + 1, X),
    "a lambda": (lambda x, g=lambda v: v * v: g(x) + 1, X),
    "of NumPy": (lambda x, g=np.tanh, h=np.sum, k=np.linalg.norm: g(x) + h(x) + k(x), X),
    "of Python": (lambda x, g=abs, h=math.sqrt, n=len: g(x) + h(2.0) + n(x), X),
    "a partial function": (lambda x, g=PARTIAL: g(x), X),
    "a method": (lambda x, g=MODEL.scaled: g(x), X),
    "an object": (lambda x, m=MODEL: m.forward(x), X),
    "an object with slots": (lambda x, p=PAIR: x * p.weights + p.scale, X),
    "a dtype": (lambda x, dtype=SINGLE, kind=np.float32: x.astype(dtype) + kind(1), X),
    "a slice": (lambda x, part=slice(1, None, 2): x[part] * 2, X),
    "a range": (lambda x, steps=range(3): sum(x + i for i in steps), X),
    "a frozenset": (lambda x, of=frozenset({1, 2}): x + (1 in of), X),
    "an enum": (lambda x, kind=Kind.ONE: x + (1 if kind is Kind.ONE else 2), X),
    "a tuple": (by_tuple, X),
    "containers": (by_containers, X),
    "by name": (lambda x, *, g=doubled: g(x) + 1, X),
    "a slice given": (lambda x, part: x[part] * 2, lambda: ((some(), slice(1, 3)), {})),
    "a method given": (lambda x, g: g(x), lambda: ((some(), MODEL.scaled), {})),
    "an object given": (lambda x, m: m.forward(x), lambda: ((some(), MODEL), {})),
    "a partial function given": (lambda x, g: g(x), lambda: ((some(), functools.partial(shifted, by=some())), {})),
    "a global object": (lambda x: MODEL.forward(x) + Model.rate, X),
    "a function with defaults": (lambda x: shifted(x) + shifted(x, 2.0), X),
    "names of a module": (lambda x: x * OTHER.K + OTHER.W, X),
    "a function of a module": (lambda x: OTHER.scaled(x), X),
    "a module in a module": (lambda x: x * OTHER.inner.K + OTHER.inner.Settings.rate, X),
    "a bound method": (MODEL.scaled, X),
    "a partial function itself": (functools.partial(shifted, by=some() + 1), X),
    "out of its own": (own_out, lambda: ((some(),), {"out": np.zeros(4)})),
    "out of its own, by position": (own_out, lambda: ((some(), np.zeros(4)), {})),
    "out of its own, not given": (own_out, X),
    "any arguments": (variable, lambda: ((some(), some(), 2.0), {})),
    "any keywords": (variable, lambda: ((some(),), {"by": some()})),
    "any arguments and out": (variable, lambda: ((some(), some()), {"out": np.zeros(4)})),
}


def bits(value: Any) -> Any:
    return type(value), value.dtype, value.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_calls_need_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, make = CALLS[name]
    compiled: Any = jk.jit(function)
    for turn in range(3):
        if turn == 2:
            monkeypatch.setattr(compiled, "look_up", None)
        (args, kwargs), (own, named) = make(), make()
        found, expected = compiled(*args, **kwargs), function(*own, **named)
        assert bits(found) == bits(expected)
        assert [one is found for one in kwargs.values()] == [one is expected for one in named.values()]
    assert any(any(one.links.values()) for kept in compiled._specializations.values() for one in kept)


def test_calls_keep_no_references() -> None:
    objects = [SHIFT, MODEL, MODEL.weights, shifted, doubled, OTHER.W, OTHER.scaled, np.exp, None, "scaled", Model.rate]
    for function, make in CALLS.values():
        compiled = jk.jit(function)
        args, kwargs = make()
        for _ in range(3):
            compiled(*args, **kwargs)
        before = [sys.getrefcount(one) for one in (*objects, *args)]
        for _ in range(60):
            compiled(*args, **kwargs)
        after = [sys.getrefcount(one) for one in (*objects, *args)]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 30


def ten(x: Any, *_: Any, **__: Any) -> Any:
    return x * 10


CHANGES: dict[str, tuple[Callable[..., Any], Any, str, Any]] = {
    "a function of NumPy": (lambda x: np.exp(x) + 1, np, "exp", np.sin),
    "one that becomes Python's": (lambda x: np.exp(x) + 1, np, "exp", ten),
    "one of a part of NumPy": (lambda x: np.linalg.norm(x) + 1, np.linalg, "norm", np.sum),
    "one that a function calls": (lambda x: OTHER.scaled(x), np, "exp", np.sin),
    "a function of Python": (lambda x: x * math.sqrt(len(x)), math, "sqrt", math.exp),
    "a function of a module": (lambda x: OTHER.scaled(x), OTHER, "scaled", ten),
    "a number of a module": (lambda x: x * OTHER.K, OTHER, "K", 7.0),
    "an array of a module": (lambda x: x * OTHER.W, OTHER, "W", some() + 3),
    "what a function of a module reads": (lambda x: OTHER.scaled(x), OTHER, "K", 11.0),
    "a module in a module": (lambda x: x * OTHER.inner.K, OTHER, "inner", types.SimpleNamespace(K=9.0)),
    "a name of a class": (lambda x: x * OTHER.inner.Settings.rate, INNER.Settings, "rate", 8.0),
    "a method": (lambda x: MODEL.forward(x), Model, "scaled", lambda self, x: x * self.scale),
    "a value of a class": (lambda x: MODEL.forward(x), Model, "rate", 2.0),
    "a method of one object": (lambda x: MODEL.scaled(x), MODEL, "scaled", ten),
    "a value of one object": (lambda x: MODEL.forward(x), MODEL, "rate", 4.0),
    "defaults of a function": (lambda x: shifted(x), shifted, "__defaults__", (5.0,)),
    "its code": (lambda x: shifted(x), shifted, "__code__", (lambda x, by=1.0, *, times=1.0: x - by).__code__),
    "the code of a method": (lambda x: MODEL.forward(x), Model.scaled, "__code__", (lambda self, x: x).__code__),
    "its keywords": (lambda x: shifted(x), shifted, "__kwdefaults__", {"times": some() * 5}),
    "attributes of a default": (lambda x, m=MODEL: m.forward(x), MODEL, "weights", some() * 9),
    "a global of a default": (lambda x, g=shifted: g(x), sys.modules[__name__], "SHIFT", some() * 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_rebound_names_are_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, owner, attribute, value = CHANGES[name]
    compiled, x = (jk.jit(function), some() / 4)
    before = compiled(x)
    for change in (False, True, False):
        with monkeypatch.context() as patch:
            if change:
                patch.setattr(owner, attribute, value)
            for _ in range(3):
                found, expected = compiled(x), function(x)
                assert type(found) is type(expected)
                np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert change != np.array_equal(found, before)


def test_replaced_code_objects_are_guarded() -> None:
    """Reloading a module replaces the code of functions that others have imported."""

    def function(x: Any) -> Any:
        return x * 2

    compiled, x = jk.jit(function), some()
    others: list[Any] = [lambda x: x * 3, lambda x: x.sum(), lambda x, y=4.0: x * y]
    for number, other in enumerate(others):
        for _ in range(3):
            np.testing.assert_allclose(compiled(x), function(x))
        function.__code__ = other.__code__
        function.__defaults__ = other.__defaults__
        for _ in range(3):
            np.testing.assert_allclose(compiled(x), other(x), err_msg=str(number))


def test_static_arguments_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, how: Any) -> Any:
        return x.sum(axis=tuple(how["axes"])) * how["factor"] + len(how["axes"])

    def chosen(factor: float) -> Any:
        return {"axes": [0, *range(1, 2)], "factor": factor * 1.5}

    compiled: Any = jk.jit(function, static_argnames="how")
    x, changed = np.ones((3, 4)), chosen(2.0)
    for factor in (1.0, 0.0, -0.0, math.nan, 2.0):
        for _ in range(2):
            assert bits(compiled(x, chosen(factor)))[:2] == bits(function(x, chosen(factor)))[:2]
    compiled(x, changed)
    changed["axes"].pop()
    np.testing.assert_array_equal(compiled(x, changed), function(x, changed))
    monkeypatch.setattr(compiled, "look_up", None)
    assert bits(compiled(x, chosen(2.0))) == bits(function(x, chosen(2.0)))


def test_arguments_of_inner_functions_keep_their_order() -> None:
    """Captured variables, defaults and globals come in one order, in Python and in compiled code."""
    factor, shift = 2.0, np.full(1000, 5.0)

    def inner(x: Any, power: Any = 3.0, *, scale: Any = 7.0) -> Any:
        return np.exp(x) * factor + power * shift - scale * LIMIT

    def outer(x: Any) -> Any:
        return inner(x)

    x = np.linspace(0.0, 1.0, 1000)
    for compiled in (jk.jit(outer), jk.jit(outer, opt_level=0)):
        for _ in range(3):
            assert np.allclose(compiled(x), outer(x), rtol=1e-14)


LIMIT = 11.0
