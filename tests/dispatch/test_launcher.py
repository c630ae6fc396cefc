"""The compiled launcher: it serves the calls, leaks nothing, and agrees with its Python equivalent."""

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import cases
import numpy as np
import oracles
import pytest
from processes import python
from test_everyday import SAME_VALUES, by_position, example, function_of

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas, implementation
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.operators import Everyday
from jitkernels.tools import testing

CALLS = 100_000
Row = Any


@pytest.fixture
def no_slow_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A call that falls back to Python is an error for kernels made inside the test."""

    def slow(self: object, *arguments: Any, **named: Any) -> None:
        raise AssertionError("the compiled launcher did not take the call")

    with monkeypatch.context() as patched:
        patched.setattr(Kernel, "run", slow)
        yield


@pytest.fixture
def python_only(fresh: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a Python whose object layout is not known: everything goes through the slow path."""
    monkeypatch.setattr(launcher, "_loaded", lambda: "forced by a test")
    monkeypatch.setattr(operators, "_holders", {})
    launcher._pattern_address.cache_clear()
    yield
    launcher._pattern_address.cache_clear()


def test_the_compiled_launcher_exists() -> None:
    """On CPython with the GIL; without it, every call would take ten times longer."""
    assert launcher.reason_for_slow_path() is None


@pytest.mark.per_push
@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_callable_is_built_in(row: cases.Row, name: str) -> None:
    """A C function bound to its kernel, with its name, and the formula for ``help``."""
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name):
        function: Any = kernel.callable
        assert type(function) is types.BuiltinFunctionType
        assert function.__self__ is kernel
        assert isinstance(kernel, jk.Kernel)
        assert (kernel.attr, kernel.implementation) == (attr, name)
        assert (kernel.address == 0) == (name == "refer")
        assert kernel.source
        assert function.__name__ == attr.name
        assert repr(kernel).startswith(f"<Kernel {attr.kernel_type.name}({attr.text()}) by {name}")


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_valid_arguments_never_go_through_python(no_slow_path: None, row: cases.Row, name: str) -> None:
    """Neither at the middle size nor at empty sizes."""
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name):
        testing.check_values(attr, kernel.callable, oracles.expected, label=repr(kernel))
        testing.check_aliased_arguments(attr, kernel.callable, oracles.expected, label=repr(kernel))


def test_the_fixture_catches_the_slow_path(no_slow_path: None) -> None:
    """Calls that go through Python fail."""
    attr = cases.middles(all_schemas()[0])[0]
    kernel = cases.kernels_of(attr, "refer")[0]
    with pytest.raises(AssertionError, match="did not take the call"):
        kernel.callable(*attr.signature().sample()[:-1])


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_kernels_without_compiled_launcher(python_only: None, row: cases.Row, name: str) -> None:
    """Results and errors are the same."""
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name):
        assert type(kernel.callable) is types.MethodType
        assert kernel.callable.__self__ is kernel
        testing.check_values(attr, kernel.callable, oracles.expected, label=repr(kernel))
    with pytest.raises(jk.errors.ArgumentTypeError):
        kernel.callable(None)


@pytest.mark.parametrize("row", cases.every_form())
def test_everyday_functions_without_compiled_launcher(python_only: None, row: Row) -> None:
    expected = functions_result(row)
    function: Any = operators.everyday(row.kernel_type.name)
    assert type(function) is types.MethodType
    _, given = example(row)
    for _ in range(2):
        got = function(**given)
        for one, other in zip(as_tuple(got), expected, strict=True):
            assert one.tobytes() == other.tobytes()


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def functions_result(row: Row) -> tuple[Any, ...]:
    """What the kernel itself gives for the example."""
    _, given = example(row)
    call = row.call(**given)
    arrays = [np.empty(shape, p.numpy) for shape, p in zip(call.shapes, call.attr.signature().outputs, strict=True)]
    flat = [a.reshape(p.shape) for a, p in zip(arrays, call.attr.signature().outputs, strict=True)]
    jk.KernelFuncs.cache().of_class(call.attr).run_as(call.attr, [*call.inputs, *flat])
    return tuple(arrays)


def test_more_dimensions_than_the_launcher_knows(toy: Any) -> None:
    """Signatures that do not fit its tables are served by Python from the start."""
    parameter = launcher.Parameter(np.dtype(np.float32), (1,) * 9, False, False)
    assert not launcher.fits([parameter], [])
    assert not launcher.fits([parameter._replace(shape=(1,))] * 81, [])
    assert launcher.fits([parameter._replace(shape=(1, 1, 1, 1))], [1, 2])


@pytest.mark.parametrize("row", cases.every_form())
def test_calls_leak_nothing(row: Row) -> None:
    """Reference counts of all arguments and the number of objects are unchanged after 10**5 calls."""
    attr = min((case.attr for case in testing.ci_cases(row)), key=lambda a: a.operations())
    arrays = attr.signature().sample()
    function: Any = jk.KernelFuncs.cache().at(attr)
    watched: list[object] = [*arrays, function, function.__self__, None, arrays[0].dtype]
    for _ in range(1000):
        function(*arrays)
    gc.collect()
    before = [sys.getallocatedblocks(), *(sys.getrefcount(value) for value in watched)]
    for _ in range(CALLS):
        function(*arrays)
    after = [sys.getallocatedblocks(), *(sys.getrefcount(value) for value in watched)]
    assert all(abs(one - other) < CALLS // 100 for one, other in zip(before, after, strict=True)), (before, after)


@pytest.mark.parametrize("row", cases.every_form())
def test_rejected_calls_leak_nothing(row: Row) -> None:
    attr = cases.middles(row)[0]
    arrays = attr.signature().sample()
    function: Any = jk.KernelFuncs.cache().at(attr)
    wrong = arrays[0][:-1]
    before = [sys.getrefcount(value) for value in (*arrays, wrong, function)]
    for _ in range(2000):
        try:
            function(wrong, *arrays[1:])
        except jk.errors.ArgumentError:
            continue
        raise AssertionError("accepted")
    assert [sys.getrefcount(value) for value in (*arrays, wrong, function)] == before


@pytest.mark.parametrize("row", cases.every_form())
def test_everyday_calls_leak_nothing(row: Row) -> None:
    """With and without ``out``, through the dispatcher and through Python."""
    _, given = example(row)
    function = function_of(row)
    results = function(**given)
    gc.collect()
    arguments = list(given.values())
    watched: list[object] = [*arguments, *as_tuple(results), None, as_tuple(results)[0].dtype, function]
    before = [sys.getrefcount(value) for value in watched]
    for _ in range(300):
        function(**given)
        function(**given, out=results)
    after = [sys.getrefcount(value) for value in watched]
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True)), (before, after)
    assert sys.getrefcount(function(**given)) == sys.getrefcount(np.empty(3))


@pytest.mark.parametrize("row", cases.every_form())
def test_calls_that_fall_back_leak_nothing(row: Row) -> None:
    """The dispatcher knows the shapes, but the memory or ``out`` does not fit: Python converts or refuses."""
    _, given = example(row)
    function = function_of(row)
    outs = tuple(np.zeros_like(result) for result in as_tuple(function(**given)))
    out: Any = outs if len(outs) > 1 else outs[0]
    wrong = np.zeros(outs[0].shape, np.bool_)
    strided = {key: SAME_VALUES["strided"](v) if isinstance(v, np.ndarray) else v for key, v in given.items()}
    watched: list[object] = [*given.values(), *outs, wrong, function]

    plain, other = by_position(row, given), by_position(row, strided)

    def call() -> None:
        function(*plain)
        function(*other)
        function(*other, out=out)
        function(**strided)
        with pytest.raises(jk.errors.JitKernelsError):
            function(*plain, out=wrong)

    for _ in range(20):
        call()
    gc.collect()
    before = [sys.getallocatedblocks(), *(sys.getrefcount(value) for value in watched)]
    for _ in range(300):
        call()
    gc.collect()
    after = [sys.getallocatedblocks(), *(sys.getrefcount(value) for value in watched)]
    assert all(abs(one - other) < 250 for one, other in zip(before, after, strict=True)), (before, after)


def remembers(row: Row, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, Any], list[int]]:
    """The everyday function, its arguments by position, and a count of the calls that went through Python."""
    attr, given = example(row)
    counted: list[int] = []
    original = Everyday.call

    def counting(self: Everyday, *arguments: Any, **named: Any) -> Any:
        counted.append(1)
        return original(self, *arguments, **named)

    monkeypatch.setattr(Everyday, "call", counting)
    monkeypatch.setattr(operators, "_holders", {})
    return operators.everyday(attr.name), given, counted


def plain(row: Row, given: dict[str, Any]) -> list[Any] | None:
    """The arguments by position if all of them are arrays, as the dispatcher takes them; one result."""
    parameters = row.parameters().parameters
    arrays = {key: value for key, value in given.items() if isinstance(value, np.ndarray)}
    others = {key: value for key, value in given.items() if key not in arrays}
    defaults = all(parameters[key].default == value for key, value in others.items())
    first = list(parameters)[: len(arrays)] == list(arrays)
    single = len(row.call(**given).attr.signature().outputs) == 1
    return list(arrays.values()) if defaults and first and single else None


@pytest.mark.parametrize("row", cases.every_form())
def test_dispatcher_takes_the_second_call(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python serves the first call of a shape and no other one; ``out=None`` and ``out=array`` included."""
    function, given, counted = remembers(row, monkeypatch)
    try:
        arrays = plain(row, {k: v for k, v in given.items() if isinstance(v, np.ndarray)})
    except jk.errors.JitKernelsError:  # which needs an option
        return
    if arrays is None:
        return
    call = row.call(*arrays)
    if call.finish is not None or len(call.inputs) != len(arrays):
        return
    first = function(*arrays)
    assert len(counted) == 1
    assert function(*arrays).tobytes() == first.tobytes()
    assert function(*arrays, out=None).tobytes() == first.tobytes()
    out = np.empty_like(first)
    assert function(*arrays, out=out) is out
    assert out.tobytes() == first.tobytes()
    assert len(counted) == 1, "a repeated call went through Python"
    function(*(array.copy() for array in arrays))
    assert len(counted) == 1
    with jk.use(implementation="refer"):
        function(*arrays)
        assert len(counted) == 2, "a pin must be obeyed"
    function(*arrays)
    assert len(counted) == 2
    jk.set_num_threads(jk.get_num_threads())
    operators.clear_tables()
    function(*arrays)
    assert len(counted) == 3


@pytest.mark.parametrize("row", cases.every_form())
def test_alternating_shapes(row: Row) -> None:
    """Call more shapes and dtypes than the table has slots, in turn: each gets its own kernel's result.

    Without other flags, which make no difference to the table, but other objects.
    """
    function = function_of(row)
    plain_ones = {middle.without_extents for middle in cases.middles(row)}
    every = testing.attrs_around(row, range(1, 40))
    calls, attrs = [], [attr for attr in every if attr.without_extents in plain_ones]
    for attr in attrs[:: max(1, len(attrs) // 180)]:
        given = testing.named(attr)
        try:
            if row.call(**given).attr != attr:
                continue
        except jk.errors.JitKernelsError:
            continue
        calls.append(plain(row, given) or given)
    calls = calls[:: max(1, len(calls) // 90)]
    first = [_called(function, call) for call in calls]
    for _ in range(2):
        assert [_called(function, call) for call in reversed(calls)] == first[::-1]


def _called(function: Any, call: Any) -> list[bytes]:
    results = function(**call) if isinstance(call, dict) else function(*call)
    return [result.tobytes() for result in as_tuple(results)]


def test_new_results_every_time() -> None:
    """The dispatcher never gives out an array twice."""
    for row in all_schemas():
        _, given = example(row)
        results = [as_tuple(function_of(row)(**given))[0] for _ in range(5)]
        addresses = {result.ctypes.data for result in results}
        assert len(addresses) == len(results)
        assert all(result.flags.owndata or result.base is not None for result in results)


def test_long_kernels_release_the_gil() -> None:
    """Another Python thread makes progress during a single long call."""
    code = """
import threading, sys
import jitkernels as jk
from jitkernels.tools import testing
sys.setswitchinterval(1000)
jk.set_num_threads(1)
attr = max((case.attr for case in jk.VSigmoidAttr.sweep()), key=lambda a: a.operations())
function = jk.KernelFuncs.cache().at(attr)
arrays = attr.signature().sample()
ticks, stop = [], threading.Event()
def tick():
    while not stop.is_set():
        ticks.append(1)
        stop.wait(0.0005)
other = threading.Thread(target=tick)
other.start()
for _ in range(200):
    function(*arrays)
seen = len(ticks)
stop.set()
other.join()
print(seen > 20)
"""
    assert python(code) == "True\n"


@pytest.mark.parametrize("name", ["run", "callable"])
def test_keywords_are_rejected(name: str) -> None:
    attr = cases.middles(all_schemas()[0])[0]
    kernel = Kernel(attr, implementation(type(attr), "refer"), {})
    with pytest.raises(TypeError):
        getattr(kernel, name)(*attr.signature().sample(), out=None)


def test_launchers_may_outlive_the_package() -> None:
    """Their Python type still exists when the interpreter collects its last garbage."""
    code = """
import codecs
import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas
kept = [jk.get_refer(next(iter(row.sweep())).attr) for row in all_schemas()]
codecs.register(lambda name, kept=kept: None)  # the interpreter drops these after all modules
"""
    assert python(code, PYTHONMALLOC="malloc", MALLOC_PERTURB_="255") == ""
