"""Loops whose rounds threads share: which they are, and that nobody can tell but by the time it takes."""
# as people write it

import _thread
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmark.scalar_programs import triple_loop
from jitkernels.benchmark.whole_programs import mandelbrot


def bodies(x: Any, v: Any, steps: Any) -> Any:
    n = x.shape[0]
    for _ in range(steps):
        for i in range(n):
            fx = fy = 0.0
            for j in range(n):
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                pull = 1.0 / (dx * dx + dy * dy + 0.01)
                fx, fy = fx + pull * dx, fy + pull * dy
            v[i, 0] += 0.01 * fx
            v[i, 1] += 0.01 * fy
        for i in range(n):
            for k in range(2):
                x[i, k] += 0.01 * v[i, k]
    return x


def backwards(a: Any, out: Any) -> Any:
    n = a.shape[0]
    for i in range(1, n):
        best = a[i, 0]
        for j in range(a.shape[1]):
            if a[i, j] > best:
                best = a[i, j]
        out[n - 1 - i, 0] = best
        for j in range(1, out.shape[1]):
            out[n - 1 - i, j] = out[n - 1 - i, j - 1] + best
    return out


def sorted_rows(a: Any) -> Any:
    for row in range(a.shape[0]):
        for i in range(1, a.shape[1]):
            x = a[row, i]
            j = i - 1
            while j >= 0 and a[row, j] > x:
                a[row, j + 1] = a[row, j]
                j -= 1
            a[row, j + 1] = x
    return a


def picked(a: Any, places: Any, out: Any) -> Any:
    for i in range(len(places)):
        s = 0.0
        for j in range(len(places)):
            s += a[places[i]] * a[j]
        out[i] = s
    return out


def before(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += a[i - 1, j] * 0.5
    return a


def across(a: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i] + 1
    return a


def counted(x: Any, counts: Any) -> Any:
    for i in range(len(x)):
        for j in range(len(counts)):
            if x[i] == j:
                counts[j] += 1
    return counts


def summed(a: Any) -> Any:
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = s * 0.5 + a[i, j]
            a[i, j] = 0
    return s


def until(a: Any, limit: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 2
        if a[i, 0] > limit:
            break
    return a


def overlapping(a: Any) -> Any:
    for i in range(a.shape[0] - 1):
        for j in range(a.shape[1]):
            a[i, j] = j
            a[i + 1, j] = -j
    return a


def scattered(a: Any, places: Any) -> Any:
    for i in range(len(places)):
        for j in range(a.shape[1]):
            a[places[i], j] = i
    return a


def doubled(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(a.shape[1]):
                b[i, j] = a[i - 1, j] + a[i + 1, j]
        for i in range(1, a.shape[0] - 1):
            for j in range(a.shape[1]):
                a[i, j] = b[i, j] * 0.5
    return a


def random(*shape: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(1).random(shape)


def integers(n: int, most: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(1).integers(0, most, n)


SHARED: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    mandelbrot: (lambda: np.zeros((60, 50), np.int64), lambda: 60),
    bodies: (random(90, 2), random(90, 2), lambda: 3),
    triple_loop: (random(70, 60), random(60, 50)),
    backwards: (random(300, 300), random(300, 40)),
    sorted_rows: (random(200, 30),),
    picked: (random(400), integers(400, 400), random(400)),
    doubled: (random(150, 200), random(150, 200), lambda: 3),
}
ALONE: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    before: (random(300, 300),),
    across: (random(300, 300),),
    counted: (integers(3000, 40), lambda: np.zeros(40, np.int64)),
    summed: (random(300, 300),),
    until: (random(300, 300), lambda: 1.99),
    overlapping: (random(300, 300),),
    scattered: (random(300, 300), integers(300, 300)),
}


@pytest.fixture(autouse=True)
def _two_threads() -> Any:
    number = jk.get_num_threads()
    jk.set_num_threads(2)
    yield
    jk.set_num_threads(number)


def is_shared(compiled: Any) -> bool:
    made = [one for kept in compiled._specialisations.values() for one in kept]
    return any(".part0" in step.source.text for one in made for step in one.program.steps)


@pytest.mark.parametrize("function", [*SHARED, *ALONE], ids=lambda one: one.__name__)
def test_threads_change_nothing(function: Callable[..., Any]) -> None:
    make = {**SHARED, **ALONE}[function]
    given = [one() for one in make]
    expected = function(*given)
    compiled = jk.jit(function)
    for threads in (1, 2, 2):
        jk.set_num_threads(threads)
        again = [one() for one in make]
        assert np.asarray(compiled(*again)).tobytes() == np.asarray(expected).tobytes()
        assert all(np.array_equal(one, other) for one, other in zip(again, given, strict=True))
    assert is_shared(compiled) == (function in SHARED)


def test_loops_without_rounds() -> None:
    compiled = jk.jit(triple_loop)
    for shape in ((0, 3), (1, 3), (3, 0), (2, 3)):
        a, b = np.ones(shape), np.ones(shape[::-1])
        assert np.array_equal(compiled(a, b), a @ b)


def test_errors_are_those_of_the_first_round() -> None:
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


@pytest.mark.parametrize("most", [10**9])
def test_interrupts(most: int) -> None:
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


def test_several_threads_at_once() -> None:
    compiled = jk.jit(triple_loop)
    a, b = random(70, 60)(), random(60, 50)()
    expected = compiled(a, b).tobytes()
    wrong: list[Any] = []

    def work() -> None:
        wrong.extend(1 for _ in range(30) if compiled(a, b).tobytes() != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
