"""Functions that break give what Python gives: results, identities, exceptions, effects and their order."""

import linecache
import threading
import traceback
from collections.abc import Callable
from typing import Any

import broken_functions
import numpy as np
import pytest
from broken_functions import FUNCTIONS, LOG, x_of

import jitkernels as jk
from jitkernels.errors import DerivativeError, TracingError

MIN_CALLS = 6
"""Calls after which each part has run as code and in Python."""


def outcome(function: Callable[..., Any], argument: Any, n: int) -> tuple[Any, ...]:
    """What a call returns or raises, what it writes to its argument, and its effects."""
    LOG.clear()
    broken_functions.COUNTER = 0
    try:
        result = function(argument, n)
    except Exception as error:  # noqa: BLE001  # which is compared
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        return type(error), str(error), lines[-1], argument, [*LOG]
    return "result", result, argument, [*LOG]


FILE = broken_functions.__file__


def assert_same(value: Any, wanted: Any) -> None:
    """Assert equal types and values, up to rounding of sums."""
    assert type(value) is type(wanted), (value, wanted)
    if isinstance(wanted, tuple | list):
        assert len(value) == len(wanted), (value, wanted)
        for one, other in zip(value, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray | np.floating | float):
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
        assert np.shape(value) == np.shape(wanted)
    else:
        assert value == wanted


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_broken_functions(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.jit(function)
    monkeypatch.setattr(broken_functions, function.__name__, compiled)  # recursion calls the compiled function
    for n in FUNCTIONS[function]:
        for _ in range(MIN_CALLS):
            wanted = outcome(function, x_of()(), n)
            assert_same(outcome(compiled, x_of()(), n), wanted)
    explained = compiled.explain()
    assert explained.breaks, str(explained)
    assert explained.kernels, str(explained)


def test_views_stay_views() -> None:
    """A view that a part returns shares the memory of the argument."""
    compiled = jk.jit(broken_functions.writes_arguments)
    for _ in range(MIN_CALLS):
        x = x_of()()
        view, whole = compiled(x, 1)
        assert whole is x
        assert np.shares_memory(view, x)
        assert view.strides == (16,)


def test_other_signatures() -> None:
    """Code and breaks serve other dtypes, ranks and sizes."""
    compiled = jk.jit(broken_functions.in_branches)
    for dtype in (np.float64, np.float32):
        for shape in ((40,), (4, 5), (0,), (3000,)):
            x = np.linspace(0, 1, int(np.prod(shape)), dtype=dtype).reshape(shape)
            for n in (1, 3):
                got, wanted = compiled(x, n), broken_functions.in_branches(x, n)
                assert type(got) is type(wanted)
                np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_threads() -> None:
    """Threads that call a function at the same time for the first time get their own results."""
    compiled = jk.jit(broken_functions.nested_loops)
    wanted = [broken_functions.nested_loops(x_of()() + i, 3)[0] for i in range(4)]
    got = [0.0] * 4

    def call(i: int) -> None:
        for _ in range(MIN_CALLS):
            got[i] = compiled(x_of()() + i, 3)[0]

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(got, wanted)


class Model:
    """A class with a method that breaks."""

    def __init__(self) -> None:
        self.weights, self.calls = x_of()(), 0

    @jk.jit
    def step(self, x: Any) -> Any:
        y = self.weights * x + 1
        self.calls += 1
        self.weights = self.weights * 0.5 + y * 0.1
        return (y * y + self.calls).sum()


def test_methods() -> None:
    """Methods assign attributes between their parts."""
    model, weights = Model(), x_of()()
    for calls in range(1, MIN_CALLS):
        y = weights * x_of()() + 1
        weights = weights * 0.5 + y * 0.1
        np.testing.assert_allclose(model.step(x_of()()), (y * y + calls).sum())
        np.testing.assert_allclose(model.weights, weights)
        assert model.calls == calls
    assert Model.step.explain().kernels


def test_strict_refuses() -> None:
    with pytest.raises(TracingError, match="print"):
        jk.jit(broken_functions.in_branches, strict=True)(x_of()(), 3)
    assert "falls back to NumPy" in str(jk.jit(broken_functions.in_branches, strict=True).explain(x_of()(), 3))


def test_gradients_say_so() -> None:
    """A derivative cannot break: the error names the line."""

    def loss(x: Any) -> Any:
        y = x * 2 + 1
        print("loss", file=broken_functions.SINK)
        return (y * y).sum()

    with pytest.raises(DerivativeError, match=r"calls print.*test_broken_functions.py:\d+"):
        jk.grad(loss)(x_of()())


def test_excluded_functions_say_why() -> None:
    """Generators and coroutines stay whole."""

    @jk.jit
    def steps(x: Any) -> Any:
        yield x * 2 + 1

    @jk.jit
    async def later(x: Any) -> Any:
        return x * 2 + 1

    assert "a generator, with yield" in str(steps.explain(x_of()()))
    assert "a coroutine, with async" in str(later.explain(x_of()()))
    assert [one.shape for one in steps(x_of()())] == [(40,)]


def test_written_out() -> None:
    """`out` takes the result of a function that breaks."""
    compiled, out = jk.jit(broken_functions.same_object), np.empty(40)

    @jk.jit
    def doubled(x: Any) -> Any:
        y = x * 2 + 1
        broken_functions.note("out")
        return y * y + 1

    assert doubled(x_of()(), out=out) is out
    np.testing.assert_allclose(out, (x_of()() * 2 + 1) ** 2 + 1)
    assert compiled(x_of()(), 1)[0] is True


def test_scalar_parts_stay_python() -> None:
    """A part of cheap operations on numbers is not worth a call."""

    @jk.jit
    def total(n: int) -> float:
        s = 0.0
        for i in range(n):
            broken_functions.note(i)
            a = i * 0.5 + 1
            s = s + a * a
        return s

    for _ in range(MIN_CALLS):
        assert total(4) == sum((i * 0.5 + 1) ** 2 for i in range(4))
    assert all(part.is_python for part in total.explain(4).parts)


def test_explanation_names_lines() -> None:
    """`explain` tells each break with its line, reason and loop, and the calls of parts."""
    compiled = jk.jit(broken_functions.nested_loops)
    compiled(x_of()(), 3)
    text = str(compiled.explain(x_of()(), 3))
    assert "in each iteration of the loop in line" in text
    (one,) = compiled.explain(x_of()(), 3).breaks
    assert "note(i, j)" in linecache.getline(FILE, one.line)
    assert compiled.stats().kernels >= 2


def test_free_variables_without_a_value() -> None:
    """The plain function raises Python's NameError for them."""

    def made() -> tuple[Callable[[Any], Any], Callable[[], None]]:
        scale = 2.0

        def scaled(x: Any) -> Any:
            return x * scale

        def forget() -> None:
            nonlocal scale
            del scale

        return jk.jit(scaled), forget

    compiled, forget = made()
    np.testing.assert_array_equal(compiled(np.ones(3)), np.full(3, 2.0))
    forget()
    for _ in range(2):
        with pytest.raises(NameError):
            compiled(np.ones(3))
