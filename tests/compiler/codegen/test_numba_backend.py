"""The numba backend: an oracle for the LLVM generator, and its printed source."""

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from every_program import every_program

import jitkernels as jk
from jitkernels.benchmarks import long_functions, scalar_programs, small_cases, small_functions
from jitkernels.benchmarks.programs import all_programs
from jitkernels.compiler.codegen.core import module_text as emitted_programs
from jitkernels.compiler.codegen.numba.flow_printer import unprintable
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.lowering import numba_segment as segments
from jitkernels.errors import AttrError, NotUsableError

Make = Callable[[], tuple[Any, ...]]
FALLBACK_REASONS = {
    "arrays.swapped": "arrays change places",
    "arrays.rotated": "arrays change places",
    "arrays.swapped_elements": "arrays change places",
    "arrays.trained": "product",
    "arrays.filtered": "product",
    "slices.products_of_blocks": "product",
    "whole.lstm": "product",
    "scalars.levenshtein": "arrays change places",
    "small.moving_median": "kernel in a loop or branch",
}
"""Programs with a loop that the LLVM generator writes, and why; the nests in these are printed all the same."""


def programs() -> dict[str, tuple[Callable[..., Any], Make]]:
    found = dict(every_program())
    for function, make in (*scalar_programs.PROGRAMS.items(), *long_functions.FUNCTIONS.items()):
        found[f"scalars.{function.__name__}"] = function, make
    for name, function in small_functions.STRAIGHT.items():
        found[f"small.{name}"] = function, partial(numbers, 64)
    for function in small_functions.LOOPS:
        found[f"small.{function.__name__}"] = function, partial(numbers, 24)
    for name, function, arguments in small_cases.CASES:
        found[f"cases.{name}"] = function, partial(copy.deepcopy, arguments)
    return found


def numbers(count: int) -> tuple[Any, ...]:
    return (np.random.default_rng(count).random(count),)


@pytest.fixture(autouse=True)
def _compile_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays would be the plain function's."""
    monkeypatch.setattr(Specialization, "max_plain_elements_at_once", property(lambda _: -1))
    monkeypatch.setattr(Specialization, "max_plain_elements", property(lambda _: -1))


@pytest.fixture
def fallback_reasons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the reasons for which the LLVM backend compiles a loop."""
    found: list[str] = []

    def noted(flow: Any) -> str:
        reason = unprintable(flow)
        found.extend([reason] if reason else [])
        return reason

    monkeypatch.setattr(segments, "unprintable", noted)
    return found


@pytest.mark.parametrize("name", programs())
def test_every_program(name: str, fallback_reasons: list[str]) -> None:
    """Results and changed arguments match NumPy, by printed code unless `FALLBACK_REASONS` has an entry."""
    function, make = programs()[name]
    plain, given = make(), make()
    reason = jk.jit(function).explain(*make()).reason
    if reason:  # the LLVM generator has no code either: both fall back for the same reason
        assert jk.jit(function, backend="numba").explain(*given).reason == reason
        return
    compiled = jk.jit(function, backend="numba")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        expected = function(*plain)
        warnings.filterwarnings("error", ".*falls back to NumPy.*")
        got = compiled(*given)
    assert_like(got, expected)
    assert_like(given, plain)
    if name in FALLBACK_REASONS:
        assert fallback_reasons
        assert all(FALLBACK_REASONS[name] in reason for reason in fallback_reasons)
    else:
        assert not fallback_reasons


def assert_like(got: Any, expected: Any) -> None:
    ours, right = list(leaves(got)), list(leaves(expected))
    assert len(ours) == len(right)
    for one, other in zip(ours, right, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if other.dtype.kind != "f":
            assert np.array_equal(one, other)
            continue
        finite = np.abs(other[np.isfinite(other)])
        scale = max(float(finite.max(initial=0)), 1e-30)
        tolerance = 1e-3 if other.dtype.itemsize < 8 else 1e-9
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, dict):
        yield from leaves([*value.values()])
    elif isinstance(value, np.ndarray | np.generic | int | float | bool):
        yield value


SHAPES = {"rows": (5, 37), "one": (1, 3), "long": (2, 3000), "tall": (1500, 3), "empty": (0, 4)}
REDUCTIONS = ("sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax")
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "uint64", "int16", "bool")


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    numbers = np.random.default_rng(3).integers(0, 5, shape)
    found = (numbers % 2 if dtype == "bool" else numbers).astype(dtype)
    return found / 8 + 1 if np.dtype(dtype).kind == "f" else found


def reduced(x: Any, kinds: tuple[str, ...]) -> Any:
    return tuple(getattr(np, kind)(x, axis=axis) for kind in kinds for axis in (0, 1, None))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype: str) -> None:
    """Reduce along rows, along columns, over blocks of rows, and over all elements; in several parts."""
    for shape in SHAPES.values():
        if 0 in shape or (dtype == "float16" and max(shape) > 50):
            continue  # NumPy adds halves up in halves
        x = drawn(shape, dtype)
        kinds = tuple(kind for kind in REDUCTIONS if kind != "prod" or x.size < 300)
        compiled = jk.jit(lambda x, kinds=kinds: reduced(x, kinds), backend="numba", strict=True)
        with np.errstate(all="ignore"):
            assert_like(compiled(x), reduced(x, kinds))


def scanned(x: Any) -> Any:
    return np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.maximum.accumulate(x, axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16"])
def test_scans(dtype: str) -> None:
    for shape in SHAPES.values():
        if 0 not in shape:
            x = drawn(shape, dtype)
            assert_like(jk.jit(scanned, backend="numba", strict=True)(x), scanned(x))


def test_nan_and_long_sums() -> None:
    """NaN is found wherever it is; what parts of a sum lose is added in the end."""
    x = np.ones((3, 5000), np.float32)
    x[0, 0] = 1e8
    x[1, 4999] = np.nan
    x[2, 17] = np.inf

    def several(x: Any) -> Any:
        return x.sum(axis=1), x.max(axis=1), x.min(axis=0), x.argmax(axis=1), np.exp(x[2] - x[2].max()).sum()

    with np.errstate(all="ignore"):
        got, expected = jk.jit(several, backend="numba", strict=True)(x), several(x)
    assert_like(got[1:], expected[1:])
    assert abs(float(got[0][0]) - (1e8 + 4999)) <= 64
    many = np.full((1, 100_000), 0.37, np.float32)
    many[0, 0] = 1e10
    total = jk.jit(lambda x: x.sum(axis=1), backend="numba", strict=True)(many)
    assert abs(float(total[0]) - 1e10 - 37_000) <= 2048
    assert np.isnan(got[0][1])
    assert np.isinf(got[0][2])


SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, 1e-40, -3.0, 100.0, 0.3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation(dtype: str) -> None:
    """Each elementwise operation of the table matches the LLVM backend on special values, in every dtype it takes."""
    kind = np.dtype(dtype).kind
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype) if kind == "f" else drawn((12,), dtype)
    one, other = np.repeat(values, len(values)), np.tile(values, len(values))
    names = [name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)]
    usable = [name for name in names if runs(SCALARS[name].numpy, one, other)]
    assert len(usable) >= 15
    for first in range(0, len(usable), 12):
        listed = [SCALARS[name].numpy for name in usable[first : first + 12]]

        def several(one: Any, other: Any, listed: list[Any] = listed) -> Any:
            return tuple(ufunc(one) if ufunc.nin == 1 else ufunc(one, other) for ufunc in listed)

        with np.errstate(all="ignore"):
            ours = jk.jit(several, backend="numba", strict=True)(one, other)
            native = jk.jit(several, backend="native", strict=True)(one, other)
        for name, got, expected in zip(usable[first : first + 12], ours, native, strict=True):
            assert got.dtype == expected.dtype, name
            assert np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"), name
            if got.dtype.kind == "f":
                zeros = (got == 0) & (name not in ("maximum", "minimum", "fmax", "fmin"))
                assert np.array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros])), name


def runs(ufunc: Any, one: Any, other: Any) -> bool:
    """Whether NumPy has the operation for a type, and gives one of those that graphs know."""
    try:
        with np.errstate(all="ignore"):
            found = ufunc(one) if ufunc.nin == 1 else ufunc(one, other)
    except TypeError:
        return False
    return found.dtype.name in (*DTYPES, "int8", "uint16", "uint32")


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_printed_source_runs_in_cpython() -> None:
    """Its loops over flat arrays give the results of the compiled code."""
    x = drawn((4, 9), "float32")
    compiled = jk.jit(softmax)
    expected = compiled(x)
    text = compiled.source(backend="numba")
    assert "a0 is x: float32[n0, n1]" in text
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    nest, y = namespace["nest0"], np.empty(36, np.float32)
    known = {"a0": x.ravel(), "a1": y, "n0": 4, "n1": 9, "begin": 0, "end": 4}
    nest(**{name: known[name] for name in inspect.signature(nest).parameters})
    assert np.allclose(y.reshape(4, 9), expected, rtol=1e-6)


@pytest.mark.parametrize("name", all_programs())
def test_source_of_every_program(name: str) -> None:
    """It is Python functions with loops, whichever backend compiles the function."""
    program = all_programs()[name]
    with np.errstate(all="ignore"):
        text = jk.jit(program.function).source(*program.arguments(100, "float32"), backend="numba")
    compile(text, name, "exec")
    assert "def " in text
    assert "NumPy computes" not in text


def test_source_of_llvm() -> None:
    compiled = jk.jit(softmax, backend="numba")
    compiled(drawn((4, 9), "float32"))
    assert "define i64 @entry" in compiled.source(backend="native")


def test_functions_without_source_are_rejected() -> None:
    compiled = jk.jit(softmax)
    with pytest.raises(NotUsableError, match="softmax: there is no code"):
        compiled.source(backend="numba")
    compiled(drawn((4, 9), "float32"))
    with pytest.raises(AttrError, match="backend: expected native or numba, got 'interpreter'"):
        compiled.source(backend="interpreter")


def test_bailouts_of_index_errors() -> None:
    """A bailout leaves arrays as they were, and raises Python's exception."""

    def doubled(x: Any, places: Any) -> Any:
        for i in range(len(places)):
            x[places[i]] = x[places[i]] * 2
        return x

    compiled = jk.jit(doubled, backend="numba")
    for places in ([0, -1, 5, 3, 3, -6], [1, 2, 6], [1, -7]):
        x, at = np.arange(6.0), np.array(places)
        plain, given = x.copy(), x.copy()
        raised = []
        for function, array in ((doubled, plain), (compiled, given)):
            try:
                function(array, at)
            except IndexError as error:
                raised.append(str(error))
        assert len(raised) in (0, 2)
        assert len({*raised}) < 2
        assert np.array_equal(given, plain)
    assert not compiled.explain(np.arange(6.0), np.array([0, 1])).reason


def rotated(a: Any, b: Any, c: Any, n: Any) -> Any:
    for _ in range(n):
        a, b, c = b, c, a
    return a, b, c


def test_loop_carried_numbers_are_assigned_simultaneously() -> None:
    compiled = jk.jit(rotated, backend="numba", strict=True)
    for n in (2, 3, 4):
        assert compiled(1.0, 2.0, 3.0, n) == rotated(1.0, 2.0, 3.0, n)


def picked(x: Any, rows: Any, columns: Any) -> Any:
    sums = np.zeros(x.shape[1])
    np.add.at(sums, columns, x[0, columns])
    x[rows, 1] = -1.0
    return x[rows] * 2, x[rows, columns], x[:, columns].sum(axis=0), sums


def test_gathers() -> None:
    """Indices of both signs are read and written; of equal indices the last one counts, or all are added."""
    numbers = np.random.default_rng(7)
    rows, columns = numbers.integers(-9, 9, 40), numbers.integers(-5, 5, 40)
    plain, given = numbers.random((9, 5)), np.zeros((9, 5))
    given[...] = plain
    got = jk.jit(picked, backend="numba", strict=True)(given, rows, columns)
    assert_like(got, picked(plain, rows, columns))
    assert_like(given, plain)


def relaxed(u: Any, n: Any) -> Any:
    u = np.tanh(u) * 2
    for _ in range(n):
        for i in range(1, u.shape[0] - 1):
            if u[i, 0] > 0:
                u[i, 1:-1] = u[i - 1, 1:-1] + u[i + 1, 1:-1]
    return u.sum(axis=1)


def test_programs_of_many_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests and loops that are modules of their own find the functions that numba compiled."""
    monkeypatch.setattr(emitted_programs, "MIN_SEPARATE_CHARS", 1)
    u = drawn((9, 7), "float64") - 1.3
    compiled = jk.jit(relaxed, backend="numba", strict=True, cache=False)
    assert_like(compiled(u.copy(), 3), relaxed(u.copy(), 3))


def test_ranges_do_not_overflow() -> None:
    """A loop from the least integer ends like Python's: here with an index out of bounds."""

    def summed(x: Any, w: Any) -> Any:
        total = 0.0
        for i in range(w[0], w[1]):
            total += x[i]
        return total

    compiled, x = jk.jit(summed, backend="numba"), np.arange(5.0)
    for begin, end in ((-3, 4), (2, 2), (3, -(1 << 63))):
        w = np.array([begin, end])
        assert compiled(x, w) == summed(x, w)
    with pytest.raises(IndexError):
        compiled(x, np.array([-(1 << 63), 4]))
