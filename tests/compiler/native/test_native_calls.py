"""Calls of native functions by address, against calls of the same functions by Python."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest
from numba import cfunc
from numba.core.types import float64
from numba.types import WrapperAddressProtocol

import jitkernels as jk
from jitkernels.errors import BundleError, TracingError

LIBM = ctypes.CDLL(None)
cbrt = LIBM.cbrt
cbrt.argtypes, cbrt.restype = [ctypes.c_double], ctypes.c_double
fmaf = LIBM.fmaf
fmaf.argtypes, fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
labs = LIBM.labs
labs.argtypes, labs.restype = [ctypes.c_long], ctypes.c_long
ffi = cffi.FFI()
ffi.cdef("double cbrt(double); float sqrtf(float); int abs(int); int printf(const char *, ...); char *getenv(char *);")
library = ffi.dlopen(None)
cffi_cbrt = library.cbrt
LOG: list[tuple[Any, ...]] = []


def _log(*arguments: Any) -> int:
    LOG.append(arguments)
    return int(arguments[0]) * 2


MIXED = ctypes.c_int, ctypes.c_bool, ctypes.c_uint8, ctypes.c_int16, ctypes.c_float
logged: Any = ctypes.CFUNCTYPE(ctypes.c_int, *MIXED)(_log)
logged_alone: Any = ctypes.CFUNCTYPE(None, ctypes.c_int8)(lambda number: LOG.append((number,)))
same_word: Any = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(lambda word: word)
is_large: Any = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_double)(lambda number: number > 0.5)


class Hypot(WrapperAddressProtocol):  # type: ignore[misc]
    """An object that numba calls, and Python cannot."""

    def __wrapper_address__(self) -> int:
        return int(ctypes.cast(LIBM.hypot, ctypes.c_void_p).value or 0)

    def signature(self) -> Any:
        return float64(float64, float64)


hypot: Any = Hypot()


doubled: Any = cfunc("float64(float64)")(lambda x: 2 * x).ctypes


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += cbrt(x[i]) + cffi_cbrt(x[i]) * library.sqrtf(x[i]) + doubled(x[i]) - library.abs(i - 3)
    return total


def in_branches(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        if is_large(x[i]):
            out[i] = cbrt(x[i])
        elif i % 2:
            out[i] = fmaf(x[i], 2, i)
    return out


def in_a_while_loop(x: Any) -> Any:
    value, count = 100.0, 0
    while cbrt(value) > 1.5:
        value /= 2
        count += 1
    return value, count, x[0]


def in_a_comprehension(x: Any) -> Any:
    return np.array([cbrt(v) for v in x]) * 2


def in_a_straight_line(x: Any) -> Any:
    return cbrt(x[0]) + LIBM.cbrt(x[1]) * 2, labs(-5), labs(len(x)), is_large(x[0]), same_word(2**62)


def in_nested_loops(x: Any) -> Any:
    out = np.zeros((len(x), 3))
    for i in range(len(x)):
        for j in range(3):
            for _ in range(j):
                out[i, j] += cbrt(x[i])
    return out


def in_a_callee(x: Any) -> Any:
    return in_a_loop(x) + in_branches(x).sum()


def of_an_argument(x: Any, function: Any = cbrt) -> Any:
    return [function(x[i]) for i in range(3)]


@pytest.mark.parametrize(
    "function",
    [
        in_a_loop, in_branches, in_a_while_loop, in_a_comprehension, in_a_straight_line, in_nested_loops, in_a_callee,
        of_an_argument,
    ],
)  # fmt: skip
def test_calls_return_what_python_returns(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for size in (5, 100):
        x = np.random.default_rng(size).random(size)
        expected, got = function(x), compiled(x)
        for one, other in zip(np.atleast_1d(expected), np.atleast_1d(got), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        if type(expected) is tuple:
            assert [type(value) for value in expected] == [type(value) for value in got]


def calls_with_side_effects(n: int) -> Any:
    total = 0
    for i in range(n):
        if i % 2:
            total += logged(i, i > 3, i, -i, i / 2)
        else:
            logged(-i, False, 255, 7, 0.5)
        for _ in range(2):
            logged_alone(-i)
    logged_alone(3)
    logged_alone(3)
    return total + logged(2**31 + 5, True, 300, 2**15, n)


def test_calls_run_as_often_and_in_the_order_of_the_program() -> None:
    """Neither shared nor hoisted nor left out where nobody reads the result; integers wrap, as ctypes passes them."""
    compiled = jk.jit(calls_with_side_effects, strict=True)
    for n in (0, 1, 7):
        LOG.clear()
        expected, calls = calls_with_side_effects(n), LOG[:]
        LOG.clear()
        assert compiled(n) == expected
        assert calls == LOG


def of_an_address(x: Any) -> Any:
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = hypot(x[i], i)
    return out


def test_objects_that_python_cannot_call() -> None:
    x = np.random.default_rng(0).random(50)
    compiled = jk.jit(of_an_address, strict=True)
    np.testing.assert_allclose(compiled(x), np.hypot(x, np.arange(50)), rtol=1e-15)
    with pytest.raises(TypeError, match="not callable"):
        jk.jit(of_an_address)(np.ones(3, complex))


def test_ints_beyond_the_type_of_a_parameter_raise_as_in_python() -> None:
    compiled = jk.jit(lambda n: library.abs(n), strict=True)
    assert compiled(-5) == 5
    with pytest.raises(OverflowError):
        compiled(2**40)
    word = jk.jit(lambda n: same_word(n), strict=True)
    assert word(7) == 7
    assert word(-1) == 2**64 - 1


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        (lambda x: library.printf(b"%d", x), 1, "variable number of arguments"),
        (lambda x: library.getenv(x), 1, "type char"),
        (lambda x: LIBM.erf(x), 1.0, "no argtypes"),
        (lambda x: ctypes.pythonapi.Py_IsInitialized(), 1.0, "no argtypes"),
        (lambda x: labs(x), 1.5, "float64 for a parameter of type int64"),
        (lambda x: cbrt(x), np.ones(3), "expected numbers"),
        (lambda x: cbrt(x, x), 1.0, "takes 1 arguments, got 2"),
    ],
)
def test_other_signatures_are_refused(function: Callable[..., Any], argument: Any, reason: str) -> None:
    with pytest.raises(TracingError, match=reason):
        jk.jit(function, strict=True)(argument)


def test_a_bundle_cannot_hold_addresses(tmp_path: Path) -> None:
    x = np.ones(3)
    with pytest.raises(BundleError, match="native function"):
        jk.jit(in_branches).export(tmp_path / "bundle", x)


PROGRAM = """
import ctypes, sys
import numpy as np
import jitkernels as jk
padding = [bytearray(1 << 22) for _ in range(int(sys.argv[1]))]
@ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
def added(x):
    return x + int(sys.argv[1])
@jk.jit(strict=True)
def function(x):
    total = 0.0
    for i in range(len(x)):
        total += added(x[i])
    return total
print(function(np.ones(10)))
"""


def test_stored_code_calls_the_function_of_its_process(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    for number in (1, 2):
        run = subprocess.run([sys.executable, "-P", script, str(number)], capture_output=True, text=True, check=True)
        assert float(run.stdout) == 10 + 10 * number
