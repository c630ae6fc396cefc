"""Parallel loops of the function: which loops qualify, and that results are those of serial ones."""

import _thread
import ctypes
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shared_programs import ALONE, SHARED, blurred, softened

import jitkernels as jk
from jitkernels.benchmarks.scalar_programs import triple_loop
from jitkernels.benchmarks.whole_programs import mandelbrot
from jitkernels.runtime import workspace_allocator
from jitkernels.tools.testing import guarded_workspaces


@pytest.fixture(autouse=True)
def _two_threads() -> Any:
    number = jk.get_num_threads()
    jk.set_num_threads(2)
    yield
    jk.set_num_threads(number)


def leaves(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def is_shared(compiled: Any) -> bool:
    made = [one for kept in compiled._specializations.values() for one in kept]
    return any(".part0" in step.source.text for one in made for step in one.program.steps)


@pytest.mark.parametrize("function", [*SHARED, *ALONE], ids=lambda one: one.__name__)
def test_threads_do_not_change_results(function: Callable[..., Any]) -> None:
    make = {**SHARED, **ALONE}[function]
    given = [one() for one in make]
    expected = function(*given)
    compiled = jk.jit(function)
    bits: set[bytes] = set()
    for threads in (1, 2, 2, 3):
        jk.set_num_threads(threads)
        again = [one() for one in make]
        found = compiled(*again)
        for one, other in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=0 if np.asarray(other).dtype.kind == "i" else 1e-12)
        assert all(np.allclose(one, other, rtol=1e-12) for one, other in zip(again, given, strict=True))
        bits.add(b"".join(np.asarray(one).tobytes() for one in (*leaves(found), *again)))
    assert len(bits) == 1
    assert is_shared(compiled) == (function in SHARED)


def test_loops_without_iterations() -> None:
    compiled = jk.jit(triple_loop)
    for shape in ((0, 3), (1, 3), (3, 0), (2, 3)):
        a, b = np.ones(shape), np.ones(shape[::-1])
        assert np.array_equal(compiled(a, b), a @ b)


def test_errors_are_those_of_the_first_iteration() -> None:
    def looked_up(a: Any, places: Any, out: Any) -> Any:
        for i in range(len(places)):
            for j in range(200):
                out[i] += a[places[i]] / (j + 1)
        return out

    places = np.zeros(3000, np.int64)
    places[[1200, 2900]] = 77, -99
    compiled = jk.jit(looked_up)
    out = np.zeros(3000)
    with pytest.raises(IndexError, match="index 77 is out of bounds"):
        compiled(np.ones(5), places, out)
    assert is_shared(compiled)
    assert np.count_nonzero(out) == 1200
    places[:] = 1
    assert np.allclose(compiled(np.ones(5), places, np.zeros(3000)), sum(1 / (j + 1) for j in range(200)))


def test_interrupts() -> None:
    most = 10**8
    compiled = jk.jit(mandelbrot)
    compiled(np.zeros((60, 50), np.int64), 60)
    assert is_shared(compiled)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(np.zeros((60, 50), np.int64), most)
    timer.join()
    expected = mandelbrot(np.zeros((60, 50), np.int64), 60)
    assert np.array_equal(compiled(np.zeros((60, 50), np.int64), 60), expected)


def test_sums_beyond_64_bits() -> None:
    """Python's ints have no limit, and the order of threads must not matter."""

    def total(a: Any) -> Any:
        s = 0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                s += int(a[i, j])
        return s

    compiled = jk.jit(total)
    a = np.full((300, 300), 2**46)
    for one in (a, -a, np.where(np.arange(300) < 150, a, -a), a * 100, np.where(np.arange(300) < 150, a, -a) * 100):
        assert compiled(one) == sum(map(int, one.ravel()))
    assert is_shared(compiled)


@pytest.mark.parametrize("side", ["start", "end"])
def test_memory_of_iterations_between_guard_pages(side: Any) -> None:
    """No thread writes beyond its pooled memory, and all of that is released."""
    compiled = jk.jit(blurred)
    given = [one() for one in SHARED[blurred]]
    expected = compiled(*given).tobytes()
    with guarded_workspaces(side) as seen:
        assert compiled(*given).tobytes() == expected
    assert seen.pieces >= 2
    jk.jit(blurred).release()


def test_out_of_memory_for_iterations() -> None:
    """The call raises, and the next one is right."""
    compiled = jk.jit(blurred)
    given = [one() for one in SHARED[blurred]]
    expected = compiled(*given).tobytes()
    none = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda _: None)
    workspace_allocator.hook(ctypes.cast(none, ctypes.c_void_p).value or 0, 0)
    try:
        with pytest.raises(jk.WorkspaceError, match="no memory"):
            compiled(*given)
    finally:
        workspace_allocator.hook(0, 0)
    assert compiled(*given).tobytes() == expected


@pytest.mark.parametrize("function", [triple_loop, softened])
def test_concurrent_calls(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    make = SHARED[function]
    expected = compiled(*(one() for one in make)).tobytes()
    wrong: list[Any] = []

    def work() -> None:
        wrong.extend(1 for _ in range(20) if compiled(*(one() for one in make)).tobytes() != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def outer_products(x: Any, w: Any) -> Any:
    """The loops over pairs are parallel, inside of one that is not."""
    n = x.shape[1]
    total = np.zeros((n, n))
    for row in range(x.shape[0]):
        p = math.exp(-w[row])
        for i in range(n):
            for j in range(n):
                total[i, j] += p * x[row, i] * x[row, j]
    return total


def test_inner_loops_that_are_short() -> None:
    """They run in place where the first call has short ones, and are shared where a later call has long ones."""
    compiled = jk.jit(outer_products, strict=True)
    for rows, columns in ((7, 5), (3, 0), (0, 3), (2, 1), (3, 400)):
        x, w = np.random.default_rng(columns).random((rows, columns)), np.linspace(0, 1, rows)
        np.testing.assert_allclose(compiled(x, w), outer_products(x, w), rtol=1e-12)
    assert is_shared(compiled)
