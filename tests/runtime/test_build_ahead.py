"""Large kernels are built by helper processes; whatever goes wrong with these, this process builds them."""

import fcntl
import os
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest

from jitkernels.codegen import compile_ahead, compiler_process
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import build_ahead, lazy_link, loader

pytestmark = pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
numbers = count(int.from_bytes(os.urandom(6), "little"))


def new_kernel() -> RangeKernel:
    """A kernel that nobody has built."""
    number = next(numbers)

    def body(x: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            x[i] = number

    return RangeKernel("ahead", ("int64*", "int64"), body, extent=1)


def caller_of(*kernels: RangeKernel) -> RangeKernel:
    """A kernel that links to kernels."""
    functions = [loader.entry_of(kernel, kernel.arguments) for kernel in kernels]
    first, second = functions

    def body(x: Any, n: int, begin: int, end: int) -> None:
        first(x, n)
        second(x, n)

    return RangeKernel("calls_ahead", ("int64*", "int64"), body, extent=1)


@pytest.fixture(autouse=True)
def helpers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[compile_ahead.AheadJob]]:
    """The jobs that are begun: all kernels are large here, and there are two cores."""
    jobs: list[compile_ahead.AheadJob] = []
    begun = compile_ahead.begun

    def noted(make: Any) -> Any:
        job = begun(make)
        jobs.extend([job] if job is not None else [])
        return job

    monkeypatch.setattr(build_ahead, "LARGE_COST", 0)
    monkeypatch.setattr(build_ahead, "begun", noted)
    monkeypatch.setattr(cpu_target, "cpu_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", os.path.realpath(sys.executable))
    yield jobs
    assert not build_ahead._jobs
    compile_ahead.end_helpers()


def test_helpers_build_what_a_source_links_to(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = new_kernel(), new_kernel()
    source = caller_of(*kernels)
    with build_lock:
        build_ahead.build(source)
        assert len(helpers) == 1  # and this process the other one
        assert all(map(loader.is_kept, (*kernels, source)))
        monkeypatch.setattr("jitkernels.codegen.compiling.compiled", None)
        assert loader.load(source).address
        build_ahead.build(source)
        assert len(helpers) == 1


def test_jobs_begin_before_their_code_is_loaded(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_target, "cpu_count", lambda: 4)
    kernels, unused = (new_kernel(), new_kernel()), new_kernel()
    with build_lock:
        build_ahead.begin(kernels[0])
        assert not helpers  # nobody said that what is built is kept
        with build_ahead.building_ahead(cached=True):
            for kernel in (unused, kernels[0], kernels[0], kernels[1]):
                build_ahead.begin(kernel)
        assert len(helpers) == 3
        build_ahead.build(caller_of(*kernels))
        assert all(map(loader.is_kept, kernels))
        assert not build_ahead._jobs  # nobody needs the other one: it is kept if it was done


@pytest.mark.parametrize("method", ["__init__", "send", "receive"])
def test_helpers_that_are_lost(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: Any, *_: Any) -> None:
        if method != "__init__":
            self.kill()
        raise OSError("no process") if method == "__init__" else compiler_process.HelperLostError(-9)

    monkeypatch.setattr(compiler_process.Helper, method, lost)
    source = caller_of(new_kernel(), new_kernel())
    with build_lock:
        build_ahead.build(source)
        assert loader.load(source).address


def test_code_that_llvm_rejects_is_an_error_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_process.Helper, "receive", lambda _: compiler_process.ERROR + b"rejected")
    source = caller_of(new_kernel(), new_kernel())
    with build_lock:
        build_ahead.build(source)
        assert loader.load(source).address


def test_interruptions_end_the_helpers(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loader, "built", interrupted)
    with build_lock, pytest.raises(KeyboardInterrupt):
        build_ahead.build(caller_of(new_kernel(), new_kernel()))
    assert [job._helper._process.poll() is not None for job in helpers] == [True]


def test_a_forked_child_waits_for_no_helper_of_its_parent(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = new_kernel(), new_kernel()
    with build_lock, build_ahead.building_ahead(cached=True):
        build_ahead.begin(kernels[0])
        jobs = dict(build_ahead._jobs)
        monkeypatch.setattr(build_ahead, "_process", 0)
        monkeypatch.setattr(compile_ahead, "_process", 0)
        build_ahead.build(caller_of(*kernels))
        assert all(map(loader.is_kept, kernels))
    for job, _ in jobs.values():
        job.cancel()


def test_where_this_process_compiles_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_ahead.job_count() == 1
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/usr/bin/editor")  # which embeds Python
        assert compile_ahead.job_count() == 0
    with monkeypatch.context() as patched:
        patched.setattr(sys, "frozen", True, raising=False)
        assert compile_ahead.job_count() == 0
    with monkeypatch.context() as patched:
        patched.setenv("JITKERNELS_COMPILER", "process")
        assert compile_ahead.job_count() == 0
    monkeypatch.setattr(cpu_target, "cpu_count", lambda: 1)
    assert compile_ahead.job_count() == 0


def test_lazy_kernels_are_not_built_ahead() -> None:
    """Of the kernels of all kinds of sizes, a call needs one or two."""

    class Caller:
        externals = (lazy_link.later(new_kernel()).link,)

    assert not list(build_ahead._linked(cast(Any, Caller())))


def test_requested_kernels_are_built_from_when_they_are_known_to_be_needed(helpers: list[Any]) -> None:
    kernel, other = lazy_link.later(new_kernel()), lazy_link.later(new_kernel())
    with build_lock:
        with build_ahead.building_ahead(cached=True):
            build_ahead.begin_lazy([kernel.source])
        build_ahead.build(caller_of(new_kernel(), new_kernel()))
        assert len(helpers) == 1
    for one in (kernel, other):
        words = lazy_link.words_of(one.variable)
        words[lazy_link.WANTED_WORD] = 1
    assert build_ahead.build_requested()
    assert kernel.is_there
    assert other.is_there
    assert not build_ahead.build_requested()


def test_kernels_that_are_needed_soon_are_built_while_a_helper_works(
    helpers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one helper: the second kernel is built here before the first is done, and an error is not ours."""
    first, second, wrong = new_kernel(), new_kernel(), new_kernel()
    finished, here = [False], list[str]()
    built, is_done = loader.built, compile_ahead.AheadJob.is_done
    assert isinstance(is_done, property)

    def noted(source: Any, **options: Any) -> Any:
        here.append(loader.symbol_of(source))
        finished[0] = len(here) > 2
        if source is wrong:
            raise BuildError("not this one")
        return built(source, **options)

    monkeypatch.setattr(loader, "built", noted)
    monkeypatch.setattr(compile_ahead.AheadJob, "is_done", property(lambda job: finished[0]))
    caller = caller_of(first, first)
    with build_lock, build_ahead.building_ahead(cached=True):
        build_ahead.begin(first)
        build_ahead.begin_lazy([second, wrong])
        build_ahead.build(caller)
    assert len(helpers) == 1
    assert {loader.symbol_of(second), loader.symbol_of(wrong)} <= {*here}
    assert loader.is_built(second)


def test_who_builds_a_kernel_waits_for_its_helper(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = new_kernel()
    with build_lock, build_ahead.building_ahead(cached=True):
        build_ahead.begin(kernel)
        assert len(helpers) == 1
        monkeypatch.setattr(RangeKernel, "object_code", None)
        assert loader.built(kernel)[0]


def test_jobs_longer_than_a_pipe_do_not_wait_for_a_helper_that_starts() -> None:
    helper = compiler_process.Helper()
    pipe = helper._process.stdin
    assert pipe is not None
    if hasattr(fcntl, "F_GETPIPE_SZ"):
        assert fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) >= 1 << 16
    helper.kill()


def test_no_helper_outlives_a_build() -> None:
    """An idle one would be a child process that the program did not start."""
    kernels = new_kernel(), new_kernel()
    with build_lock:
        compile_ahead.start_helpers()
        build_ahead.build(caller_of(*kernels))
    assert not compile_ahead._idle


def test_kernels_that_wait_for_a_helper_get_the_next_one_that_is_idle(
    helpers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_ahead, "FAIR_COST", 0)
    kernels = [lazy_link.later(new_kernel()) for _ in range(4)]
    with build_lock:
        with build_ahead.building_ahead(cached=True):
            build_ahead.begin_lazy([one.source for one in kernels])
        assert len(helpers) == 1
        assert len(build_ahead._later) == 3
        while not helpers[0].is_done:
            pass
        build_ahead.build(new_kernel())
        assert len(helpers) >= 2
    for one in kernels[:3]:
        lazy_link.words_of(one.variable)[lazy_link.WANTED_WORD] = 1
    assert build_ahead.build_requested()
    assert all(one.is_there for one in kernels[:3])
    assert not build_ahead._later  # nor does the one that nobody has requested
    assert not compile_ahead.has_idle_helper()


def test_a_request_gives_idle_helpers_what_takes_longest(helpers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_ahead, "FAIR_COST", 0)
    kernels = [lazy_link.later(new_kernel()) for _ in range(2)]
    monkeypatch.setattr(build_ahead, "_cost", lambda one: 1 + (one is kernels[1].source))
    compile_ahead.start_helpers()
    for one in kernels:
        lazy_link.words_of(one.variable)[lazy_link.WANTED_WORD] = 1
    assert build_ahead.build_requested()
    assert len(helpers) == 1
    assert all(one.is_there for one in kernels)
