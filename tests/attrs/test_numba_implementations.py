"""Functions compiled by numba as implementations of rows, and called from compiled functions."""

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from argument_kinds import SETTLING, entries_after, same
from test_numba_calls import njit, njit_parallel

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.tools import testing

types: Any = numba.types


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The implementations that a test registers go with it."""
    rows = (jk.SoftmaxAttr, jk.VSquareAttr, jk.LayerNormAttr, jk.MatMulAttr, jk.GatherAttr)
    for row in rows:
        registry.implementations(row)
    before = {row: dict(registry._implementations[row]) for row in rows}
    yield
    for row, known in before.items():
        registry._implementations[row].clear()
        registry._implementations[row].update(known)
    jk.KernelFuncs.cache().clear()


def square(x: Any, y: Any) -> None:
    for i in range(x.size):
        y[i] = x[i] * x[i]


def softmax(x: Any, y: Any) -> None:
    """Of declared shapes [rows, n, remain]."""
    for i in range(x.shape[0]):
        for k in range(x.shape[2]):
            largest = x[i, :, k].max()
            y[i, :, k] = np.exp(x[i, :, k] - largest)
            y[i, :, k] /= y[i, :, k].sum()


@pytest.mark.parametrize("function", [square, numba.njit(square)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_of_arrays(function: Any, dtype: str) -> None:
    assert jk.implements(jk.VSquareAttr, name="loops", compiler="numba")(function) is function
    for n in (0, 1, 7, 100):
        testing.check(jk.VSquareAttr(n=n, dtype=dtype), "loops")
    x = np.arange(5, dtype=dtype)
    with jk.use(vsquare="loops"):
        np.testing.assert_array_equal(jk.vsquare(x), x * x)


def test_a_function_of_several_dimensions() -> None:
    jk.implements(jk.SoftmaxAttr, name="loops", compiler="numba")(softmax)
    for rows, n, remain in ((3, 7, 1), (2, 5, 4), (1, 1, 1)):
        attr = jk.SoftmaxAttr(rows=rows, n=n, remain=remain, dtype="float64")
        x = np.random.default_rng(0).standard_normal((rows, n, remain)).reshape(attr.signature().arrays[0].shape)
        y = np.empty_like(x)
        with jk.use(softmax="loops"):
            jk.KernelFuncs.cache().at(attr)(x, y)
        expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(y, expected, rtol=1e-12)


def test_numbers_of_the_row_by_name() -> None:
    @jk.implements(jk.LayerNormAttr, name="loops", compiler="numba", can_be_used=lambda attr: not attr.stats or "stats")
    def layer_norm(x: Any, scale: Any, bias: Any, y: Any, eps: float, n: int) -> None:
        for i in range(x.shape[0]):
            mean = x[i].sum() / n
            centred = x[i] - mean
            y[i] = centred / np.sqrt((centred * centred).sum() / n + eps) * scale + bias

    x = np.random.default_rng(0).standard_normal((4, 9))
    scale, bias = np.arange(9.0), np.ones(9)
    for eps in (1e-5, 0.5):
        expected = jk.layer_norm(x, scale, bias, eps=eps)
        with jk.use(layer_norm="loops"):
            np.testing.assert_allclose(jk.layer_norm(x, scale, bias, eps=eps), expected, rtol=1e-12)


def test_a_callback_of_pointers() -> None:
    pointer = types.CPointer(types.float32)

    def squares(x: Any, y: Any, n: int) -> int:
        for i in range(n):
            y[i] = x[i] * x[i]
        return 0

    callback = numba.cfunc(types.int64(pointer, pointer, types.int64))(squares)
    jk.implements(jk.VSquareAttr, name="pointers", compiler="numba")(callback)
    testing.check(jk.VSquareAttr(n=9), "pointers")
    with jk.use(vsquare="pointers"), pytest.raises(jk.RegistrationError, match=r"expected int64\(float64\*"):
        jk.vsquare(np.ones(3))


def test_errors_of_the_function_are_raised_by_the_call() -> None:
    @jk.implements(jk.VSquareAttr, name="raising", compiler="numba")
    def raising(x: Any, y: Any) -> None:
        if x[0] > 1:
            raise ValueError("too much")
        y[:] = x

    with jk.use(vsquare="raising"):
        np.testing.assert_array_equal(jk.vsquare(np.ones(3)), np.ones(3))
        with pytest.raises(jk.JitKernelsError):
            jk.vsquare(np.full(3, 2.0))


def test_invalid_numba_functions() -> None:
    with pytest.raises(jk.RegistrationError, match="compiler: expected 'numba', got 'gcc'"):
        jk.implements(jk.VSquareAttr, name="loops", compiler="gcc")
    with pytest.raises(jk.RegistrationError, match="expected a function, got 3"):
        jk.implements(jk.VSquareAttr, name="loops", compiler="numba")(3)  # type: ignore[type-var]
    with pytest.raises(jk.RegistrationError, match="expected a name"):
        jk.implements(jk.VSquareAttr, compiler="numba")(square)
    jk.implements(jk.VSquareAttr, name="loops", compiler="numba")(square)
    with pytest.raises(jk.RegistrationError, match="already has an implementation 'loops'"):
        jk.implements(jk.VSquareAttr, name="loops", compiler="numba")(square)
    jk.implements(jk.VSquareAttr, name="few", compiler="numba")(lambda x: None)
    with jk.use(vsquare="few"), pytest.raises(jk.RegistrationError, match="expected 2 arrays and then any of n"):
        jk.vsquare(np.ones(3))
    jk.implements(jk.VSquareAttr, name="wrong", compiler="numba")(lambda x, y: x.nothing)
    with jk.use(vsquare="wrong"), pytest.raises(jk.BuildError, match="numba rejects"):
        jk.vsquare(np.ones(3))
    jk.implements(jk.MatMulAttr, name="loops", compiler="numba")(lambda a, b, c: None)
    reason = registry.implementation(jk.MatMulAttr, "loops").reason_against(jk.MatMulAttr(m=2, n=2, k=2, trans_b=True))
    assert reason == "numba's functions do not support a transposed b"


@njit
def shifted(x: Any) -> Any:
    return x * 2 + 1


@njit
def steps(x: Any, by: float) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = shifted(x[i]) * by
    return y


@njit_parallel
def in_parallel(x: Any) -> Any:
    y = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def _third(x: float) -> float:
    return x / 3


third: Any = None


@pytest.fixture(autouse=True, scope="module")
def _compiled_callback() -> None:
    """Not at import: LLVM compiles it."""
    global third
    third = numba.cfunc("float64(float64)")(_third)


PROGRAMS: dict[str, Any] = {
    "a dispatcher": lambda x: shifted(np.sin(x)) + 1,
    "loops in a dispatcher": lambda x: steps(x, 0.5) - 1,
    "prange": lambda x: in_parallel(x) + x,
    "a callback": lambda x: third(x) + 1,
    "a dispatcher for elements": lambda x: np.array([shifted(x[0]), shifted(x[1])]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_jit_traces_through_functions_of_numba(name: str) -> None:
    compiled = jk.jit(PROGRAMS[name])
    written = {"x": np.linspace(0.5, 2, 6)}
    expected = (
        written["x"] / 3 + 1 if name == "a callback" else PROGRAMS[name](written["x"])
    )  # callbacks of Python take numbers alone
    for _ in range(3):
        np.testing.assert_allclose(compiled(written["x"]), expected, rtol=1e-14)
    assert "falls back to NumPy" not in str(compiled.explain(written["x"]))


def test_jit_of_a_function_of_numba() -> None:
    compiled = jk.jit(steps)
    x = np.linspace(0, 1, 50)
    np.testing.assert_allclose(compiled(x, 3.0), steps(x, 3.0), rtol=1e-14)
    assert "falls back to NumPy" not in str(compiled.explain(x, 3.0))
    assert compiled.__name__ == "steps"


OFFSETS = np.arange(3.0)
module = ModuleType("module_of_dispatchers")
module.shifted = shifted  # type: ignore[attr-defined]
traced = jk.jit(steps)


@njit
def with_default(x: Any, by: float = 2.0) -> Any:
    return np.exp(x * by)


@njit
def with_globals(x: Any) -> Any:
    return x + OFFSETS.sum()


def enclosed(inner: Any) -> Any:
    return lambda x: inner(x) - 1


CALLERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{name: (function, ()) for name, function in PROGRAMS.items()},
    "in a closure": (enclosed(shifted), ()),
    "as an argument": (lambda x, function: function(x) * 2, (shifted,)),
    "in a list of arguments": (lambda x, functions: functions[0](x) * functions[1](x), ([shifted, with_globals],)),
    "as a default": (lambda x, function=shifted: function(x) * 2, ()),
    "as an attribute of a module": (lambda x: module.shifted(x) * 2, ()),
    "with a default": (lambda x: with_default(x) + 1, ()),
    "that reads a global": (lambda x: with_globals(x) + 1, ()),
    "behind a compiled function": (lambda x: traced(x, 2.0) + 1, ()),
    "as a partial": (partial(lambda function, x: function(x) + 1, shifted), ()),
    "itself": (shifted, ()),
    "itself with arguments": (steps, (3.0,)),
    "itself with a default": (with_default, ()),
    "itself that reads a global": (with_globals, ()),
    "itself in parallel": (in_parallel, ()),
}
"""Functions that call what numba compiled, by how they get at it, with their arguments beside an array."""


@pytest.mark.parametrize("size", [6, 5000])
@pytest.mark.parametrize("name", CALLERS)
def test_functions_of_numba_enter_no_python(name: str, size: int) -> None:
    function, others = CALLERS[name]
    compiled, x = jk.jit(function), np.linspace(0.5, 2, size)
    assert entries_after(compiled, lambda: (x.copy(), *others)) == ()
    expected = x / 3 + 1 if name == "a callback" else function(x, *others)  # callbacks of Python take numbers alone
    same(compiled(x, *others), expected)


def test_a_function_that_numba_recompiled_is_retraced() -> None:
    """What a name refers to is looked at in each call, also behind a compiled entry."""
    scope: dict[str, Any] = {"jk": jk, "inner": numba.njit(lambda x: x + 1)}
    exec("@jk.jit\ndef outer(x):\n    return inner(x) * 2", scope)
    x = np.arange(3.0)
    for _ in range(SETTLING):
        np.testing.assert_array_equal(scope["outer"](x), (x + 1) * 2)
    scope["inner"] = numba.njit(lambda x: x - 1)
    np.testing.assert_array_equal(scope["outer"](x), (x - 1) * 2)
