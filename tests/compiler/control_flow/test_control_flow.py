"""Loops and branches in compiled functions: results, types, written arguments and errors are those of plain Python."""
# ruff: noqa: PERF401, B007  # as people write it

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_arrays import ARRAYS, mixed, numbers, rotated, swapped
from control_programs import PROGRAMS, lu
from control_statements import STATEMENTS
from jitted import agree, array, given, notes

import jitkernels as jk
from jitkernels.compiler.capture.rewrite.rewrite_function import rewrite_code
from jitkernels.errors import TracingError

UNROLLED = {"views"}
"""Statements whose loops are so short that they are none."""


def is_whole(compiled: Any) -> bool:
    """Whether loops and branches of a function are the code's, and none is run round by round."""
    made = [one for kept in compiled._specializations.values() for one in kept]
    return bool(made) and all(one.has_flows for one in made) and not notes(compiled)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_programs(function: Callable[..., Any], backend: str) -> None:
    assert is_whole(agree(function, *PROGRAMS[function], backend=backend))


@pytest.mark.parametrize("function", STATEMENTS, ids=lambda one: one.__name__)
def test_statements(function: Callable[..., Any]) -> None:
    compiled = agree(function, *STATEMENTS[function])
    assert is_whole(compiled) or function.__name__ in UNROLLED


@pytest.mark.parametrize("function", ARRAYS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_array_expressions(function: Callable[..., Any], backend: str) -> None:
    assert is_whole(agree(function, *ARRAYS[function], backend=backend))


@pytest.mark.parametrize("steps", [0, 1, 2, 8, 9, 10, 20])
def test_swapped_arrays(steps: int) -> None:
    for function, make in ((swapped, lambda: numbers(7, 6)), (rotated, lambda: numbers(20))):
        agree(function, make, given(steps))


def test_no_fma_contraction_in_control_flow() -> None:
    """A contracted product and sum could decide a branch differently."""

    def orbit(c: float, n: int) -> Any:
        x = 0.1
        for _ in range(n):
            x = c * x * (1.0 - x) + 1e-3 * x
        return x

    assert jk.jit(orbit)(3.77, 900) == orbit(3.77, 900)


# Ints are Python's


@pytest.mark.parametrize("n", [5, 60, 61, 62, 63, 64, 65, 90, 100, 200])
def test_large_ints(n: int) -> None:
    def doubled(n: int) -> Any:
        total, step = 1, 1
        for _ in range(n):
            step = step * 2
            total = total + step
        return total

    def added(n: int) -> Any:
        one, other = 0, 1
        for _ in range(n):
            one, other = other, one + other
        return one

    def negative(n: int) -> Any:
        total = -1
        for _ in range(n):
            total = total * 3 + 1
        return total

    for function in (doubled, added, negative):
        found = jk.jit(function)(n)
        assert found == function(n)
        assert type(found) is int


@pytest.mark.parametrize("rounds", [0, 1, 2, 9])
@pytest.mark.parametrize("step", [-3, -1, 1, 2])
def test_ranges(rounds: int, step: int) -> None:
    def listed(n: int, k: int) -> Any:
        total, last = 0, -1
        for i in range(k, k + n, 2):
            total = total * 3 + i
            last = i
        for i in range(k + n, k, -1):
            total = total * 5 - i
        return total, last

    compiled = jk.jit(listed)
    assert compiled(rounds, step) == listed(rounds, step)
    assert compiled(rounds + 30, step) == listed(rounds + 30, step)


def test_one_specialization_serves_all_sizes() -> None:
    def summed(a: Any) -> Any:
        s = 0.0
        for i in range(len(a)):
            for j in range(i):
                s += a[i] * a[j]
        return s

    compiled = jk.jit(summed)
    for n in range(2, 40):
        assert compiled(array(n)) == pytest.approx(summed(array(n)), rel=1e-14)  # vectors add up in another order
    assert compiled.stats().compiles == 1


def test_arrays_of_all_types() -> None:
    def largest(a: Any) -> Any:
        found = a[0]
        place = 0
        for i in range(1, len(a)):
            if a[i] > found:
                found = a[i]
                place = i
        return found, place

    for dtype in ("bool", "i1", "u1", "i2", "i4", "u4", "i8", "f4", "f8"):
        agree(largest, lambda dtype=dtype: array(20, dtype=dtype))  # type: ignore[misc]


def test_strides() -> None:
    def scanned(a: Any) -> Any:
        for i in range(1, a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] = a[i - 1, j] * 0.5 + a[i, j]

    for view in (lambda a: a[::2, 1:], lambda a: a.T, lambda a: a[::-1, ::-3], lambda a: np.asfortranarray(a)):
        agree(scanned, lambda view=view: view(array(12, 14)))  # type: ignore[misc]


def test_arguments_that_overlap() -> None:
    def shifted(a: Any, b: Any) -> None:
        for i in range(len(b)):
            a[i] = b[i] + 1

    compiled = jk.jit(shifted)
    one, other = array(20), array(20)
    compiled(one[1:], one[:-1])
    shifted(other[1:], other[:-1])
    assert np.array_equal(one, other)


def test_overwritten_values_with_later_uses_are_copied() -> None:
    def twice(a: Any) -> Any:
        before = a.copy()
        first = a * 2
        for i in range(1, len(a)):
            a[i] += a[i - 1]
        middle = a + before
        for i in range(1, len(a)):
            a[i] -= a[i - 1] * 0.5
        return first, middle, before, a * 3

    agree(twice, lambda: array(30))


def test_helpers_and_closures() -> None:
    limit = np.array([0.5, 1.5])

    def clipped(x: Any) -> Any:
        if x > limit[1]:
            return limit[1]
        if x < limit[0]:
            return limit[0]
        return x

    def summed(a: Any) -> Any:
        s = 0.0
        for i in range(len(a)):
            s += clipped(a[i])
        return s

    compiled = jk.jit(summed)
    assert compiled(array(20)) == summed(array(20))
    limit[1] = 0.75
    assert compiled(array(20)) == summed(array(20))
    assert is_whole(compiled)


# What cannot be compiled


def test_lists_that_grow() -> None:
    def collected(a: Any) -> Any:
        found = []
        for i in range(len(a)):
            found.append(a[i] * 2)
        return found

    def counted(a: Any) -> Any:
        found = []
        for i in range(len(a)):
            found.append(1)
        return len(found)

    agree(collected, lambda: array(12))
    agree(counted, lambda: array(12))


def test_reasons_are_reported() -> None:
    def first_of_rows(a: Any) -> Any:
        total = 0.0
        for i in range(a.shape[0]):
            total += np.extract(a[i], a[i])[0]
        return total

    compiled = jk.jit(first_of_rows)
    explanation = str(compiled.explain(np.ones((10_000, 3))))
    assert "falls back to NumPy" in explanation
    assert f"{__file__}:" in explanation


def test_branches_of_different_result_types_are_rejected() -> None:
    def chosen(x: Any) -> Any:
        if x.sum() > 0:
            return x
        return -x

    def cut(x: Any) -> Any:
        if x.sum() > 0:
            return x[1:] * 2
        return -x

    def compared(x: Any) -> Any:
        if x.sum() > 0:
            return x > 1
        return -x

    def either(x: Any) -> Any:
        if x.sum() > 0:
            return [x * 2, 1]
        return [x, 1, 2]

    agree(chosen, lambda: array(3), plain=True)  # which may be the argument itself
    for function, message in (
        (cut, "the result is an array of dtype float64 and shape (2) on one side of a branch and an array of"),
        (compared, "the result is an array of dtype bool and shape (3) on one side"),
        (either, "the result is a list on one side of a branch and is a list on the other"),
    ):
        with pytest.raises(TracingError, match=re.escape(message)) as caught:
            jk.jit(function, strict=True)(array(3))
        assert f"{__file__}:" in str(caught.value)


def test_other_threads_run_during_long_loops() -> None:
    def collatz(n: int) -> Any:
        most = 0
        for i in range(1, n):
            k, steps = i, 0
            while k != 1:
                k = k // 2 if k % 2 == 0 else 3 * k + 1
                steps += 1
            most = max(most, steps)
        return most

    compiled = jk.jit(collatz)
    assert compiled(300) == collatz(300)
    compiled(300)
    turns: list[float] = []
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.002):
            turns.append(time.perf_counter())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    compiled(1_500_000)
    ended = time.perf_counter()
    is_done.set()
    watcher.join()
    assert ended - began > 0.05
    assert sum(began < turn < ended for turn in turns) > 3


@pytest.mark.parametrize("function", [mixed, swapped, lu], ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "config", [{"opt_level": 0}, {"opt_level": -3}, {"profile": True}, {"fast_math": True}], ids=str
)
def test_configs(function: Callable[..., Any], config: dict[str, Any]) -> None:
    made = {**PROGRAMS, **ARRAYS}[function]
    compiled = agree(function, *made, **config)
    assert is_whole(compiled)
    explanation = str(compiled.explain(*(one() for one in made)))
    assert " loop: " in explanation
    assert "<svg" in str(compiled.graph(*(one() for one in made)))
    assert compiled.stats().kernels


def test_source_files_changed_after_import(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    text = "def counted(n):\n    total = 0\n    for i in range(n):\n        total += STEP * i\n    return total\n"
    file.write_text(text.replace("STEP", "1"))
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert rewrite_code(names["counted"].__code__)
    assert jk.jit(names["counted"])(20) == 190
    file.write_text(text.replace("STEP", "2"))
    again: dict[str, Any] = {}
    exec(compile(text.replace("STEP", "3"), str(file), "exec"), again)
    assert rewrite_code(again["counted"].__code__) is None
    assert jk.jit(again["counted"])(20) == 570


def met(a: Any, i: Any, k: Any, begin: Any, end: Any) -> Any:
    """Each round reads an element that one of the rounds may write to."""
    for j in range(begin, end):
        a[i, j] = 0.5 * a[i, j] + a[i, k] - a[k, j]
    return a


def met_behind(a: Any, i: Any, k: Any, begin: Any, end: Any) -> Any:
    """Behind the write, in the same round; and an element of another row, which is none of these."""
    for j in range(begin, end):
        a[i, j] = 0.5 * a[i, j] + 1.0
        a[i, j] = a[i, k] * a[i, j] + a[0, k]
    return a


def met_across(a: Any, i: Any, k: Any, begin: Any, end: Any) -> Any:
    for j in range(begin, end):
        a[j, i] += a[k, i] * a[k, k]
        a[j, k] -= a[k, k]
    return a


def met_nowhere(a: Any, i: Any, k: Any, begin: Any, end: Any) -> Any:
    """Nothing is read where there are no rounds."""
    total = 0.0
    for j in range(begin, end):
        a[i, j] = total + a[i, k]
        total = total + a[i, j]
    return a


@pytest.mark.parametrize("function", [met, met_behind, met_across, met_nowhere])
def test_elements_written_in_one_iteration(function: Any) -> None:
    """In any iteration or none: the others are vectorized."""
    compiled = jk.jit(function)
    for i, k, begin, end in (
        (2, 5, 0, 30), (2, 0, 0, 30), (2, 29, 0, 30), (2, 5, 6, 30), (2, 5, 5, 6), (2, 20, 3, 11), (4, 4, 0, 30),
        (2, 5, 9, 9), (2, 5, 9, 2), (0, 3, 2, 29), (29, 28, 7, 30), (3, 2, 2, 30),
    ):  # fmt: skip
        given = np.random.default_rng(0).random((30, 30))
        found = compiled(given.copy(), i, k, begin, end)
        np.testing.assert_allclose(found, function(given.copy(), i, k, begin, end), rtol=1e-12)
    assert "loop" in str(compiled.explain(given, 2, 5, 0, 30))
