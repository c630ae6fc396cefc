"""Threads: how many, what decides it, and that forks and concurrent callers are safe."""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import ArgumentError, ArgumentTypeError
from jitkernels.runtime.loading import loader
from jitkernels.runtime.threads import team_size
from jitkernels.tools import testing

PARALLEL = """
import os, signal, sys
import jitkernels as jk, numpy as np
from jitkernels.tools import testing
from jitkernels.dispatch.kernel import Kernel
from jitkernels.runtime.threads import team_size as openmp
from jitkernels.attrs.schema.registry import all_schemas, implementations

signal.alarm(100)

def kernels(limit=2):
    "Parallel kernels of generated implementations, with an attr each that is large enough."
    for row in all_schemas():
        found = implementations(row).get("gen")
        if found is None:
            continue
        attrs = sorted((case.attr for case in row.sweep()), key=lambda attr: attr.operations())
        for attr in attrs:
            variants = [v for v in found.variants(attr) if v.get("parallel")] if 1e6 < attr.operations() < 1e8 else []
            if variants:
                yield attr, Kernel(attr, found, variants[0]).callable
                limit -= 1
                break
        if limit == 0:
            return

def tasks():
    return len(os.listdir("/proc/self/task"))
"""
needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
needs_openmp = pytest.mark.skipif(team_size.runtime()[0] is None, reason=team_size.runtime()[1])
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def team(wanted: int) -> int:
    """How many threads a loop nest would get now that has work for so many."""
    address = team_size._addresses()["jk_team"]
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(wanted))


def test_number_of_threads(restored_threads: int) -> None:
    for number in (np.int64(3), np.uint8(4), 1, 2, 7):
        jk.set_num_threads(number)  # type: ignore[arg-type]
        assert jk.get_num_threads() == number
        assert type(jk.get_num_threads()) is int
        assert team(1) == 1
        assert team(0) == 1
        assert team(1000) <= number
    for wrong in (1.5, "2", None, True, np.float64(2), np.bool_(True)):
        with pytest.raises(ArgumentTypeError, match="threads: expected an int"):
            jk.set_num_threads(wrong)  # type: ignore[arg-type]
    for few in (0, -1):
        with pytest.raises(ArgumentError, match="at least 1"):
            jk.set_num_threads(few)
    assert jk.get_num_threads() == 7


@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("0", None), ("-1", None), ("many", None), ("", None)])
def test_number_from_the_environment(text: str, expected: int | None) -> None:
    printed = python("import jitkernels as jk\nprint(jk.get_num_threads())", JITKERNELS_NUM_THREADS=text)
    from jitkernels.core import cpu_target

    assert int(printed) == (expected or cpu_target.cpu_count())


@needs_openmp
@needs_proc
def test_a_parallel_kernel_starts_threads() -> None:
    """As many as the setting allows, no more; and with one it starts none."""
    code = (
        PARALLEL
        + """
jk.set_num_threads(1)
found = list(kernels())
assert len(found) == 2
before = tasks()
for attr, function in found:
    testing.check_values(attr, function)
print(tasks() - before)
jk.set_num_threads(4)
for attr, function in found:
    testing.check_values(attr, function)
print(tasks() - before)
"""
    )
    alone, several = map(int, python(code, OMP_NUM_THREADS="4").split())
    assert alone == 0
    assert 1 <= several <= 3


@needs_openmp
@needs_proc
def test_other_limits_are_obeyed() -> None:
    """``OMP_NUM_THREADS`` and threadpoolctl apply to generated code at its next call; the smallest limit wins."""
    code = (
        PARALLEL
        + """
import ctypes
from threadpoolctl import threadpool_limits
jk.set_num_threads(8)
found = list(kernels())
team = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(openmp._addresses()["jk_team"])
before = tasks()
with threadpool_limits(1):
    print(team(100))
    for attr, function in found:
        testing.check_values(attr, function)
    print(tasks() - before)
with threadpool_limits(3):
    print(team(100))
print(team(100), team(2))
jk.set_num_threads(2)
print(team(100))
"""
    )
    assert python(code, OMP_NUM_THREADS="5").split() == ["1", "0", "3", "5", "2", "2"]


@needs_fork
@pytest.mark.parametrize("parallel_before", [True, False])
def test_fork(parallel_before: bool) -> None:
    """A child gives the same results and ends, whether or not its parent has used threads."""
    code = (
        PARALLEL
        + f"""
import warnings
warnings.simplefilter("ignore")
jk.set_num_threads(4)
found = list(kernels())
if {parallel_before}:
    for attr, function in found:
        testing.check_values(attr, function)
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        for attr, function in found:
            testing.check_values(attr, function)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for attr, function in found:
    testing.check_values(attr, function)
print("done")
"""
    )
    assert python(code, OMP_NUM_THREADS="4") == "done\n"


@needs_fork
def test_forked_pool() -> None:
    """multiprocessing's pool of forked workers, after a parallel region in the parent."""
    code = (
        PARALLEL
        + """
import multiprocessing, warnings
warnings.simplefilter("ignore")
jk.set_num_threads(4)
found = list(kernels())
for attr, function in found:
    testing.check_values(attr, function)
def work(i):
    attr, function = found[i % len(found)]
    testing.check_values(attr, function, seed=i)
    return i
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(pool.map(work, range(12))))
"""
    )
    assert python(code, OMP_NUM_THREADS="4") == "66\n"


@needs_proc
def test_without_openmp() -> None:
    """Threads start all the same; where the system starts none, one thread computes everything."""
    code = (
        PARALLEL
        + """
MISSING
jk.set_num_threads(4)
before = tasks()
for attr, function in kernels():
    testing.check_values(attr, function)
print("done", len(list(kernels())), tasks() > before)
"""
    )
    no_openmp = code.replace("MISSING", 'openmp.runtime = lambda: (None, "none for this test")')
    assert python(no_openmp) == "done 2 True\n"
    assert python(code.replace("MISSING", "openmp.has_threads = lambda: False")) == "done 2 False\n"


@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_concurrent_callers_of_one_kernel(row: cases.Row, name: str, restored_threads: int) -> None:
    """Python threads run one kernel concurrently, each with its own arrays, in all variants."""
    large = _with_work(cases.middle(row, name), name)
    jk.set_num_threads(2)
    for kernel in cases.kernels_of(large, name):
        samples = [large.signature().sample(seed) for seed in (0, 1)]
        expected = [[array.copy() for array in arrays] for arrays in samples]
        for arrays in expected:
            kernel.callable(*arrays)
        everyone = threading.Barrier(8)

        def call(
            number: int, kernel: Kernel = kernel, everyone: threading.Barrier = everyone,
            samples: list[list[AnyArray]] = samples, expected: list[list[AnyArray]] = expected,
        ) -> None:  # fmt: skip
            given, wanted = samples[number % 2], expected[number % 2]
            used = [array.copy() for array in given]
            everyone.wait()
            for _ in range(3):
                for array, before in zip(used, given, strict=True):
                    np.copyto(array, before)
                kernel.callable(*used)
                found = zip(used, wanted, strict=True)
                assert all(np.array_equal(bits(a), bits(b)) for a, b in found), f"{kernel!r} differs"

        together(call)


def bits(array: AnyArray) -> AnyArray:
    return array.reshape(-1).view(np.uint8)


def together(call: Callable[[int], None]) -> None:
    """Run a function in eight threads; what one of them raises is raised here."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            call(number)
        except BaseException as error:  # noqa: BLE001  # a thread's failure must reach the test
            failures.append(error)

    callers = [threading.Thread(target=guarded, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    if failures:
        raise failures[0]


def _with_work(attr: jk.KernelAttr, name: str) -> jk.KernelAttr:
    """Return the smallest supported case of the sweep that takes long enough to release the interpreter, or `attr`."""
    dtype = attr.fields()["dtype"]
    attrs = [case.attr for case in type(attr).sweep() if case.attr.fields()["dtype"] == dtype]
    proper = [a for a in cases.only_in_scope(type(attr), name, attrs) if 3e5 < a.operations() < 1e7]
    return min(proper, key=lambda a: a.operations(), default=attr)


def test_everyday_functions_from_several_threads() -> None:
    """Cold, on many shapes at once: all threads write the dispatcher's table."""
    from test_everyday import as_tuple, example, function_of

    examples = []
    for row in (row.values[0] for row in cases.every_row()):
        for seed in range(2):
            given = example(row, seed=seed)[1]
            results = as_tuple(function_of(row)(**given))
            examples.append((function_of(row), given, [result.tobytes() for result in results]))
    operators.clear_tables()

    def call(number: int) -> None:
        for _ in range(20):
            for function, given, expected in examples:
                assert [result.tobytes() for result in as_tuple(function(**given))] == expected

    together(call)


def test_workspace_is_freed_or_reused() -> None:
    """Repeated calls from ever new threads do not pile up scratch memory."""
    for row in (row.values[0] for row in cases.every_row()):
        attr = testing.middle(row, "float32")
        function: Any = next(iter(jk.get_all_candidates(attr).values()))
        arrays = attr.signature().sample()
        for _ in range(20):
            caller = threading.Thread(target=function, args=arrays)
            caller.start()
            caller.join()
        testing.check_values(attr, function)


def beginnings(n: int, *, block: int, max_blocks: int) -> AnyArray:
    """For each element of a range, where the part begins that has it."""

    def body(x: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            x[i] += begin + 1

    kernel = RangeKernel(
        "parts", ("int64*", "int64"), body, extent=1, parallel=True, block=block, max_blocks=max_blocks
    )
    address, x = loader.address_of(kernel), np.zeros(n, np.int64)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(address)(x.ctypes.data, n) == 0
    return x - 1


@needs_openmp
@pytest.mark.parametrize(("block", "most"), [(1, 4), (3, 4), (1, 64), (5, 1)])
def test_blocks_of_long_ranges_are_larger(block: int, most: int, restored_threads: int) -> None:
    """One object for all extents: parts begin at multiples of the block, and cover each element once."""
    jk.set_num_threads(3)
    for n in (0, 1, 2, 3, 7, 24, 25, 100, 1000, 1001):
        parts = beginnings(n, block=block, max_blocks=most)
        size = max(-(-n // most), block)
        assert (parts % size == 0).all()
        assert (np.diff(parts) >= 0).all()
        assert (parts <= np.arange(n)).all()
        assert len({*parts.tolist()}) <= max(n // (2 * size), min(n, 1))


def test_one_object_for_convolutions_of_all_sizes() -> None:
    layers = [
        jk.Conv2DPackedAttr(batch=1, height=size, width=size, channels=64, kernel_height=3, kernel_width=3, filters=64)
        for size in (112, 56, 28, 14)
    ]
    gen = implementation(jk.Conv2DPackedAttr, "gen")
    sources = [gen.source(attr, variant) for attr in layers for variant in gen.variants(attr) if variant["parallel"]]
    assert len(sources) == len(layers)
    assert len({*map(symbol_of, sources)}) == 1
