"""A small suite for slow machines, such as emulated ones: ``python tests/support/small_suite.py [kernel...]``.

It needs nothing but the package, and checks every row and usable implementation at a dozen attrs, the launcher and the
everyday functions. It prints failures and the number of checks. Expected values are the reference in long double.
"""

import contextlib
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

if platform.machine() in ("aarch64", "arm64"):
    os.environ.setdefault("OPENBLAS_CORETYPE", "ARMV8")
os.environ["JITKERNELS_TUNE"] = "off"

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementation, implementations
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers.array_layouts import derived
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.native import launcher
from jitkernels.dispatch.operators import Everyday, _dispatch_table
from jitkernels.errors import JitKernelsError
from jitkernels.runtime import cast_copy
from jitkernels.tools import testing
from jitkernels.tools.testing import rejected_arguments
from jitkernels.tools.testing.rejected_arguments import Form, assert_rejected, read_only

ATTRS = 12
OBJECTS, GENERATED, EXACT = 2, 3, 5
SIZES = (0, 1, 2, 3, 7, 16, 33)
KINDS = 9
Row = Any
Arguments = dict[str, Any]


def some_attrs(row: Row, name: str) -> list[KernelAttr]:
    """Return the middle of each dtype, then sizes and options drawn so that they add few objects."""
    entry = implementation(row, name)
    middles = testing.middles(row)
    others = [attr for attr in testing.attrs_around(row, SIZES) if attr not in middles]
    random.Random(name).shuffle(others)
    selected: list[KernelAttr] = []
    texts: set[str] = set()
    for attr in [*middles, *others]:
        if entry.reason_against(attr) is None and len(selected) < ATTRS:
            source = None if entry.is_reference else entry.source(attr, entry.variants(attr)[0])
            text = source.text if source else ""
            most = EXACT if getattr(source, "exact", False) else GENERATED if name == "gen" else OBJECTS
            if text in texts or len(texts) < most:
                texts.add(text)
                selected.append(attr)
    return selected


class Checks:
    """The number of checks, and the failures."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: list[str] = []

    @contextlib.contextmanager
    def one(self, label: str) -> Iterator[None]:
        """Record an exception inside the block as a failure, and continue."""
        self.count += 1
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the suite reports all failures
            self.failed.append(f"{label}: {type(error).__name__}: {error}".split("\n")[0])

    def refused(self, label: str, named: str, function: Any, *given: Any, **more: Any) -> None:
        with self.one(label):
            assert_rejected(function, [*given], named, label, **more)


def check_implementation(checks: Checks, row: Row, name: str) -> None:
    entry = implementation(row, name)
    attrs = some_attrs(row, name)
    large = (attr for attr in attrs if min(attr.signature().arrays[0].shape, default=2) > 1)
    rejected = next((attr for attr in large if all(array.nbytes for array in attr.signature().arrays)), None)
    for number, attr in enumerate(attrs):
        label = f"{name} of {attr}"
        with checks.one(label):
            kernel = Kernel(attr, entry, entry.variants(attr)[0])
            for function in (kernel.callable, kernel.run):
                with checks.one(label):
                    testing.check_values(attr, function, label=label, seed=number)
                with checks.one(label):
                    checks.count += testing.check_rejections(attr, function, label=label) if attr is rejected else 0
            with checks.one(label):
                testing.check_aliased_arguments(attr, kernel.callable, label=label)
            with checks.one(label):
                kinds = list(testing.kinds(attr))[number % KINDS :: KINDS]
                testing.check_data(attr, {label: kernel.callable}, kinds=kinds)
            with checks.one(label):
                if attr.name not in NEED_AN_ORACLE:
                    testing.check_special_values(attr, kernel.callable, label=label, alone=number == 0)
            with checks.one(label):
                testing.check_bad_indices(attr, kernel.callable, label=label)


COMPILED: dict[str, Form] = {
    "plain": np.copy,
    "strided": rejected_arguments.strided,
    "backwards": rejected_arguments.backwards,
    "fortran": np.asfortranarray,
    "unaligned": rejected_arguments.unaligned,
    "swapped": rejected_arguments.swapped,
    "derived": derived,
    "read-only": read_only,
    "inside": lambda value: np.pad(value, 2)[tuple(slice(2, 2 + n) for n in value.shape)],
}  # the dispatcher's own conversions from the second call on
OTHER_TYPES = ("float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# For special values: long double overflows elsewhere in between, orders zeros differently, spreads NaN differently, or
# makes NaN of padding times infinite filters, which kernels may leave out.
NEED_AN_ORACLE = (
    "attention", "group_norm", "vrelu", "vadd_relu", "fft_c2c", "fft_r2c", "fft_c2r",
    "conv2d", "conv2d_packed", "conv2d_transpose", "conv2d_transpose_packed",
)  # fmt: skip
WEAK = (float, int, bool)  # numbers that take the dtype of the other operand


class Watched(Everyday):
    """An everyday function that counts the calls which its dispatcher passes to Python."""

    by_python = 0

    def call(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        self.by_python += 1
        return super().call(*arguments, out=out, **named)


class Calls:
    """Everyday calls of one row."""

    def __init__(self, checks: Checks, row: Row) -> None:
        self.checks, self.row = checks, row
        self.name = row.kernel_type.name.lower()
        self.watched = Watched(row)
        self.function = self.watched.callable

    def right(self, label: str, arguments: Arguments, plain: Arguments, dtype: str) -> None:
        """Check that the call returns the oracle's result for plain arrays of the same values, twice."""
        for _ in range(2):
            with self.checks.one(f"{self.name}: {label}"), np.errstate(all="ignore"):
                self.compare(self.function(**arguments), plain, dtype)

    def compare(self, results: Any, plain: Arguments, dtype: str) -> None:
        results = results if isinstance(results, tuple) else (results,)
        call = self.row.call(**plain)
        inputs = iter(call.inputs)
        parameters = call.attr.signature().arrays
        arrays = [next(inputs) if p.role == "in" else np.zeros(p.shape, p.numpy) for p in parameters]
        true = testing.upcast_reference(call.attr, [array.copy() for array in arrays])
        flat = []
        finishes = call.finish or [np.asarray] * len(results)
        for got, shape, right, finish in zip(results, call.shapes, true, finishes, strict=True):
            wanted = finish(np.zeros(shape)).shape
            assert type(got) is np.ndarray, f"gave {type(got)}"
            own = dtype if right.dtype.kind == "f" else right.dtype
            assert (got.dtype, got.shape) == (np.dtype(own), wanted), f"gave {got.dtype}{got.shape}"
            back = np.moveaxis(got, plain["axis"], -1) if finish is not np.asarray else got
            back = np.ascontiguousarray(back).reshape(right.shape)
            flat.append(back.astype(call.attr.dtype) if right.dtype.kind == "f" else back)
        testing.assert_close(call.attr, arrays, flat, true, self.name, 2)

    def compiled(self, label: str, call: Callable[[], Any]) -> None:
        """Check that the call after a first one does not enter Python, but of rows whose calls Python serves."""
        if _dispatch_table(self.row) is None:
            return
        with self.checks.one(f"{self.name}: {label} is compiled"):
            call()
            before = self.watched.by_python
            call()
            assert self.watched.by_python == before, "a second call went through Python"


def example(row: Row, dtype: str) -> Arguments | None:
    """Return keyword arguments of an everyday call of one of the attrs, one with an existing object if any."""
    for attr in [*some_attrs(row, "refer"), *testing.attrs_around(row, SIZES)]:
        arguments = testing.named(attr, 1)
        shapes = [v.shape for v in arguments.values() if isinstance(v, np.ndarray)]
        proper = all(min(shape, default=1) > 1 for shape in shapes)
        if proper and attr.fields()["dtype"] == dtype:
            with contextlib.suppress(JitKernelsError):
                if row.call(**arguments).attr == attr:
                    return arguments
    return None


def changed(arguments: Arguments, form: Form) -> Arguments:
    """Return the arguments with every float array changed."""
    floats = [key for key, value in arguments.items() if getattr(value, "dtype", None) in ("float32", "float64")]
    return {key: form(value) if key in floats else value for key, value in arguments.items()}


def check_everyday(calls: Calls, dtype: str) -> None:
    arguments = example(calls.row, dtype)
    if arguments is None:
        return
    for name, form in COMPILED.items():
        used = changed(arguments, form)
        calls.right(name, used, arguments, dtype)
        calls.compiled(name, lambda: calls.function(**used))  # noqa: B023  # called at once
    if any(getattr(value, "dtype", None) == dtype for value in arguments.values()):
        check_conversions(calls, arguments)
    check_results(calls, arguments, dtype)
    check_mistakes(calls, arguments)


def check_conversions(calls: Calls, arguments: Arguments) -> None:
    calls.right("lists", changed(arguments, lambda value: value.tolist()), changed(arguments, np.float64), "float64")
    for other in OTHER_TYPES:
        result = "float32" if other == "float16" else "float64"
        used = changed(arguments, lambda value: np.abs(value * 3).astype(other))  # noqa: B023  # called at once
        plain = {key: value.astype(result) if value is not arguments[key] else value for key, value in used.items()}
        calls.right(other, used, plain, result)
        if other != "float16" or cast_copy.has_float16():
            calls.compiled(other, lambda: calls.function(**used))  # noqa: B023  # called at once
    label, wide = f"{calls.name}: long double", changed(arguments, np.longdouble)
    calls.checks.refused(label, calls.name, calls.function, **wide)


def unwritten(results: Iterable[AnyArray]) -> tuple[AnyArray, ...]:
    """Return arrays like the results, filled with values of none of them."""
    return tuple(np.full_like(result, np.nan if result.dtype.kind == "f" else -1) for result in results)


def check_results(calls: Calls, arguments: Arguments, dtype: str) -> None:
    """Check ``out`` in every form, by name and position, and aliasing an input."""
    results = calls.function(**arguments)
    fresh: list[AnyArray] = [*results] if (several := isinstance(results, tuple)) else [results]
    for name, form in [*COMPILED.items(), ("double", np.float64)]:
        if name == "read-only" or (name == "double" and fresh[0].dtype.kind != "f"):
            continue
        for _ in range(2):
            with calls.checks.one(f"{calls.name}: out {name}"):
                outs = tuple(o if name == "swapped" and o.itemsize == 1 else form(o) for o in unwritten(fresh))
                calls.function(**arguments, out=outs if several else outs[0])
                own = (dtype if array.dtype.kind == "f" else array.dtype for array in fresh)
                plain = tuple(np.asarray(o).astype(d) for o, d in zip(outs, own, strict=True))
                calls.compare(plain if several else plain[0], arguments, dtype)
    parameters = calls.row.parameters().parameters
    every = [arguments.get(key, parameter.default) for key, parameter in parameters.items()]
    with calls.checks.one(f"{calls.name}: out by position"):
        outs = unwritten(fresh)
        calls.function(*every, outs if several else outs[0])
        calls.compare(outs if several else outs[0], arguments, dtype)
    calls.compiled("out", lambda: calls.function(**arguments, out=results))
    for key, value in arguments.items():
        if isinstance(value, np.ndarray) and value.dtype == fresh[0].dtype and value.size >= fresh[0].size:
            for first in (0, 1):
                room = np.zeros(value.size + 1, value.dtype)
                room[: value.size] = value.reshape(-1)
                shared = room[: value.size].reshape(value.shape)
                out = room[first : first + fresh[0].size].reshape(fresh[0].shape)
                outs = (out, *unwritten(fresh[1:]))
                with calls.checks.one(f"{calls.name}: out over {key}"):
                    calls.function(**arguments | {key: shared}, out=outs if several else out)
                    calls.compare(outs if several else out, arguments, dtype)


def check_mistakes(calls: Calls, arguments: Arguments) -> None:
    refused, function = calls.checks.refused, calls.function
    inputs = [a for a in calls.row.arrays if a.role == "in" and a.when]
    alone = [a.name for a in inputs if [b.when for b in inputs].count(a.when) == 1]  # may be left out
    for key, value in arguments.items():
        if isinstance(value, np.ndarray):
            wrongs: list[Any] = ["text", object(), {}, value.astype(complex), value.astype(object), None]
            for wrong in wrongs[:-1] if key in alone else wrongs:
                refused(f"{calls.name}: {key}", calls.name, function, **arguments | {key: wrong})
        elif not isinstance(value, int):
            refused(f"{calls.name}: {key}", key, function, **arguments | {key: "no such"})
    (out, *_) = result if isinstance(result := function(**arguments), tuple) else (result,)
    other = out.astype(np.int64 if out.dtype.kind == "f" else np.bool_)
    wrongs = [out.tolist(), other, out[np.newaxis].copy(), read_only(out), "text", ()]
    for wrong in [*wrongs, (out,) * 9]:
        for _ in range(2):
            refused(f"{calls.name}: out", "out", function, **arguments, out=wrong)
    refused(f"{calls.name}: name", "nonsense", function, **arguments, nonsense=1)
    refused(f"{calls.name}: nothing", calls.name, function)
    refused(f"{calls.name}: count", calls.name, function, *[None] * 20)
    for shape in ((), (0,), (3, 0), (0, 3), (2, 0, 3)):
        with calls.checks.one(f"{calls.name} of shape {shape}"), contextlib.suppress(JitKernelsError):
            function(**changed(arguments, lambda value: np.zeros(shape, value.dtype)))  # noqa: B023  # called at once


def check_axes(calls: Calls) -> None:
    """Check any axis, and more dimensions than a kernel has."""
    first = next(iter(calls.row.parameters().parameters))
    value = np.random.default_rng(1).uniform(-2, 2, (2, 3, 2, 3, 5)).astype(np.float32)
    needed = {p.name: 2 for p in calls.row.parameters().parameters.values() if p.default is p.empty}
    arguments: Arguments = needed | {first: value}
    if "axis" in calls.row.parameters().parameters:
        for axis in range(-5, 5):
            calls.right(f"axis {axis}", arguments | {"axis": axis}, arguments | {"axis": axis}, "float32")
            calls.compiled(f"axis {axis}", lambda: calls.function(**arguments, axis=axis))  # noqa: B023  # called at once
        for wrong in (5, -6, 1.5, "x"):
            calls.checks.refused(f"{calls.name}: axis", "axis", calls.function, **arguments, axis=wrong)


def check_shapes(calls: Calls) -> None:
    """Check elementwise functions of scalars, broadcast rows and columns, and many dimensions, against full arrays."""
    row = calls.row
    if len({argument.shape for argument in row.arrays}) > 1 or len(row.arrays[0].extents) != 1:
        return
    names = [argument.name for argument in row.arrays if argument.role == "in"]
    cube = np.random.default_rng(2).uniform(-2, 2, (2, 3, 1, 2, 7)).astype(np.float32)
    flat = np.random.default_rng(3).uniform(-2, 2, 40).astype(np.float64)
    numbers: list[Any] = [1.5, 2, True, np.float32(0.25), np.float64(3), np.int16(-2), np.array(0.5)]
    firsts = [*numbers, cube, flat, cube.T]
    seconds = [*numbers, cube[:, :1], cube[0, 0, 0, 0], cube[..., :1], np.arange(7), [1.0] * 7, flat[::-1]]
    for pair in [(first,) for first in firsts] if len(names) == 1 else [(a, b) for a in firsts for b in seconds]:
        arrays = [np.asarray(value) for value in pair]
        with contextlib.suppress(ValueError):
            full = np.broadcast_arrays(*arrays)
            typed = [a.dtype for value, a in zip(pair, arrays, strict=True) if type(value) not in WEAK]
            dtype = "float32" if typed and np.result_type(*typed) == np.float32 else "float64"
            plain = {name: array.astype(dtype) for name, array in zip(names, full, strict=True)}
            label = f"numbers and broadcasts {[(type(value).__name__, np.shape(value)) for value in pair]}"
            calls.right(label, dict(zip(names, pair, strict=True)), plain, dtype)
            calls.compiled(label, lambda: calls.function(*pair))  # noqa: B023  # called at once


@contextlib.contextmanager
def said() -> Iterator[list[str]]:
    """Capture the standard error, LLVM's included, inside the block; write it there afterwards."""
    lines: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        stderr_copy = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            sys.stderr.flush()
            os.dup2(stderr_copy, 2)
            os.close(stderr_copy)
            file.seek(0)
            text = file.read().decode(errors="replace")
            lines += text.splitlines()
            sys.stderr.write(text)


def check_row(checks: Checks, row: Row) -> None:
    for name in implementations(row):
        started = time.monotonic()
        check_implementation(checks, row, name)
        tell(f"{row.kernel_type.name} {name}: {checks.count} checks so far, {time.monotonic() - started:.0f} s")
    started = time.monotonic()
    calls = Calls(checks, row)
    for dtype in ("float32", "float64"):
        check_everyday(calls, dtype)
    check_axes(calls)
    check_shapes(calls)
    tell(f"{row.kernel_type.name} calls: {checks.count} checks so far, {time.monotonic() - started:.0f} s")


def tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # a script's output


def main(kernels: list[str]) -> int:
    started = time.monotonic()
    checks = Checks()
    target = cpu_target.target()
    python = f"Python {platform.python_version()}, NumPy {np.__version__}"
    tell(f"{target.architecture} {target.name}, vectors of {target.vector_bytes} bytes, {python}")
    with said() as complaints:
        with checks.one("compiled launcher"):
            assert launcher.reason_for_slow_path() is None, launcher.reason_for_slow_path()
        for row in all_schemas():
            if not kernels or row.kernel_type.name.lower() in kernels:
                check_row(checks, row)
    for failure in [*checks.failed, *(f"said: {line}" for line in complaints)]:
        tell(failure)
    wrong = len(checks.failed) + len(complaints)
    tell(f"{wrong} of {checks.count} checks failed, {time.monotonic() - started:.0f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
