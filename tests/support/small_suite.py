"""The suite in small, for a machine that the whole one takes too long on, such as an emulated one.

``python tests/small_suite.py [kernel...]`` needs nothing but the package: every row and usable implementation at a
dozen attrs in few objects, beside guard pages, in place, with special values; then what launcher and everyday
functions refuse, convert and read in place. It prints what fails, what LLVM or Python complained of, and how many
checks there were. The truth is the reference in long double, whose products go through no BLAS.
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
    # What OpenBLAS in NumPy's wheels chooses for a CPU with SVE multiplies wrongly under qemu-user.
    os.environ.setdefault("OPENBLAS_CORETYPE", "ARMV8")
os.environ["JITKERNELS_TUNE"] = "off"

import numpy as np

from jitkernels import machine, testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import JitKernelsError
from jitkernels.functions import Everyday
from jitkernels.kernel import Kernel
from jitkernels.native import copying, launch
from jitkernels.peers.forms import derived
from jitkernels.registry import all_rows, implementation, implementations
from jitkernels.signature import AnyArray
from jitkernels.testing import arguments
from jitkernels.testing.arguments import Form, assert_refused, read_only

ATTRS = 12
OBJECTS, GENERATED, EXACT = 2, 3, 5
"""How many attrs each implementation is checked at, and from how many objects, since it is these that take time: more
of generated kernels, and most of those for exactly one shape, which are small."""
SIZES = (0, 1, 2, 3, 7, 16, 33)
KINDS = 9
"""Each attr sees every ninth kind of data, the next attr the next ones."""
Row = Any
Given = dict[str, Any]


def some_attrs(row: Row, name: str) -> list[KernelAttr]:
    """The middle of each dtype, then a draw of sizes and options, as far as they add few objects."""
    found = implementation(row, name)
    middles = testing.middles(row)
    others = [attr for attr in testing.attrs_around(row, SIZES) if attr not in middles]
    random.Random(name).shuffle(others)
    kept: list[KernelAttr] = []
    texts: set[str] = set()
    for attr in [*middles, *others]:
        if found.reason_against(attr) is None and len(kept) < ATTRS:
            source = None if found.is_reference else found.source(attr, found.variants(attr)[0])
            text = source.text if source else ""
            most = EXACT if getattr(source, "exact", False) else GENERATED if name == "gen" else OBJECTS
            if text in texts or len(texts) < most:
                texts.add(text)
                kept.append(attr)
    return kept


class Checks:
    """How many checks there were, and what failed."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: list[str] = []

    @contextlib.contextmanager
    def one(self, label: str) -> Iterator[None]:
        """Whatever is raised inside is a failure, and the next check follows."""
        self.count += 1
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the suite tells all that is wrong
            self.failed.append(f"{label}: {type(error).__name__}: {error}".split("\n")[0])

    def refused(self, label: str, named: str, function: Any, *given: Any, **more: Any) -> None:
        with self.one(label):
            assert_refused(function, [*given], named, label, **more)


def check_implementation(checks: Checks, row: Row, name: str) -> None:
    found = implementation(row, name)
    attrs = some_attrs(row, name)
    refused = next((attr for attr in attrs if all(array.nbytes for array in attr.signature().arrays)), None)
    for number, attr in enumerate(attrs):
        label = f"{name} of {attr}"
        with checks.one(label):
            kernel = Kernel(attr, found, found.variants(attr)[0])
            for function in (kernel.callable, kernel.run):
                with checks.one(label):
                    testing.check_values(attr, function, label=label, seed=number)
                with checks.one(label):
                    checks.count += (
                        testing.check_refusals(attr, function, label=label) if attr is refused else 0
                    )
            with checks.one(label):
                testing.check_in_place(attr, kernel.callable, label=label)
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
    "strided": arguments.strided,
    "backwards": arguments.backwards,
    "fortran": np.asfortranarray,
    "unaligned": arguments.unaligned,
    "swapped": arguments.swapped,
    "derived": derived,
    "read-only": read_only,
    "inside": lambda value: np.pad(value, 2)[tuple(slice(2, 2 + n) for n in value.shape)],
}  # what the dispatcher takes itself from the second call on
OTHER_TYPES = ("float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# For special values: in long double something else overflows on the way, or the other zero is the larger one.
NEED_AN_ORACLE = ("attention", "group_norm", "vrelu", "vadd_relu")
WEAK = (float, int, bool)  # numbers that take the dtype of what they meet


class Watched(Everyday):
    """An everyday function that counts the calls which its dispatcher hands to Python."""

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

    def right(self, label: str, given: Given, plain: Given, dtype: str) -> None:
        """The call gives what the oracle gives for plain arrays of the same values, a second time as well."""
        for _ in range(2):
            with self.checks.one(f"{self.name}: {label}"), np.errstate(all="ignore"):
                self.compare(self.function(**given), plain, dtype)

    def compare(self, results: Any, plain: Given, dtype: str) -> None:
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
        """After a first call, the next one does not go through Python."""
        with self.checks.one(f"{self.name}: {label} is compiled"):
            call()
            before = self.watched.by_python
            call()
            assert self.watched.by_python == before, "a second call went through Python"


def example(row: Row, dtype: str) -> Given | None:
    """The arguments by name of an everyday call that comes to one of the attrs, one whose object exists if any."""
    for attr in [*some_attrs(row, "refer"), *testing.attrs_around(row, SIZES)]:
        given = testing.named(attr, 1)
        shapes = [v.shape for v in given.values() if isinstance(v, np.ndarray)]
        proper = all(min(shape, default=1) > 1 for shape in shapes)
        if proper and attr.fields()["dtype"] == dtype:
            with contextlib.suppress(JitKernelsError):
                if row.call(**given).attr == attr:
                    return given
    return None


def changed(given: Given, form: Form) -> Given:
    """The arguments with every array of floats changed."""
    floats = [key for key, value in given.items() if getattr(value, "dtype", None) in ("float32", "float64")]
    return {key: form(value) if key in floats else value for key, value in given.items()}


def check_everyday(calls: Calls, dtype: str) -> None:
    given = example(calls.row, dtype)
    if given is None:
        return
    for name, form in COMPILED.items():
        used = changed(given, form)
        calls.right(name, used, given, dtype)
        calls.compiled(name, lambda: calls.function(**used))  # noqa: B023  # called at once
    if any(getattr(value, "dtype", None) == dtype for value in given.values()):
        check_conversions(calls, given)
    check_results(calls, given, dtype)
    check_mistakes(calls, given)


def check_conversions(calls: Calls, given: Given) -> None:
    calls.right("lists", changed(given, lambda value: value.tolist()), changed(given, np.float64), "float64")
    for other in OTHER_TYPES:
        result = "float32" if other == "float16" else "float64"
        used = changed(given, lambda value: np.abs(value * 3).astype(other))  # noqa: B023  # called at once
        plain = {
            key: value.astype(result) if value is not given[key] else value for key, value in used.items()
        }
        calls.right(other, used, plain, result)
        if other != "float16" or copying.has_float16():
            calls.compiled(other, lambda: calls.function(**used))  # noqa: B023  # called at once
    label, wide = f"{calls.name}: long double", changed(given, np.longdouble)
    calls.checks.refused(label, calls.name, calls.function, **wide)


def unwritten(results: Iterable[AnyArray]) -> tuple[AnyArray, ...]:
    """Arrays like the results, of what none of them is."""
    return tuple(np.full_like(result, np.nan if result.dtype.kind == "f" else -1) for result in results)


def check_results(calls: Calls, given: Given, dtype: str) -> None:
    """``out`` in every form, by name and position, and over an input."""
    results = calls.function(**given)
    fresh: list[AnyArray] = [*results] if (several := isinstance(results, tuple)) else [results]
    for name, form in [*COMPILED.items(), ("double", np.float64)]:
        if name == "read-only" or (name == "double" and fresh[0].dtype.kind != "f"):
            continue
        for _ in range(2):
            with calls.checks.one(f"{calls.name}: out {name}"):
                outs = tuple(
                    o if name == "swapped" and o.itemsize == 1 else form(o) for o in unwritten(fresh)
                )
                calls.function(**given, out=outs if several else outs[0])
                own = (dtype if one.dtype.kind == "f" else one.dtype for one in fresh)
                plain = tuple(np.asarray(o).astype(d) for o, d in zip(outs, own, strict=True))
                calls.compare(plain if several else plain[0], given, dtype)
    parameters = calls.row.parameters().parameters
    every = [given.get(key, parameter.default) for key, parameter in parameters.items()]
    with calls.checks.one(f"{calls.name}: out by position"):
        outs = unwritten(fresh)
        calls.function(*every, outs if several else outs[0])
        calls.compare(outs if several else outs[0], given, dtype)
    calls.compiled("out", lambda: calls.function(**given, out=results))
    for key, value in given.items():
        if isinstance(value, np.ndarray) and value.dtype == fresh[0].dtype and value.size >= fresh[0].size:
            for first in (0, 1):
                room = np.zeros(value.size + 1, value.dtype)
                room[: value.size] = value.reshape(-1)
                shared = room[: value.size].reshape(value.shape)
                out = room[first : first + fresh[0].size].reshape(fresh[0].shape)
                outs = (out, *unwritten(fresh[1:]))
                with calls.checks.one(f"{calls.name}: out over {key}"):
                    calls.function(**given | {key: shared}, out=outs if several else out)
                    calls.compare(outs if several else out, given, dtype)


def check_mistakes(calls: Calls, given: Given) -> None:
    refused, function = calls.checks.refused, calls.function
    inputs = [a for a in calls.row.arrays if a.role == "in" and a.when]
    alone = [a.name for a in inputs if [b.when for b in inputs].count(a.when) == 1]  # may be left out
    for key, value in given.items():
        if isinstance(value, np.ndarray):
            wrongs: list[Any] = ["text", object(), {}, value.astype(complex), value.astype(object), None]
            for wrong in wrongs[:-1] if key in alone else wrongs:
                refused(f"{calls.name}: {key}", calls.name, function, **given | {key: wrong})
        elif not isinstance(value, int):
            refused(f"{calls.name}: {key}", key, function, **given | {key: "no such"})
    (out, *_) = result if isinstance(result := function(**given), tuple) else (result,)
    other = out.astype(np.int64 if out.dtype.kind == "f" else np.bool_)
    wrongs = [out.tolist(), other, out[np.newaxis].copy(), read_only(out), "text", ()]
    for wrong in [*wrongs, (out,) * 9]:
        for _ in range(2):
            refused(f"{calls.name}: out", "out", function, **given, out=wrong)
    refused(f"{calls.name}: name", "nonsense", function, **given, nonsense=1)
    refused(f"{calls.name}: nothing", calls.name, function)
    refused(f"{calls.name}: count", calls.name, function, *[None] * 20)
    for shape in ((), (0,), (3, 0), (0, 3), (2, 0, 3)):
        with calls.checks.one(f"{calls.name} of shape {shape}"), contextlib.suppress(JitKernelsError):
            function(**changed(given, lambda value: np.zeros(shape, value.dtype)))  # noqa: B023  # called at once


def check_axes(calls: Calls) -> None:
    """Any axis, and more dimensions than a kernel has."""
    first = next(iter(calls.row.parameters().parameters))
    value = np.random.default_rng(1).uniform(-2, 2, (2, 3, 2, 3, 5)).astype(np.float32)
    needed = {p.name: 2 for p in calls.row.parameters().parameters.values() if p.default is p.empty}
    given: Given = needed | {first: value}
    if "axis" in calls.row.parameters().parameters:
        for axis in range(-5, 5):
            calls.right(f"axis {axis}", given | {"axis": axis}, given | {"axis": axis}, "float32")
            calls.compiled(f"axis {axis}", lambda: calls.function(**given, axis=axis))  # noqa: B023  # called at once
        for wrong in (5, -6, 1.5, "x"):
            calls.checks.refused(f"{calls.name}: axis", "axis", calls.function, **given, axis=wrong)


def check_shapes(calls: Calls) -> None:
    """Elementwise functions of numbers, broadcast rows and columns, and many dimensions, against whole arrays."""
    row = calls.row
    if len({argument.shape for argument in row.arrays}) > 1 or len(row.arrays[0].extents) != 1:
        return
    names = [argument.name for argument in row.arrays if argument.role == "in"]
    cube = np.random.default_rng(2).uniform(-2, 2, (2, 3, 1, 2, 7)).astype(np.float32)
    flat = np.random.default_rng(3).uniform(-2, 2, 40).astype(np.float64)
    numbers: list[Any] = [1.5, 2, True, np.float32(0.25), np.float64(3), np.int16(-2), np.array(0.5)]
    firsts = [*numbers, cube, flat, cube.T]
    seconds = [*numbers, cube[:, :1], cube[0, 0, 0, 0], cube[..., :1], np.arange(7), [1.0] * 7, flat[::-1]]
    for pair in [(one,) for one in firsts] if len(names) == 1 else [(a, b) for a in firsts for b in seconds]:
        arrays = [np.asarray(value) for value in pair]
        with contextlib.suppress(ValueError):
            whole = np.broadcast_arrays(*arrays)
            typed = [a.dtype for value, a in zip(pair, arrays, strict=True) if type(value) not in WEAK]
            dtype = "float32" if typed and np.result_type(*typed) == np.float32 else "float64"
            plain = {name: array.astype(dtype) for name, array in zip(names, whole, strict=True)}
            label = f"numbers and broadcasts {[(type(value).__name__, np.shape(value)) for value in pair]}"
            calls.right(label, dict(zip(names, pair, strict=True)), plain, dtype)
            calls.compiled(label, lambda: calls.function(*pair))  # noqa: B023  # called at once


@contextlib.contextmanager
def said() -> Iterator[list[str]]:
    """What anyone, LLVM included, writes to the standard error meanwhile; it is written there afterwards."""
    lines: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text = file.read().decode(errors="replace")
            lines += text.splitlines()
            sys.stderr.write(text)


def check_row(checks: Checks, row: Row) -> None:
    for name in implementations(row):
        started = time.monotonic()
        check_implementation(checks, row, name)
        tell(
            f"{row.kernel_type.name} {name}: {checks.count} checks so far, {time.monotonic() - started:.0f} s"
        )
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
    target = machine.target()
    python = f"Python {platform.python_version()}, NumPy {np.__version__}"
    tell(f"{target.architecture} {target.name}, vectors of {target.vector_bytes} bytes, {python}")
    with said() as complaints:
        with checks.one("compiled launcher"):
            assert launch.reason_for_slow_path() is None, launch.reason_for_slow_path()
        for row in all_rows():
            if not kernels or row.kernel_type.name.lower() in kernels:
                check_row(checks, row)
    for failure in [*checks.failed, *(f"said: {line}" for line in complaints)]:
        tell(failure)
    wrong = len(checks.failed) + len(complaints)
    spent = f"{time.monotonic() - started:.0f} s, {time.process_time():.0f} s of computing"
    tell(f"{wrong} of {checks.count} checks failed, {spent}")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
