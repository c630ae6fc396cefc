"""Calls through the compiled entry: right whatever changes between them, and without leaks."""

import dataclasses
import gc
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

FACTOR = np.arange(4.0)
SHIFT = 2.0
ROUNDS = 100


def shifted(x: Any) -> Any:
    return x * FACTOR + SHIFT


def by_helper(x: Any) -> Any:
    return shifted(x) - 1


@dataclasses.dataclass
class Pair:
    weights: Any
    scale: float


class Two(NamedTuple):
    first: Any
    second: Any


class Model:
    def __init__(self) -> None:
        self.weights, self.scale = np.arange(4.0) + 1, 3.0

    @jk.jit
    def step(self, x: Any) -> Any:
        return x * self.weights + self.scale

    def plain(self, x: Any) -> Any:
        return x * self.weights + self.scale


def branched(x: Any, k: Any) -> Any:
    return x + k if k > 2 else x * k


def defaulted(x: Any, y: Any = FACTOR, *, scale: float = 3.0) -> Any:
    return x * y + scale


def chosen(x: Any, how: str, axis: Any) -> Any:
    return x.sum(axis=axis) if how == "sum" else x.max(axis=axis)


def some(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


Arguments = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
CALLS: dict[str, tuple[Callable[..., Any], Arguments]] = {
    "arrays": (lambda x, y: x + y, lambda: ((some(4), some(4)), {})),
    "by name": (lambda x, y: x - y, lambda: ((some(4),), {"y": some(4) * 2})),
    "all by name": (lambda x, y: x - y, lambda: ((), {"y": some(4) * 2, "x": some(4)})),
    "defaults": (defaulted, lambda: ((some(4),), {})),
    "a default by name": (defaulted, lambda: ((some(4),), {"scale": 5.0})),
    "an int": (lambda x, k: x * k, lambda: ((some(4), 70_000), {})),
    "an int that decides": (branched, lambda: ((some(4), 3), {})),
    "a float that decides": (branched, lambda: ((some(4), 1.5), {})),
    "an int and extents": (lambda x, k: x[k:] + x[:-k], lambda: ((some(9), 3), {})),
    "a NumPy number": (lambda x, k: x * k, lambda: ((some(4), np.float32(3)), {})),
    "a bool": (lambda x, k: x + 1 if k else x * 3, lambda: ((some(4), True), {})),
    "constants": (chosen, lambda: ((some(4, 3), "sum", None), {})),
    "globals": (shifted, lambda: ((some(4),), {})),
    "a function that is called": (by_helper, lambda: ((some(4),), {})),
    "a tuple": (lambda t: t[0] * t[1], lambda: (((some(4), some(4)),), {})),
    "a list": (lambda t: t[0] * t[1], lambda: (([some(4), 2.0],), {})),
    "a dict": (lambda t: t["a"] * t["b"], lambda: (({"a": some(4), "b": some(4)},), {})),
    "a named tuple": (lambda t: t.first * t.second, lambda: ((Two(some(4), some(4)),), {})),
    "nested": (lambda t: t[0]["a"] * t[1][1], lambda: ((({"a": some(4)}, [1, some(4)]),), {})),
    "an object": (lambda p: p.weights * p.scale, lambda: ((Pair(some(4), 3.0),), {})),
    "several results": (lambda x: (x + 1, x.sum()), lambda: ((some(4),), {})),
    "no result": (lambda x: None if len(x) else x, lambda: ((some(4),), {})),
}


@pytest.fixture(autouse=True)
def _default_python_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the time below which the plain function serves calls to its default."""
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 40e-6)


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return [bits(one) for one in value]
    return type(value), np.asarray(value).dtype, repr(np.asarray(value).tolist())


@pytest.mark.parametrize("name", CALLS)
def test_calls_need_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, make = CALLS[name]
    compiled: Any = jk.jit(function)
    for _ in range(2):
        args, kwargs = make()
        assert bits(compiled(*args, **kwargs)) == bits(function(*args, **kwargs))
    monkeypatch.setattr(compiled, "look_up", None)
    args, kwargs = make()
    assert bits(compiled(*args, **kwargs)) == bits(function(*args, **kwargs))


@pytest.mark.parametrize("name", CALLS)
def test_calls_keep_no_references(name: str) -> None:
    function, make = CALLS[name]
    compiled: Any = jk.jit(function)
    args, kwargs = make()
    for _ in range(3):
        compiled(*args, **kwargs)
    objects = [*args, *kwargs.values(), FACTOR, np.dtype("f8"), None, compiled]
    objects += [part for one in args if isinstance(one, tuple | list) for part in one]
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(ROUNDS):
        compiled(*args, **kwargs)
    after = [sys.getrefcount(one) for one in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < ROUNDS / 2


def test_methods_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Model(), some(4)
    for _ in range(2):
        assert bits(model.step(x)) == bits(model.plain(x))
    monkeypatch.setattr(Model.step, "look_up", None)
    model.weights, model.scale = some(4) * 7, -1.0
    assert bits(model.step(x)) == bits(model.plain(x))
    assert bits(Model.step(model, x)) == bits(model.plain(x))
    assert isinstance(Model.__dict__["step"], type(model.step.__func__))


def agrees(compiled: Any, function: Any, *args: Any, **kwargs: Any) -> None:
    assert bits(compiled(*args, **kwargs)) == bits(function(*args, **kwargs))


def test_changed_globals_and_callees(monkeypatch: pytest.MonkeyPatch) -> None:
    x = some(4)
    compiled: Any = jk.jit(by_helper)
    for _ in range(3):
        agrees(compiled, by_helper, x)
    here = sys.modules[__name__]
    for name, values in (("SHIFT", (5.0, 7, np.float32(2))), ("FACTOR", (some(4) * 3, 2.0, np.ones((2, 4))))):
        for value in values:
            monkeypatch.setattr(here, name, value)
            agrees(compiled, by_helper, x)
    monkeypatch.setattr(here, "shifted", lambda x: x * 100)
    agrees(compiled, by_helper, x)


def test_changed_closures_and_defaults() -> None:
    factor: Any = 2.0

    def scaled(x: Any, shift: Any = 1.0) -> Any:
        return x * factor + shift

    compiled: Any = jk.jit(scaled)
    for factor in (2.0, 3.0, 4, np.arange(4.0), some(4) * 2):  # noqa: B007  # the closure's own
        agrees(compiled, scaled, some(4))
    scaled.__defaults__ = (7.0,)
    agrees(compiled, scaled, some(4))
    scaled.__defaults__ = (np.ones(4),)
    agrees(compiled, scaled, some(4))


def test_containers_of_other_structures() -> None:
    def total(t: Any) -> Any:
        result = 0.0
        for i, key in enumerate(t):
            result = result + t[key] * (i + 1)
        return result

    compiled: Any = jk.jit(total)
    a, b = some(4), some(4) + 2
    for _ in range(3):
        agrees(compiled, total, {"a": a, "b": b})
    agrees(compiled, total, {"b": b, "a": a})
    agrees(compiled, total, {"a": a})
    agrees(compiled, total, {"a": a, "b": b, "c": a})
    agrees(compiled, total, {"a": a, "c": b})
    agrees(compiled, total, {"a": 1.0, "b": b})

    def first(t: Any) -> Any:
        return t[0] + len(t)

    compiled = jk.jit(first)
    for t in ([a, b], [a, b], (a, b), [a], [a, b, a], [a, 1], Two(a, b)):
        agrees(compiled, first, t)


def test_numbers_of_other_types() -> None:
    compiled: Any = jk.jit(branched)
    small: list[Any] = [3, 3, 1, True, 3.5]
    large: list[Any] = [2**62, -(2**63), 2**64]
    for k in (*small, *large, 0.0, np.int8(3), np.float64(1), float("nan"), 2, -1, -1):
        x = some(4) if abs(k) < 2**60 else np.arange(4)
        if k == 2**64:
            x = x.astype(float)
        agrees(compiled, branched, x, k)


def test_static_arguments_of_other_values() -> None:
    compiled: Any = jk.jit(chosen)
    for how, axis in (
        ("sum", 0),
        ("sum", 0),
        ("max", 0),
        ("sum", 1),
        ("sum", None),
        (str(b"sum", "ascii"), (0, 1)),  # equal, but another object
    ):
        agrees(compiled, chosen, some(3, 4), how, axis)
    static = jk.jit(static_argnames=("how", "axis"))(chosen)
    for how, axis in (("sum", 0), ("sum", 0), ("max", 0), ("sum", 1), ("max", None)):
        agrees(static, chosen, some(3, 4), how, axis)


def test_out_returns_the_tuple_that_was_passed() -> None:
    compiled: Any = jk.jit(lambda x: (x + 1, x * 2))
    x, out = some(4), (np.empty(4), np.empty(4))
    for _ in range(3):
        assert compiled(x, out=out) is out
        np.testing.assert_array_equal(out[1], x * 2)
    before = sys.getrefcount(out), sys.getrefcount(out[0])
    for _ in range(ROUNDS):
        compiled(x, out=out)
    assert (sys.getrefcount(out), sys.getrefcount(out[0])) == before


def test_code_that_is_released_is_not_called() -> None:
    compiled: Any = jk.jit(lambda x: x + 1)
    x = some(4)
    compiled(x), compiled(x)
    compiled.release()
    gc.collect()
    rest = [np.full(12, 7) for _ in range(100)]  # where the links were
    np.testing.assert_array_equal(compiled(x), x + 1)
    assert rest


def test_out_of_memory_for_results() -> None:
    """The call raises as NumPy does, and keeps no result allocated before."""
    compiled: Any = jk.jit(lambda x, y: (x + 1, x[:, None] + y[None]))
    for _ in range(2):
        compiled(some(4), some(5))
    x, y = np.zeros(2**20), np.zeros(2**29)
    before = resident()
    for _ in range(20):
        with pytest.raises(MemoryError):
            compiled(x, y)
    assert resident() - before < 5 * x.nbytes


@pytest.mark.parametrize("kind", ["array", "tuple", "out", "number", "error"])
def test_calls_do_not_leak(kind: str, tmp_path: Path) -> None:
    code = f"import test_compiled_entry as t\nprint(t.growth({kind!r}))"
    assert int(python(code)) < 1 << 20


def growth(kind: str) -> int:
    """Bytes that a hundred thousand calls leave behind."""
    x, out = some(64), np.empty(64)
    functions: dict[str, Callable[[], Any]] = {}
    add: Any = jk.jit(lambda x: x + 1)
    both = jk.jit(lambda x: (x + 1, x.sum()))
    total = jk.jit(lambda x: x.sum())
    functions["array"] = lambda: add(x)
    functions["tuple"] = lambda: both(x)
    functions["out"] = lambda: add(x, out=out)
    functions["number"] = lambda: total(x)

    def refused() -> None:
        try:
            pair(x, out[:7])
        except ValueError:
            return
        raise AssertionError("shapes that do not fit")

    pair = jk.jit(lambda x, y: x + y)
    functions["error"] = refused
    call = functions[kind]
    for _ in range(2000):
        call()
    before = resident()
    for _ in range(100_000 if kind != "error" else 5000):
        call()
    return resident() - before


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def specialised(count: int) -> tuple[float, float]:
    """Seconds of a call that was made before, with few and with many specializations."""
    function = jk.jit(static_argnames="k")(lambda x, k: x + k)
    x = some(8)
    function(x, 0), function(x, 0)
    first = quickest(lambda: function(x, 0))
    for k in range(1, count):
        assert function(x, k)[0] == k
    function(x, 0)
    return first, quickest(lambda: function(x, 0))


def quickest(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(100):
            call()
        times.append((time.perf_counter() - began) / 100)
    return min(times)


def test_many_specializations_do_not_slow_calls_down() -> None:
    few, many = specialised(200)
    assert many < 3 * few


@pytest.mark.full
def test_ten_thousand_specializations_do_not_slow_calls_down() -> None:
    few, many = specialised(10_000)
    assert many < 3 * few


def test_threads_share_one_first_call() -> None:
    for number in range(3):
        function = eval(f"lambda x, y: (x * {number + 0.5} + y).sum(-1)")
        compiled: Any = jk.jit(function)
        start = threading.Barrier(8)
        wrong: list[int] = []

        def work(own: int, compiled: Any = compiled, function: Any = function, start: Any = start) -> None:
            x, y = some(own + 2, 5), some(5)
            start.wait()
            for _ in range(300):
                if not np.array_equal(compiled(x, y), function(x, y)):
                    wrong.append(own)  # noqa: B023, PERF401  # the threads of this round

        threads = [threading.Thread(target=work, args=(own,)) for own in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(compiled._specializations) <= 2


def test_threads_share_large_arrays() -> None:
    """The GIL is released meanwhile, and elements of an argument list may be replaced."""
    compiled: Any = jk.jit(lambda t: t[0] * 2 + t[1])
    held = [np.ones(1 << 20), np.ones(1 << 20)]
    compiled(held)
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            held[0], held[1] = np.ones(1 << 20), np.ones(1 << 20)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(30):
            assert compiled(held).max() == 3
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_outs_next_to_and_overlapping_arguments(dtype: str) -> None:
    """Results and arguments that lie side by side, and those that share the last element of one and the first."""
    compiled, count = jk.jit(lambda x: x + x[::-1]), 100
    room = np.zeros(3 * count, dtype)
    x = room[count : 2 * count]
    for distance in (-count, 1 - count, -1, 1, count - 1, count):
        for _ in range(3):
            x[:] = np.arange(count) + 1
            out = room[count + distance : 2 * count + distance]
            assert compiled(x, out=out) is out
            assert (out == count + 1).all(), distance
