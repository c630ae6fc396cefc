"""Compiled functions as objects: decorators, methods, partial functions, threads, forks, pickles, names, errors."""

import functools
import gc
import inspect
import multiprocessing
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, reasons, same

import jitkernels as jk
from jitkernels.errors import TracingError


@jk.jit
def doubled(x: Any, factor: float = 2.0) -> Any:
    """Twice as much."""
    return x * factor


class Holder:
    def __init__(self) -> None:
        self.scale = 3.0

    @jk.jit
    def scaled(self, x: Any) -> Any:
        return x * self.scale

    @staticmethod
    @jk.jit
    def fixed(x: Any) -> Any:
        return x + 1

    @classmethod
    @jk.jit
    def of_class(cls, x: Any) -> Any:
        return x + 2


def test_attributes_of_the_function() -> None:
    assert doubled.__name__ == "doubled"
    assert doubled.__doc__ == "Twice as much."
    assert doubled.__wrapped__(2) == 4
    assert str(inspect.signature(doubled)).startswith("(x: Any, factor: float = 2.0)")
    assert "doubled" in repr(doubled)
    assert jk.jit(doubled).__wrapped__ is doubled.__wrapped__


def test_decorator_forms() -> None:
    x = array(3)
    same(jk.jit()(lambda v: v + 1)(x), x + 1)
    same(jk.jit(opt_level=0)(lambda v: v + 1)(x), x + 1)
    same(jk.jit(config=jk.JitConfig(opt_level=1))(lambda v: v + 1)(x), x + 1)
    exponential = jk.jit(np.exp)
    same(exponential(x), np.exp(x))
    assert exponential.explain(x).kernels == 1
    same(jk.jit(functools.partial(np.add, 1.0))(x), x + 1)


def test_methods_and_partial_functions() -> None:
    x, holder = array(3), Holder()
    same(holder.scaled(x), x * 3)
    same(Holder.scaled(holder, x), x * 3)
    same(Holder.fixed(x), x + 1)
    same(holder.fixed(x), x + 1)
    same(Holder.of_class(x), x + 2)
    same(functools.partial(doubled, factor=5.0)(x), x * 5)
    same(functools.partial(holder.scaled, x)(), x * 3)
    same(list(map(doubled, [x, x]))[1], x * 2)


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    restored = pickle.loads(pickle.dumps(Holder().scaled))
    same(restored(array(3)), array(3) * 3)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(jk.jit(lambda x: x))


def test_threads_compile_once() -> None:
    compiled = jk.jit(lambda x: np.exp(x) * x + x.sum())
    x, barrier = array(100), threading.Barrier(8)

    def call(_: int) -> Any:
        barrier.wait()
        return [compiled(x) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        results = [one for found in pool.map(call, range(8)) for one in found]
    for result in results:
        same(result, compiled.__wrapped__(x))
    assert sum(map(len, compiled._specializations.values())) == 1


def test_threads_trace_different_functions() -> None:
    functions = [jk.jit(lambda x, i=i: x * i + np.zeros(x.shape)) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda one: one(array(5)), functions))
    for i, result in enumerate(results):
        same(result, array(5) * i)


def _child(queue: Any) -> None:
    queue.put(doubled(np.arange(3.0)).tolist() + doubled(np.arange(2.0, dtype="f4")).tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks() -> None:
    same(doubled(array(3)), array(3) * 2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [0.0, 2.0, 4.0, 0.0, 2.0]
    child.join()


def test_exceptions_of_the_function() -> None:
    def failing(x: Any) -> Any:
        x += 1
        raise KeyError("mine")

    compiled, x = jk.jit(failing), np.zeros(3)
    for count in (1, 2, 3):
        with pytest.raises(KeyError, match="mine"):
            compiled(x)
        same(x, np.full(3, float(count)))


def test_errors_of_numpy() -> None:
    for function in (
        lambda x: x + np.ones(7),
        lambda x: x.reshape(5, 5),
        lambda x: x[10],
        lambda x: x[:, 0, 0],
        lambda x: x.sum(axis=4),
        lambda x: np.concatenate([x, np.ones(3)]),
        lambda x: x @ np.ones(7),
        lambda x: x.nonsense,
        lambda x: np.nonsense(x),  # type: ignore[attr-defined]
        lambda x: x["a"],
        lambda x: np.zeros(-1) + x.sum(),
        lambda x: x[[0, 99]],
        lambda x: ~x,
        lambda x: x.max(axis=0)[()][5],
    ):
        agree(function, lambda: array(3, 4))
    agree(lambda x: x.max(), lambda: array(0))
    agree(lambda x: x.argmin(), lambda: array(0))
    agree(lambda x, i: x[i], lambda: array(4), lambda: np.array([0, 4]))


def test_indices_are_checked_at_each_call() -> None:
    compiled, x = jk.jit(lambda v, i: v[i] * 2), array(5)
    same(compiled(x, np.array([0, -5])), x[[0, -5]] * 2)
    with pytest.raises(IndexError):
        compiled(x, np.array([0, 5]))
    with pytest.raises(IndexError):
        compiled(x, np.array([-6, 0]))
    same(compiled(x, np.array([1, 2])), x[[1, 2]] * 2)


@pytest.mark.parametrize("mode", ["raise", "call"])
def test_floating_point_errors_under_errstate(mode: Any) -> None:
    compiled, calls = jk.jit(lambda v: {"a": 1 / v}), []
    x = np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        same(compiled(x), {"a": 1 / x})
    with np.errstate(all=mode, call=lambda *found: calls.append(found)):
        if mode == "raise":
            with pytest.raises(FloatingPointError, match="divide by zero"):
                compiled(x)
        else:
            compiled(x)
            assert calls[0][0] == "divide by zero"

    def careful(v: Any) -> Any:
        with np.errstate(divide="ignore"):
            return [1 / v]

    compiled = jk.jit(careful, backend="interpreter")
    same(compiled(x), careful(x))
    assert not reasons(compiled)

    def strict(v: Any) -> Any:
        with np.errstate(divide="raise"):
            return 1 / v

    with pytest.raises(FloatingPointError):
        jk.jit(strict)(x)


def test_control_flow_on_values_is_explained() -> None:
    def branching(x: Any) -> Any:
        total = x.sum()
        if total > 0:  # noqa: SIM108
            total = x[1:] * 2
        else:
            total = -x
        return total

    x = array(3)
    same(jk.jit(branching)(x), branching(x))
    compiled = jk.jit(branching, strict=True)
    for _ in range(2):
        with pytest.raises(TracingError, match="'total' is an array") as caught:
            compiled(array(3))
        assert __file__ in str(caught.value)
        assert "np.where" in str(caught.value)


def test_unsupported_loops_fall_back() -> None:
    def looping(x: Any) -> Any:
        while abs(x.max()) > 1:
            x = np.append(x / 4, 0.5)
        return x  # of as many elements more as there are rounds

    compiled, x = jk.jit(looping), array(3) + 5
    for _ in range(3):
        same(compiled(x), looping(x))
    assert f"{__file__}:" in reasons(compiled)[0]


class Pair(tuple[Any, ...]):  # noqa: SLOT001  # what has slots is refused for them
    """What is more than its attributes."""


class Names(dict[str, Any]):
    """The same."""


def test_classes_derived_from_containers() -> None:
    def picked(x: Any, at: Any) -> Any:
        return x[at]

    def by_name(x: Any, names: Any) -> Any:
        return x * names["by"]

    def by_attribute(x: Any, space: Any) -> Any:
        return x * space.by

    x = array(5, 5)
    for function, other in (
        (picked, Pair(([1], [2]))),
        (by_name, Names(by=3.0)),
        (by_attribute, SimpleNamespace(by=array(5))),
    ):
        compiled = jk.jit(function)
        for _ in range(3):
            same(compiled(x, other), function(x, other))


def test_traced_arrays_are_released() -> None:
    class Keeper:
        kept: Any = None

    def leaking(x: Any) -> Any:
        setattr_ = object.__setattr__
        setattr_(keeper, "kept", x)
        return x * 2

    keeper = Keeper()
    compiled = jk.jit(leaking)
    same(compiled(array(3)), array(3) * 2)
    same(keeper.kept, array(3))
    assert reasons(compiled)


def test_arguments_are_released() -> None:
    class Owner(np.ndarray):
        pass

    compiled = jk.jit(lambda x: x * 2 + x[::-1].sum())
    base = array(1000).view(Owner)
    x = np.asarray(base)
    alive = weakref.ref(base)
    compiled(x)
    compiled(x)
    del x, base
    gc.collect()
    assert alive() is None


def test_number_of_specializations_is_bounded() -> None:
    compiled = jk.jit(lambda x, k: x * int(str(k)), backend="interpreter")
    for k in range(100):
        same(compiled(array(3), k), array(3) * k)
    assert sum(map(len, compiled._specializations.values())) == 32
    assert "specializations for one signature" in reasons(compiled)[0]
    compiled.release()
    assert not compiled._specializations
    same(compiled(array(3), 2), array(3) * 2)
