"""Globals and closures of compiled functions: changes are seen at the next call."""

import gc
import math
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from jitted import array, reasons, same

import jitkernels as jk

WEIGHTS = np.ones(3)
SCALE = 2.0
TABLE: dict[str, Any] = {"a": np.ones(3)}
GENERATOR = np.random.default_rng(0)
CALLS: list[int] = []


@pytest.fixture(autouse=True)
def _names() -> Iterator[None]:
    """The globals as they stand above, before each test."""
    global WEIGHTS, SCALE
    WEIGHTS, SCALE = np.ones(3), 2.0
    TABLE["a"] = np.ones(3)
    CALLS.clear()
    yield
    sys.modules.pop("jit_settings", None)


def both(compiled: Any, *arguments: Any) -> None:
    """The same as without compiling, twice."""
    for _ in range(2):
        same(compiled(*arguments), compiled.__wrapped__(*arguments))


def test_globals() -> None:
    global WEIGHTS, SCALE
    compiled, x = jk.jit(lambda v: v * WEIGHTS * SCALE), array(3)
    both(compiled, x)
    WEIGHTS[0] = 5
    both(compiled, x)
    WEIGHTS = np.full(3, 7.0)
    both(compiled, x)
    SCALE = 3.0
    both(compiled, x)
    WEIGHTS = np.ones((2, 3), "f4")
    both(compiled, x)
    assert not reasons(compiled)


def helper(v: Any) -> Any:
    return np.zeros(v.shape) + v * WEIGHTS


def test_functions_that_are_called() -> None:
    global WEIGHTS
    compiled, x = jk.jit(lambda v: helper(v) + 1), array(3)
    both(compiled, x)
    WEIGHTS = WEIGHTS * 3
    both(compiled, x)
    assert not reasons(compiled)


def test_containers_in_globals() -> None:
    compiled, x = jk.jit(lambda v: TABLE["a"] * v), array(3)
    both(compiled, x)
    TABLE["a"] = TABLE["a"] * 2
    both(compiled, x)
    TABLE["a"][0] = -1
    both(compiled, x)
    assert not reasons(compiled)


def test_closures() -> None:
    def outer() -> Any:
        factor, kept = 2.0, np.ones(3)

        def inner(v: Any) -> Any:
            return v * factor + kept

        def change(value: float) -> None:
            nonlocal factor, kept
            factor, kept = value, kept + value

        return inner, change

    inner, change = outer()
    compiled, x = jk.jit(inner), array(3)
    both(compiled, x)
    change(5.0)
    both(compiled, x)
    assert not reasons(compiled)


class Model:
    order = 2.0

    def __init__(self) -> None:
        self.weights, self.count = np.ones(3), 2

    @jk.jit
    def forward(self, x: Any) -> Any:
        return self.hidden(x) * self.weights * self.count + self.order

    def hidden(self, x: Any) -> Any:
        return np.zeros(3) + x * SCALE

    @property
    def doubled(self) -> Any:
        return self.weights * SCALE

    def __call__(self, x: Any) -> Any:
        return self.weights * x

    @jk.jit
    def counting(self, x: Any) -> Any:
        self.count = self.count + 1
        return x * self.count


def test_changed_attributes_of_self() -> None:
    global SCALE
    model, other, x = Model(), Model(), array(3)
    other.weights = array(3)

    def agrees() -> None:
        for one in (model, other):
            for _ in range(2):
                same(one.forward(x), Model.forward.__wrapped__(one, x))

    agrees()
    model.count = 5
    agrees()
    model.weights = model.weights * 2
    agrees()
    other.weights[1] = 9
    agrees()
    SCALE = 4.0
    agrees()
    Model.order = 3.0
    agrees()
    Model.order = 2.0
    assert not reasons(Model.forward)


def test_methods_that_change_their_object() -> None:
    model, x = Model(), array(3)
    for expected in (3, 4, 5):
        same(model.counting(x), x * expected)
        assert model.count == expected


def test_properties_and_calls_without_guards() -> None:
    global SCALE
    model, x = Model(), array(3)
    compiled = jk.jit(lambda m, v: m.doubled * v)
    both(compiled, model, x)
    SCALE = 9.0
    both(compiled, model, x)
    compiled = jk.jit(lambda m, v: m(v) + 1)
    both(compiled, model, x)
    model.weights = model.weights + 1
    both(compiled, model, x)
    assert not reasons(compiled)


def test_names_of_modules() -> None:
    module: Any = types.ModuleType("jit_settings")
    exec("FACTOR = 2.0\nHIDDEN = 3.0\ndef scaled(v):\n    return v * HIDDEN", module.__dict__)
    for function in (lambda v: v * module.FACTOR, lambda v: module.scaled(v)):
        compiled, x = jk.jit(function), array(3)
        both(compiled, x)
        module.FACTOR, module.HIDDEN = module.FACTOR + 1, module.HIDDEN + 1
        both(compiled, x)
    compiled = jk.jit(lambda v: v * math.pi + math.sqrt(2))
    both(compiled, array(3))
    assert not reasons(compiled)


def test_rebound_names_of_modules() -> None:
    names: dict[str, Any] = {"np": np, "math": math, "calls": 0}
    exec("def scaled(v):\n    return np.exp(v) * math.pi", names)
    other, sines = types.ModuleType("other"), types.ModuleType("sines")
    other.pi, sines.exp = 2.0, np.sin  # type: ignore[attr-defined]
    compiled, x = jk.jit(names["scaled"]), array(3)
    for change in ({}, {"calls": 1}, {"math": other}, {"np": sines}, {"calls": 2}, {"np": np, "math": math}):
        names |= change
        both(compiled, x)
    assert not reasons(compiled)


def test_functions_with_side_effects_run_in_each_call() -> None:
    def counted(v: Any) -> Any:
        CALLS.append(1)
        return v + 1

    def drawn(v: Any) -> Any:
        return v + GENERATOR.random(3)

    def drawn_by_numpy(v: Any) -> Any:
        return v + np.random.rand(3)  # noqa: NPY002  # what is tested

    def assigned(v: Any) -> Any:
        global SCALE
        SCALE = SCALE + 1
        return v * SCALE

    x = array(3)
    compiled = jk.jit(counted)
    before = len(CALLS)
    same(compiled(x), x + 1)
    same(compiled(x), x + 1)
    assert len(CALLS) == before + 2
    for function in (drawn, drawn_by_numpy):
        compiled = jk.jit(function)
        first, second = compiled(x), compiled(x)
        assert not np.array_equal(first, second)
    compiled = jk.jit(assigned)
    same(compiled(x), x * 3)
    same(compiled(x), x * 4)


def test_printing_functions_print(capsys: pytest.CaptureFixture[str]) -> None:
    @jk.jit
    def function(v: Any) -> Any:
        print("called")  # noqa: T201  # what is tested
        return v

    function(array(3))
    function(array(3))
    assert capsys.readouterr().out == "called\n" * 2


def test_new_functions_of_equal_code_share_a_specialization() -> None:
    compiled, x = jk.jit(lambda way, v: way(v)), array(3)
    for factor in (1.0, 2.0, 3.0):
        same(compiled(lambda v, factor=factor: v * factor, x), x * factor)
    assert sum(map(len, compiled._specializations.values())) == 1


def test_compiled_functions_call_each_other() -> None:
    inner = jk.jit(lambda v: v * 2)
    compiled = jk.jit(lambda v: inner(v) + inner(inner(v)))
    both(compiled, array(3))
    assert not reasons(compiled)


@jk.jit
def factorial(x: Any, n: int) -> Any:
    return x if n == 0 else n * factorial(x, n - 1)


def test_recursion() -> None:
    same(factorial(array(3), 4), array(3) * 24)


def test_defaults() -> None:
    kept = np.ones(3)

    def function(v: Any, w: Any = kept) -> Any:
        return v * w

    compiled = jk.jit(function)
    both(compiled, array(3))
    kept[0] = 4
    both(compiled, array(3))


def test_garbage_is_not_collected_in_a_trace() -> None:
    """Its callbacks may read what a traced function may not."""

    def collected(phase: str, info: dict[str, int]) -> None:
        CALLS.append(len(WEIGHTS))

    def function(x: Any) -> Any:
        for _ in range(20):
            x = [x + 1, x][0]
        return x

    before = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        compiled = jk.jit(function)
        same(compiled(array(50_000)), function(array(50_000)))
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
    assert CALLS
    assert not reasons(compiled)


def test_globals_may_shadow_builtins() -> None:
    names: dict[str, Any] = {"np": np}
    for text in ("return abs(x) + max(3, 4)", "return np.abs(x) * max(3, 4)"):
        exec(f"def function(x):\n    {text}", names)
        function, x = names["function"], np.arange(-500.0, 500.0)
        compiled = jk.jit(function)
        for changed in ({}, {"max": min}, {"abs": np.negative}, {"max": pow, "abs": abs}, {}):
            for name in ("max", "abs"):
                names.pop(name, None)
            names.update(changed)
            for _ in range(3):
                np.testing.assert_array_equal(compiled(x), function(x))


class Scaled:
    """A class whose attribute changes."""

    scale = 2.0

    @classmethod
    def times(cls, x: Any) -> Any:
        return x * cls.scale

    @classmethod
    @jk.jit
    def compiled(cls, x: Any) -> Any:
        return x * cls.scale


def through_an_alias(x: Any) -> Any:
    one = Scaled
    return x * one.scale


@pytest.mark.parametrize(
    "function", [lambda x: Scaled.times(x) + 1, lambda x: Scaled.compiled(x) + 1, through_an_alias]
)
def test_class_attributes_read_through_variables(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call reads their current values."""
    compiled, x = jk.jit(function), np.ones(20_000)
    for scale in (2.0, 5.0):
        monkeypatch.setattr(Scaled, "scale", scale)
        for _ in range(3):
            assert compiled(x)[0] == function(x)[0]
