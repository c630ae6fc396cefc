"""Floating-point status flags that compiled code raises: all where NumPy warns, and few elsewhere."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Failures

import jitkernels as jk
from jitkernels.compiler.dispatch import fp_warnings
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.runtime import errstate

UFUNCS = {
    name: scalar.numpy
    for name, scalar in SCALARS.items()
    if isinstance(scalar.numpy, np.ufunc) and "f" in scalar.code and name not in ("ldexp", "spacing", "nextafter")
}
NUMBERS = (1.0, 2.5, -1.5, 0.5, 0.0, -0.0, -1.0, 100.0, 800.0, -800.0, 1e5, -1e9, 1e-30, np.inf, -np.inf, np.nan)
IN_VAIN = {"power": lambda x, y: (x, y) == (0, 0) or (x < 0 and y == -1e9)}
"""Finite numbers for which flags are set though nothing fails."""


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the kinds of every report of floating-point flags, and issue no warning."""
    found: list[Any] = []

    def record(reporter: fp_warnings.WarningReporter, kinds: tuple[str, ...], *_: Any) -> int:
        found.append(kinds)
        return 0

    monkeypatch.setattr(fp_warnings.WarningReporter, "report", record)
    return found


def fails(function: Callable[..., Any], *args: Any) -> bool:
    """Whether NumPy warns."""
    listener = errstate.FlagCollector()
    with listener.collecting():
        function(*args)
    return bool(listener.kinds)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_functions_set_flags_where_numpy_warns(name: str, dtype: str, reported: list[Any]) -> None:
    ufunc, failures = UFUNCS[name], Failures()
    compiled: Any = jk.jit((lambda x: ufunc(x)) if ufunc.nin == 1 else lambda x, y: ufunc(x, y))
    biggest = float(np.finfo(dtype).max)
    for numbers in itertools.product((*NUMBERS, biggest), repeat=ufunc.nin):
        arrays = [np.full(9, number, dtype) for number in numbers]
        expected = fails(ufunc, *arrays)
        if not expected and (not np.isfinite(numbers).all() or biggest in numbers):
            continue  # flags may be spurious there
        if name in IN_VAIN and IN_VAIN[name](*numbers):
            continue
        reported.clear()
        compiled(*arrays)
        with failures.gathered(f"{name}{numbers}"):
            assert bool(reported) == expected
    failures.tell()


CLEAN: dict[str, Callable[[Any, Any], Any]] = {
    "quotient": lambda x, y: x / y - y / (x + 1),
    "singular for ones": lambda x, y: 1 / (1 - x * 0.25) + np.arctanh(y * 0.25) + np.log(x - 1.5),
    "functions": lambda x, y: np.exp(x) * np.log(y) + np.sin(x) / np.cos(y * 0.1) + np.tan(x) + x**y,
    "roots": lambda x, y: np.sqrt(x - 1.5) + np.cbrt(y) + np.hypot(x, y) + np.arctan2(y, x),
    "rows": lambda x, y: (x - x.mean()) / x.std() + y / y.sum() + np.log(np.exp(x - x.max()).sum()),
    "whole numbers": lambda x, y: (x * 7).astype("i4") // (y * 3).astype("i4") + (x * 9).astype("u1"),
    "choice": lambda x, y: np.where(x > y, 1 / x, np.maximum(x, y)) + np.clip(x, 2, 3),
    "remainder": lambda x, y: x % y + x // y + np.fmod(x, y) + np.floor(x),
    "transposed": lambda x, y: 1 / (1 - x[::-1]) + 1 / (1 - y[::2].sum()),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_set_no_flags(name: str, dtype: str, reported: list[Any]) -> None:
    random = np.random.default_rng(3)
    compiled: Any = jk.jit(CLEAN[name])
    for size in (*range(1, 34), 1000):
        x, y = (random.uniform(1.75, 3.5, size).astype(dtype) for _ in range(2))
        if name == "rows" and size == 1:
            continue
        assert not fails(CLEAN[name], x, y), size
        for _ in range(2):
            compiled(x, y)
            compiled(x, y, out=np.empty_like(CLEAN[name](x, y)))
        assert reported == [], size


FAILING: dict[str, tuple[Callable[[Any], Any], float]] = {
    "divide by zero": (lambda x: 1 / x, 0.0),
    "log of zero": (lambda x: np.log(x), 0.0),
    "log of a negative number": (lambda x: np.log(x), -1.0),
    "overflow of exp": (lambda x: np.exp(x * 10), 1e4),
    "zero by zero": (lambda x: x / x, 0.0),
    "difference of infinities": (lambda x: x - x, np.inf),
    "remainder of zero": (lambda x: 5 % x, 0.0),
    "whole quotient by zero": (lambda x: 7 // x.astype("i4"), 0.0),
    "whole remainder by zero": (lambda x: 7 % x.astype("u1"), 0.0),
    "cast of NaN": (lambda x: x.astype("i4"), np.nan),
    "root of a negative number": (lambda x: np.sqrt(x), -2.0),
    "power of a negative number": (lambda x: x**0.3, -2.0),
    "arcsin": (lambda x: np.arcsin(x * 0.1), 11.0),
    "sum": (lambda x: (x * x * x * x).sum(), 1e300),
    "in a sum": (lambda x: np.log(x).sum(), 0.0),
    "of half precision": (lambda x: x.astype("f2") * 3, 60000.0),
}


def given(function: Callable[..., Any], x: Any) -> list[tuple[str, int]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(x)
    return [(str(one.message), one.lineno) for one in found]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FAILING)
def test_warnings_match_numpy(name: str, dtype: str) -> None:
    function, bad = FAILING[name]
    compiled, failures = jk.jit(function), Failures()
    for size in (*range(1, 34), 1000):
        x = np.full(size, 1.5, dtype)
        with failures.gathered(f"{name} {dtype} {size}"):
            assert given(compiled, x) == given(compiled, x) == []
            x[-1 if size % 2 else size // 2] = 1e38 if dtype == "float32" and bad == 1e300 else bad
            right = given(function, x)
            assert right
            assert given(compiled, x) == given(compiled, x) == right
    failures.tell()


def test_partial_vectors_of_columns_set_no_flags(reported: list[Any]) -> None:
    compiled = jk.jit(lambda x: (x - x.mean(axis=0)) / x.std(axis=0))
    for columns in (5, 33, 70):
        for dtype in ("f4", "f8"):
            compiled(np.random.default_rng(0).normal(size=(9, columns)).astype(dtype))
    assert not reported
