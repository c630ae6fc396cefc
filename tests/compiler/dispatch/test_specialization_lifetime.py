"""Code is released once nobody can call it, and functions may have many specializations."""

import gc
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from jitted import array, same
from processes import python

import jitkernels as jk
from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.compiler.ir.dim_bounds import scale_and_offset
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.ir.symbolic_dims import same as same_extent
from jitkernels.runtime.loading import code_memory, loader

x = array(50_000)


def used() -> int:
    """Pages that hold code."""
    gc.collect()
    free = sum(size * len(found) for size, found in code_memory._free.items())
    mapped = sum(map(len, code_memory._mappings))
    return (mapped - free - sum(end - begin for begin, end in code_memory._new)) // mmap.PAGESIZE


def fused() -> set[str]:
    """Symbols of the code of compiled functions that there is."""
    return held("jk_fused_")


def held(start: str) -> set[str]:
    gc.collect()
    return {symbol for symbol in loader._held if symbol.startswith(start)}


def another(number: int, **config: Any) -> Any:
    """A function of its own, with code of its own."""
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(x): return x * {number}.5 + np.abs(x - {number})", scope)
    return jk.jit(scope["f"], **config)


@pytest.mark.parametrize("config", [{}, {"profile": True}, {"cache": False}])
def test_code_is_freed_with_its_function(config: dict[str, Any]) -> None:
    another(99, **config)(x)  # for what all functions share
    before, pages_before = fused(), used()
    for number in range(6):
        function = another(number, **config)
        same(function(x), function.__wrapped__(x))
        assert len(fused() - before) == 1
        assert used() > pages_before
    assert used() - pages_before <= 8
    del function
    assert fused() == before
    assert used() == pages_before


def test_equal_signatures_share_an_entry() -> None:
    """Whatever the functions compute. It is freed with the last of them."""
    before = held("jk_call_")
    functions = [another(number) for number in range(3)]
    for function in functions:
        same(function(x), function.__wrapped__(x))
    functions.append(jk.jit(lambda x: np.exp(x) * 3 + 2 * np.sin(x)))
    same(functions[-1](x), np.exp(x) * 3 + 2 * np.sin(x))
    made = held("jk_call_") - before
    assert len(made) == 1
    del functions[1:], function
    assert held("jk_call_") - before == made
    same(functions[0](x), x * 0.5 + np.abs(x))
    del functions
    assert held("jk_call_") == before


def test_long_calls_are_recognized_by_their_work() -> None:
    """The limit is in units of work, of which an element takes as many as its expression."""
    found = []
    functions: tuple[Any, ...] = (lambda x: x + 1, lambda x: np.exp(np.sin(x)))
    for function in functions:
        compiled: Any = jk.jit(function)
        same(compiled(x), function(x))
        (link,) = compiled._links.entered
        found.append(int(link.context[-2]))
    assert found[0] > 3 * found[1] > 3 * 1000


def test_extents_split_into_scale_and_offset() -> None:
    n = Scope().symbol("n", 5)
    for extent, expected in ((6 * n * n + 4 * n + 7, (2, 3 * n * n + 2 * n, 7)), (n, (1, n, 0)), (5, (1, 0, 5))):
        times, rest, more = scale_and_offset(extent)
        assert (times, more) == (expected[0], expected[2])
        assert same_extent(rest, expected[1])


def test_equal_texts_share_code() -> None:
    before = fused()
    first, second = another(3), another(3)
    first(x), second(x)
    assert len(fused() - before) == 1
    del first
    same(second(x), x * 3.5 + np.abs(x - 3))
    assert len(fused() - before) == 1


def test_released_code_is_freed() -> None:
    before = fused()
    function = another(5)
    for _ in range(3):
        same(function(x), function.__wrapped__(x))
        assert len(fused() - before) == 1
        function.release()
        assert fused() == before


def slow(x: Any, y: Any) -> Any:
    return np.exp(-np.abs(x[:, None] - y)).sum(axis=1)


LARGE = array(25_000)


@pytest.fixture
def busy() -> Iterator[Callable[[Any, Callable[[], None]], Any]]:
    """Run a callback while a thread executes the code of a function, and return that call's result."""

    def during(function: Any, act: Callable[[], None]) -> Any:
        found: list[Any] = []
        holder = [function]
        entered = threading.Event()

        def run() -> None:
            called = holder.pop()
            entered.set()
            found.append(called(LARGE, LARGE))

        thread = threading.Thread(target=run)
        thread.start()
        entered.wait()
        time.sleep(0.02)
        assert not found, "the call is over too soon to show anything"
        act()
        thread.join()
        return found[0]

    jk.set_num_threads(1)
    yield during
    jk.set_num_threads(len(os.sched_getaffinity(0)))


def many() -> None:
    """Other code, which takes the pages of what went."""
    gc.collect()
    for number in range(60, 64):
        another(number)(x)


def compiled() -> Any:
    made = jk.jit(slow)
    same(made(LARGE[:900], LARGE), slow(LARGE[:900], LARGE))
    return made


def test_running_code_is_not_freed(busy: Any) -> None:
    """Although its function is released, however often."""
    function = compiled()
    right = function(LARGE, LARGE)

    def release() -> None:
        for _ in range(2):
            function.release()
            same(function(LARGE[:9], LARGE[:9]), slow(LARGE[:9], LARGE[:9]))
            many()

    same(busy(function, release), right)


def test_released_links_are_not_entered_again(busy: Any) -> None:
    """A call of a later link would move it to the front."""
    before = fused()
    function = compiled()
    right = function(LARGE, LARGE)
    function(LARGE.astype("f4")[:9], LARGE[:9])

    def release() -> None:
        function.release()
        function(LARGE.astype("f4")[:9], LARGE[:9])
        many()

    same(busy(function, release), right)
    (link,) = function._links.entered
    assert function._links._table[1] == link.link.ctypes.data
    assert link.link[0] == 0
    del link
    function.release()
    assert fused() == before


def test_code_outlives_its_function_during_a_call(busy: Any) -> None:
    before = fused()
    right = compiled()(LARGE, LARGE)
    same(busy(compiled(), many), right)
    assert fused() == before


def test_evicted_links_are_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_chain, "MAX_LINKS", 3)
    function = jk.jit(lambda x, k: x * k + 1, static_argnames="k")
    before = fused()
    for _ in range(2):
        for k in range(2, 9):
            same(function(x, k), x * k + 1)
            assert len(function._links.entered) <= 3
            assert len(fused() - before) <= 3


FORK = """
import os, gc
import numpy as np
import jitkernels as jk
def another(number):
    scope = {"np": np}
    exec(f"def f(x): return x * {number}.5 + np.abs(x - {number})", scope)
    return jk.jit(scope["f"])
x = np.arange(50_000.0)
kept, gone = another(1), another(2)
kept(x), gone(x)
child = os.fork()
del gone
gc.collect()
for number in range(3, 9) if child else range(20, 30):
    assert (another(number)(x) == x * (number + .5) + np.abs(x - number)).all()
    assert (kept(x) == x * 1.5 + np.abs(x - 1)).all()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("both")
"""


def test_forked_children_have_code_pages_of_their_own() -> None:
    assert python(FORK) == "both\n"


LLVM = """
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import mcjit_loader as linker, loader as load
load.load_object = lambda *arguments: None
x = np.arange(50_000.0)
for number in range(3):
    function = jk.jit(lambda x: x * 2 + number)
    assert (function(x) == x * 2 + number).all()
assert abs(jk.vexp(x[:3]) - np.exp(x[:3])).max() < 1e-14
print(len(linker._engines), set(load._held) == set(load._loaded))
"""


def test_llvms_loader_serves_other_objects() -> None:
    """As on processors other than x86: such code is not freed."""
    assert python(LLVM) == "1 True\n"


TEN_THOUSAND = """
import gc, time
import numpy as np
import jitkernels as jk
def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
def seconds(call, *arguments):
    found = []
    for _ in range(200):
        began = time.perf_counter()
        for _ in range(50):
            call(*arguments)
        found.append((time.perf_counter() - began) / 50)
    return min(found)
x = np.ones(64)
function = jk.jit(lambda x, k: x * k, static_argnames="k", cache=False)
function(x, 0.5)
alone, sizes, last = seconds(function, x, 0.5), [], []
for number in range(10_000):
    began = time.process_time()
    assert function(x, number + 2.5)[0] == number + 2.5
    last.append(time.process_time() - began)
    if number % 1000 == 999:
        sizes.append(resident())
with open("/proc/self/maps") as file:
    maps = len(file.readlines())
print(sizes[4] / 1024, sizes[-1] / 1024, alone * 1e9, seconds(function, x, 0.5) * 1e9, maps)
print(np.median(last[:500]) * 1e3, np.median(last[-500:]) * 1e3)
"""


@pytest.mark.full
def test_ten_thousand_specializations() -> None:
    """Memory stops growing, and neither old nor new calls get slower."""
    sizes, compiles = python(TEN_THOUSAND, timeout=1500).splitlines()
    half, whole, alone, after, maps = map(float, sizes.split())
    assert whole - half < 35  # MB: 7 KiB each
    assert whole < 300
    assert after < alone * 1.5 + 20
    assert maps < 1000
    first, last = map(float, compiles.split())
    assert last < 2 * first
