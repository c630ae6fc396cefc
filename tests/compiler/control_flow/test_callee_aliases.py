"""Callees are resolved by object, not by name: an alias compiles to what the plain name does.

The list of functions is taken from the tables of the compiler: each of them needs a program here, and each program
runs through every way of naming its function.
"""

import builtins
import datetime as dt
import itertools
import linecache
import logging
import math
import os
import random
import secrets
import sys
import threading
import time
import types
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.capture import register_overrides  # noqa: F401  # the tables
from jitkernels.compiler.capture.control_flow.callee_resolution import ITERABLES
from jitkernels.compiler.capture.impure import IMPURE_BUILTINS
from jitkernels.compiler.capture.numpy_namespace_proxy import BUILTINS, CALLED
from jitkernels.compiler.capture.rewrite.comprehensions import FOLDS

SIZES = (21, 34, 55)
"""Calls of one function, which have to share its code."""

PROGRAMS: dict[str, tuple[Any, str]] = {
    "range": (range, "for i in F(1, x.shape[0]):\n    y[i] = y[i - 1] * 0.5 + x[i]"),
    "range_steps": (range, "for i in F(2, x.shape[0] - 1, 3):\n    y[i] = y[i - 2] + x[i]"),
    "range_listed": (range, "y = np.array([x[i] * 2 for i in F(x.shape[0])])"),
    "enumerate": (enumerate, "for i, v in F(x):\n    y[i] = y[i - 1] * 0.5 + v"),
    "zip": (zip, "for i, v in F(range(len(x)), x):\n    y[i] = y[i - 1] * 0.5 + v"),
    "reversed": (reversed, "for i in F(range(len(x) - 1)):\n    y[i] = y[i + 1] * 0.5 + x[i]"),
    "product": (
        itertools.product,
        "for i, j in F(range(len(x)), range(len(x) - 1)):\n    y[i] = y[i - 1] * 0.5 + x[j]",
    ),
    "ndindex": (np.ndindex, "for (i,) in F(len(x)):\n    y[i] = y[i - 1] * 0.5 + x[i]"),
    "ndenumerate": (np.ndenumerate, "for (i,), v in F(x):\n    y[i] = y[i - 1] * 0.5 + v"),
    "len": (len, "for i in range(1, F(x)):\n    y[i] = y[i - 1] * 0.5 + x[i]"),
    "len_alone": (len, "y = x * F(x)"),
    "int": (int, "for i in range(len(x)):\n    y[i] = x[F(x[i] * 3)]"),
    "float": (float, "for i in range(1, len(x)):\n    y[i] = y[i - 1] + F(x[i] > 0.5)"),
    "bool": (bool, "for i in range(1, len(x)):\n    y[i] = y[i - 1] + F(x[i] - 0.25)"),
    "float_alone": (float, "y = x * F(k)"),
    "complex": (complex, "y = x * F(2.0, k).imag"),
    "min": (min, "for i in range(len(x)):\n    y[i] = F(x[i], 0.5)"),
    "min_alone": (min, "y = x * F(k, 3.5)"),
    "max": (max, "for i in range(len(x)):\n    y[i] = F(x[i], 0.5)"),
    "max_fold": (max, "y[0] = F(x[i] * 2 for i in range(len(x)))"),
    "min_fold": (min, "y[0] = F(v * 2 for v in x)"),
    "sum": (sum, "y[0] = F(x[i] * 2 for i in range(len(x)))"),
    "sum_of_list": (sum, "y[0] = F([v * 2 for v in x if v > 0.5])"),
    "any": (any, "y[0] = 1.0 if F(v > 0.5 for v in x) else 2.0"),
    "all": (all, "y[0] = 1.0 if F(v < 0.99 for v in x) else 2.0"),
    "next": (next, "y[0] = F((v for v in x if v > 0.9), -1.0)"),
    "type": (type, "if F(x) is np.ndarray:\n    y = x * 2"),
    "set": (set, "known = F(x[1:])\nfor i in range(len(x)):\n    y[i] = x[i] in known"),
    "frozenset": (frozenset, "for i in range(len(x)):\n    y[i] = x[i] not in F(x[:2])"),
    "getattr": (getattr, "for i in range(F(x, 'ndim')):\n    y[i] = F(x, 'scale', 2.0) * len(F(x, 'shape'))"),
    "hasattr": (hasattr, "if F(x, 'ndim') and not F(x, 'scale'):\n    y = x * 2"),
    "isinstance": (isinstance, "if F(x, np.ndarray):\n    y = x * 2"),
    "float32": (np.float32, "for i in range(len(x)):\n    y[i] = F(x[i]) * 3"),
    "sqrt": (math.sqrt, "for i in range(len(x)):\n    y[i] = F(x[i] + 1.0)"),
}
"""By name: a function, and statements that call it F and give values to y, for an array x and a float k."""


def indented(text: str, by: int = 4) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


def plain_name(function: Any) -> str:
    """The name that programs have for a function without an alias."""
    if function is itertools.product:
        return "product"
    module = function.__module__
    return function.__name__ if module == "builtins" else f"{'np' if module == 'numpy' else module}.{function.__name__}"


def program(head: str, body: str, tail: str = "") -> str:
    return f"{head}\n    y = np.zeros_like(x)\n{body}    return y\n{tail}"


def spelled(body: str, function: Any) -> str:
    return program("def f(x, k):", indented(body.replace("F(", f"{plain_name(function)}(")))


def of_module(body: str, function: Any) -> str:
    return program("alias = GIVEN\ndef f(x, k):", indented(body.replace("F(", "alias(")))


def around(body: str, function: Any) -> str:
    inner = program("def f(x, k):", indented(body.replace("F(", "alias(")))
    return f"def make(alias):\n{indented(inner)}    return f\nf = make(GIVEN)\n"


def local(body: str, function: Any) -> str:
    lines = f"alias = {plain_name(function)}\nother = alias\n{body.replace('F(', 'other(')}"
    return program("def f(x, k):", indented(lines))


def parameter(body: str, function: Any) -> str:
    return program("def f(x, k, alias=GIVEN):", indented(body.replace("F(", "alias(")))


def attribute(body: str, function: Any) -> str:
    text = body.replace("F(", "its_module.own(")
    return program("its_module = MODULE\ndef f(x, k):", indented(text))


def of_builtins(body: str, function: Any) -> str:
    owner = "itertools" if function is itertools.product else "builtins"
    name = function.__name__ if function.__module__ != "numpy" else ""
    if function.__module__ == "math":
        owner = "math"
    return program("def f(x, k):", indented(body.replace("F(", f"{owner}.{name}("))) if name else ""


def member(body: str, function: Any) -> str:
    return program("holder = HOLDER\ndef f(x, k):", indented(body.replace("F(", "holder.own(")))


def looked_up(body: str, function: Any) -> str:
    return program("table = {'own': GIVEN}\ndef f(x, k):", indented(body.replace("F(", "table['own'](")))


WAYS: tuple[Callable[[str, Any], str], ...] = (
    of_module, around, local, parameter, attribute, of_builtins, member, looked_up,
)  # fmt: skip
BY_TEXT = (of_module, around, local, parameter, attribute, of_builtins)
"""The ways that a call of a generator's values is found by, which has to be known when the text is rewritten."""


def made(text: str, function: Any, name: str) -> Callable[..., Any]:
    """The function f of a text, which can be read as that of a file can."""
    module = types.ModuleType("of_somebody")
    module.own = function  # type: ignore[attr-defined]
    file = f"<alias {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {
        "np": np, "math": math, "itertools": itertools, "builtins": builtins, "product": itertools.product,
        "GIVEN": function, "MODULE": module, "HOLDER": types.SimpleNamespace(own=function), "__name__": "aliases",
    }  # fmt: skip
    exec(compile(text, file, "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


def measured(function: Callable[..., Any]) -> tuple[int, ...]:
    """How often a function is compiled for some sizes, its kernels, and calls of NumPy; its results are checked."""
    compiled = jk.jit(function)
    for size in SIZES:
        x = np.random.default_rng(size).random(size)
        np.testing.assert_allclose(compiled(x, 2.5), function(x, 2.5), rtol=1e-6)
    stats = compiled.stats()
    return stats.compiles, stats.kernels, stats.launches


def cases() -> Iterator[Any]:
    for name, (function, body) in PROGRAMS.items():
        for way in WAYS:
            is_fold = "for v in x" in body and body.startswith("y[0]") or "F(x[i] * 2 for" in body
            if (way in BY_TEXT or not is_fold) and way(body, function):
                yield pytest.param(name, way, id=f"{name}-{way.__name__}")


@pytest.mark.parametrize(("name", "way"), [*cases()])
def test_an_alias_compiles_as_the_plain_name_does(name: str, way: Callable[[str, Any], str]) -> None:
    function, body = PROGRAMS[name]
    expected = measured(made(spelled(body, function), function, f"{name} spelled"))
    assert measured(made(way(body, function), function, f"{name} {way.__name__}")) == expected


def test_every_known_function_has_a_program() -> None:
    known = {*ITERABLES, *(getattr(builtins, name) for name in (*FOLDS, *BUILTINS))}
    known |= {
        one for one in CALLED if getattr(one, "__module__", "") == "builtins" or one in (np.ndindex, np.ndenumerate)
    }
    assert known - {print} <= {function for function, _ in PROGRAMS.values()}  # which is refused


# Functions that do something in each call


IMPURE: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in sorted(IMPURE_BUILTINS)},
    "random": random.random, "randint": random.randint, "time": time.perf_counter, "sleep": time.sleep,
    "now": dt.datetime.now, "datetime": dt.datetime, "getcwd": os.getcwd, "urandom": os.urandom,
    "warn": warnings.warn, "info": logging.info, "uuid4": uuid.uuid4, "token": secrets.token_bytes,
    "getrefcount": sys.getrefcount, "current_thread": threading.current_thread,
}  # fmt: skip
"""Functions whose calls a trace must not swallow: it is done once, and the calls are many."""
REFERRING = (of_module, around, parameter, attribute, member, looked_up)


@pytest.mark.parametrize("way", REFERRING)
@pytest.mark.parametrize("name", IMPURE)
def test_calls_with_side_effects_are_never_traced(name: str, way: Callable[[str, Any], str]) -> None:
    function = IMPURE[name]
    plain = made(way("y = x * 2\nif k < 0:\n    F(k)", function), function, f"{name} {way.__name__}")
    compiled = jk.jit(plain)
    with warnings.catch_warnings(record=True):
        for _ in range(2):
            assert np.array_equal(compiled(np.ones(9), 2.5), np.full(9, 2.0))
        with pytest.raises(jk.TracingError):
            jk.jit(plain, strict=True)(np.ones(9), 2.5)


def test_aliased_random_calls_run_in_each_call() -> None:
    draw = random.Random(3).random
    compiled = jk.jit(made(of_module("y = x + F()", draw), draw, "drawn"))
    first, second = (compiled(np.ones(3), 1.0) for _ in range(2))
    assert not np.array_equal(first, second)


class Held:
    """An object with a value of its class."""

    factor = 3.0


@pytest.mark.parametrize("way", REFERRING)
@pytest.mark.parametrize(("function", "expected"), [(getattr, (3.0, 5.0)), (hasattr, (1.0, 1.0))])
def test_attributes_read_through_an_alias_are_guarded(
    function: Any, expected: tuple[float, float], way: Callable[[str, Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = jk.jit(made(way('y = x * float(F(k, "factor"))', function), function, f"{function} {way.__name__}"))
    held = Held()
    assert compiled(np.ones(9), held)[0] == expected[0]
    assert compiled(np.ones(9), held)[0] == expected[0]
    monkeypatch.setattr(Held, "factor", 5.0)
    assert compiled(np.ones(9), held)[0] == expected[1]


@pytest.mark.parametrize("name", ["prange", "numba.prange"])
def test_prange_of_numba_is_range(name: str) -> None:
    numba = pytest.importorskip("numba")
    body = PROGRAMS["range"][1].replace("F(", f"{name}(")
    function = made(program("def f(x, k):", indented(body)), range, name)
    function.__globals__.update(numba=numba, prange=numba.prange)
    assert measured(function) == measured(made(spelled(PROGRAMS["range"][1], range), range, "range spelled"))
