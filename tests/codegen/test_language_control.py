"""Control flow of the kernel language: the same functions run translated and as Python."""

import itertools
import types
from random import Random
from typing import Any

import numpy as np
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translated import built, same, written

from jitkernels.codegen import llvm_backend
from jitkernels.codegen.module_link import parsed
from jitkernels.codegen.python.kernel_module import KernelModule
from jitkernels.codegen.source_protocol import inlined, noinline, offset, vectors


@inlined()
def divided(a: Any, b: Any) -> Any:
    if b == 0:
        return 0, 0
    return a // b, a % b


@inlined()
def twice(a: Any) -> Any:
    return a + a


@inlined()
def marks(out: Any, i: int) -> Any:
    out[i] += 1
    return i


def branches(out: Any, a: Any, b: Any) -> Any:
    if a < 0:
        out[0] = 1
    elif a == 0:
        out[0] = 2
    elif a > 5 and b > 5 or b == 1:
        out[0] = 3
    else:
        out[0] = 4
    return 1 if a else 2 if b else 3


def loops_with_limits(out: Any, a: Any, b: Any) -> Any:
    for i in range(3):
        out[0] = 10 * out[0] + i
    for i in range(a, b):
        out[1] = 10 * out[1] + i
        i = i * 7
        out[2] += i
    for i in range(b, a, -2):
        out[3] = 10 * out[3] + i
    last = -1
    for last in range(a):
        out[4] += last
    return last


def running_steps(out: Any, a: Any, b: Any) -> Any:
    for i in range(0, a, b):
        out[0] = 10 * out[0] + i
    for i in range(a, 0, -b):
        out[1] = 10 * out[1] + i
    step, end = b, a
    for i in range(0, end, step):
        step, end = 1, 0
        out[2] += i
    return 0


def breaking(out: Any, a: Any, b: Any) -> Any:
    i = 0
    while True:
        i += 1
        if i % 2:
            continue
        for j in range(10):
            if j == a:
                break
            if j == b:
                continue
            if i > 6:
                return 100 * i + j
            out[0] += i * j
        else_ = j
        out[1] += else_
        if i > 12:
            break
    return i


def lazy(out: Any, a: Any, b: Any) -> Any:
    x = a > 0 and marks(out, 0) == 0 and b > 0 or marks(out, 1) == 7
    y = marks(out, a % 8) < marks(out, b % 8) < marks(out, 2) < marks(out, 3)
    if not (a and not b) and (x or y):
        out[4] = 5
    z = (marks(out, 5) if a > b else marks(out, 6)) and b
    return z or a


def tuples(out: Any, a: Any, b: Any) -> Any:
    a, b = b, a
    out[0], out[1] = a, b
    out[0], out[1] = out[1], out[0]
    quotient, rest = divided(a, b)
    low, high = (a, b) if a < b else (b, a)
    i, out[abs(b) % 8] = 3, i_of(quotient)
    return 1000 * quotient + 100 * rest + 10 * low + high + i


@inlined()
def i_of(x: Any) -> Any:
    return twice(x) if WIDE else twice(np.float64(x))


@inlined()
def only_odd(a: Any) -> Any:
    if a % 2:
        return a
    return 0


view = "a name that is an attribute elsewhere"
WIDE, SIZE, SCALE, YES = True, 4, np.float32(0.1), np.bool_(True)


def decided(out: Any, a: Any, b: Any) -> Any:
    if WIDE or a.no_such_thing:
        out[0] = SIZE if SIZE > 3 else a.no_such_thing
    if not WIDE and a:
        a = 0.5
    while 0 < SIZE < 3:
        a = "text"
    out[1] = int(np.float64(SCALE) * 1e9)
    out[2] = np.float64(SCALE).view(np.int64) >> 32
    return only_odd(a) + bool(YES)


def pointers(out: Any, a: Any, b: Any) -> Any:
    part = offset(out, 3) if a > 0 else out
    part[0], part[1] = a, b
    other = offset(part, True)
    other[0] -= 1
    part = other
    return part[0]


def whole_vectors(out: Any, a: Any, b: Any) -> Any:
    for i in vectors(a, b, 4):
        out[i & 15] += 10 * i
        if i == 1:
            continue
        out[i & 15] += 1
    for i in vectors(b, a, 0):
        out[i & 15] += i
    return 0


@noinline()
def cold_step(out: Any, a: Any) -> Any:
    for i in range(a, a + 3):
        out[i & 15] += i
    return a + 1, a * 2


def out_of_line(out: Any, a: Any, b: Any) -> Any:
    if a == b:
        return 7
    one, two = cold_step(out, a)
    return one + 10 * two


def names(out: Any, a: Any, b: Any) -> Any:
    größe, v1, result, kept1, exit, l1 = a, b, 3, 4, 5, 6  # noqa: A001
    """
a text at the margin
"""
    for größe in range(größe):  # noqa: B020
        v1 += größe * exit + l1
    annotated: int = v1
    return annotated + result * kept1


CONTROL_FLOW = (
    branches, loops_with_limits, running_steps, breaking, lazy, tuples, decided, pointers, whole_vectors,
    out_of_line, names,
)  # fmt: skip


def moved(pointer: Any, elements: int) -> Any:
    return pointer[elements:]


def numbers(begin: int, end: int, lanes: int) -> range:
    return range(begin, end)


def steps(*limits: int) -> range:
    """`range`, which has no steps where Python refuses a step of 0."""
    return range(*limits) if len(limits) < 3 or limits[2] else range(0)


AS_PYTHON = {"offset": moved, "range": steps, "vectors": numbers}


def test_control_flow() -> None:
    compiled = built("control_flow", {f.__name__: (f, ("int64*", "int64", "int64")) for f in CONTROL_FLOW})
    for function in CONTROL_FLOW:
        plain = types.FunctionType(function.__code__, {**globals(), **AS_PYTHON})
        for a, b in itertools.product((-9, -1, 0, 1, 2, 6, 7), repeat=2):
            out, expected = np.zeros(16, np.int64), np.zeros(16, np.int64)
            wanted = plain(expected, a, b)
            assert compiled[function.__name__](out.ctypes.data, a, b) == wanted, (function, a, b)
            assert out.tolist() == expected.tolist(), (function, a, b)


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    check_random_program(tmp_path_factory, random)


@pytest.mark.full
@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False))
def test_many_random_programs(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    check_random_program(tmp_path_factory, random)


def check_random_program(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    text = programs.grown(random)
    names = written(tmp_path_factory.mktemp("random") / "program.py", text)
    compiled = built("random", {"program": (names["program"], ("int64*", "float64*", "int64", "int64"))})
    names["range"] = steps
    for a, b in ((0, 0), (3, -2), (-7, 10)):
        out, expected = np.zeros(16, np.int64), [0] * 16
        floats, wanted = np.zeros(2), [0.0, 0.0]
        plain = names["program"](expected, wanted, a, b)
        assert compiled["program"](out.ctypes.data, floats.ctypes.data, a, b) == plain, text
        assert out.tolist() == expected, text
        assert same(floats, np.array(wanted)).all(), text


def some_branches(out: Any, a: Any, b: Any) -> Any:
    for i in range(a):
        c = i
        x = 0.5
    if b > 0:
        out[0] = int(x * 4)
    return c


def test_unset_variables_are_zero() -> None:
    """So is the result of a function that ends without ``return``; Python would raise, or return None."""
    found = built("zero", {"f": (some_branches, ("int64*", "int64", "int64"))})["f"]
    out = np.full(1, 9)
    assert found(out.ctypes.data, 0, 1) == 0
    assert out[0] == 0
    assert found(out.ctypes.data, 3, 1) == 2
    assert out[0] == 2


def row_of(x: Any, row: int, n: int) -> None:
    for i in range(row * n, row * n + n):
        x[i] = x[i] * 2


def copied(x: Any, y: Any, n: int) -> None:
    for i in range(n):
        y[i] = x[i]


def test_optimized_ir() -> None:
    """Cold functions stay outlined; trip counts are known; copies of a few elements are no calls."""
    program = KernelModule("made")
    program.export("entry", out_of_line, ("int64*", "int64", "int64"), ())
    program.export("row_of", row_of, ("float32* restrict", "int64", "int64"), ())
    program.export("copied", copied, ("float32* restrict", "float32* restrict", "int64"), ())
    module = parsed("made", program.text)
    llvm_backend.optimize(module, llvm_backend.target_machine(64))
    kept = str(module)
    assert "cold_step" in kept
    assert "smax" not in kept
    assert "@llvm.memcpy" not in kept
    assert "@llvm.memmove" not in kept
