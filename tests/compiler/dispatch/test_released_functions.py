"""Released compiled functions leave no bytecode, syntax trees or machine code behind."""

import gc
import os
import subprocess
import sys
import types
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jitkernels.core import cpu_target
from jitkernels.core.cached_property import cached_per_code

PROGRAM = """
import gc, linecache, os, sys, threading, tracemalloc, warnings
import numpy as np, jitkernels as jk
from jitkernels.runtime.loading import loader as load
warnings.simplefilter("ignore")
threads, count, rounds, first, leaks = map(int, sys.argv[1:])
LEAKED = []
BODIES = {
    "loop": "a = x * {0}.5 + y\\n    for k in range(len(x)):\\n        a = a + x[k] * y\\n    return a / (1 + a * a)",
    "branch": "if x[0] > {0}:\\n        return x * 2\\n    return np.exp(x) * {0}.25",
    "expression": "return np.tanh(x * {0}.5) + np.log(np.zeros(3)).sum()",
    "inner": "g = lambda z: z * {0}.5\\n    return g(x) + np.maximum(y, {0})",
    "fallback": "print(end='')\\n    return x + {0}",
}
def one(number, is_compiled):
    x = np.arange(10.0)
    for name, body in BODIES.items():
        text = "def function(x, y):\\n    " + body.format(number) + "\\n"
        file = f"<{name} {number}>"
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        names = {"np": np}
        exec(compile(text, file, "exec"), names)
        function = jk.jit(names["function"]) if is_compiled else names["function"]
        for _ in range(3):
            function(x, x)
        if leaks:
            LEAKED.append(names["function"].__code__)
        del linecache.cache[file]
def some(begin, end, is_compiled):
    work = lambda first: [one(number, is_compiled) for number in range(begin + first, end, threads)]
    started = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    gc.collect()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
def added(begin, end, is_compiled=True):
    before = resident(), len(gc.get_objects()), len(load._held), tracemalloc.get_traced_memory()[0]
    some(begin, end, is_compiled)
    after = resident(), len(gc.get_objects()), len(load._held), tracemalloc.get_traced_memory()[0]
    return [(b - a) / (end - begin) / len(BODIES) for a, b in zip(before, after)]
def measure(begin):  # some functions first, so that bounded caches hold what belongs to this measurement
    some(begin, begin + first, True)
    begin += first
    for _ in range(rounds):
        print(*added(begin, begin + count))
        begin += count
    return begin
end = measure(0)
if threads == 1:
    print()
    tracemalloc.start()
    measure(end)
"""


class Footprint(NamedTuple):
    """Memory that a dropped function still holds: bytes of the process, objects, loaded codes, and traced bytes."""

    resident: float
    objects: float
    codes: float
    traced: float


def footprint(
    cache: Path, threads: int, count: int, rounds: int = 2, first: int = 15, *, leaks: bool = False
) -> list[Footprint]:
    """Measure the footprint of one of `count` dropped functions, the least of some rounds; then with tracemalloc.

    A leak shows in every round. Caches that grow once, and other processes, which take memory away, show in some.
    """
    environment = {**os.environ, "JITKERNELS_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, (threads, count, rounds, first, int(leaks)))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    parts = [[map(float, line.split()) for line in part.splitlines()] for part in done.stdout.strip().split("\n\n")]
    return [Footprint(*map(min, zip(*rounds_of_part, strict=True))) for rounds_of_part in parts]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
@pytest.mark.parametrize(("threads", "count"), [(1, 10), (4, 12)])
def test_dropped_functions_free_their_memory(threads: int, count: int, tmp_path: Path) -> None:
    first, *traced = footprint(tmp_path, threads, count)
    assert first.resident < 30_000  # of 100 kB and more when LLVM's pipelines stayed
    for found in (first, *traced):
        assert found.objects < 1
        assert found.codes < 0.1
    for found in traced:
        assert found.traced < 3_000  # of 13 kB and more when bytecode and syntax stayed


@pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
def test_a_planted_leak_is_caught(tmp_path: Path) -> None:
    """Of the code objects of functions, with the analyses cached for them."""
    first, traced = footprint(tmp_path, 1, 6, rounds=1, first=2, leaks=True)
    assert first.objects > 1
    assert traced.objects > 1
    assert traced.traced > 3_000


def code_of(text: str) -> types.CodeType:
    names: dict[str, Any] = {}
    exec(text, names)
    code: types.CodeType = names["function"].__code__
    return code


def test_caches_per_code_object_end_with_it() -> None:
    computed: list[str] = []

    @cached_per_code
    def name_of(code: types.CodeType) -> str:
        computed.append(code.co_name)
        return code.co_name

    code, equal = code_of("def function(): return 1"), code_of("def function(): return 1")
    assert code == equal
    assert [name_of(one) for one in (code, code, equal, equal)] == ["function"] * 4
    assert len(computed) == 2  # by identity: equal code may be in two files
    entries = name_of.entries  # type: ignore[attr-defined]
    dead = weakref.ref(code)
    del code
    gc.collect()
    assert dead() is None
    assert len(entries) == 1
    assert name_of(equal) == "function"
    assert len(computed) == 2
