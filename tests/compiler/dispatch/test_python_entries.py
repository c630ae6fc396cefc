"""Calls of compiled functions enter through Python while code is made, and no longer, for every kind of argument."""

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from argument_kinds import FLOATS, INTS, KINDS, SETTLING, entries_after, not_interned, outcome, pickled, same
from every_program import every_program

import jitkernels as jk
from jitkernels.compiler.dispatch import program_entry
from jitkernels.compiler.dispatch.object_guards import UnreachableError

PROGRAMS = every_program()


OTHERS = {"not interned": str, "named tuples": tuple}
"""Kinds that are the plain arguments unless these have such a type in them, which those of no program have."""
SHARES = {"pickled": (0, 2), "computed from pickled": (1, 2), **{name: (i, 2) for i, name in enumerate(INTS)}}
"""Kinds that share the programs in turn, of which each has the n-th of so many."""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHERS])
def test_no_program_is_entered_through_python(kind: str) -> None:
    first, every = SHARES.get(kind, (0, 1))
    check_entries(kind, first, every)


@pytest.mark.full
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in SHARES])
def test_no_program_is_entered_through_python_by_any_kind(kind: str) -> None:
    check_entries(kind, 0, 1)


def has(kind: type, value: Any) -> bool:
    """Whether an argument is of a type, or has such in it."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return type(value) is kind or any(has(kind, item) for item in items)


def test_no_program_takes_other_kinds() -> None:
    for _, make in PROGRAMS.values():
        assert not any(has(kind, value) for value in make() for kind in OTHERS.values())


def check_entries(kind: str, first: int, every: int) -> None:
    served = 0
    wrong = {}
    for name, (function, make) in itertools.islice(PROGRAMS.items(), first, None, every):

        def arguments(make: Callable[[], tuple[Any, ...]] = make) -> tuple[Any, ...]:
            found: tuple[Any, ...] = KINDS[kind](make())
            return found

        given, plain = arguments(), make()
        if kind in (*INTS, *FLOATS, "bool") and list(map(type, given)) == list(map(type, plain)):
            continue
        try:
            with np.errstate(all="ignore"):
                function(*arguments())
        except (OverflowError, ValueError, TypeError, IndexError):
            continue  # which is the program's own way with such numbers
        found = entries_after(jk.jit(function), arguments)
        served += 1
        if found:
            wrong[name] = found
    assert not wrong
    assert served or kind == "bool"


def zeros(n: Any) -> Any:
    return np.zeros(n)


def windows(x: Any, n: Any) -> Any:
    found = np.zeros(x.size - n + 1)
    for i in range(found.size):
        found[i] = np.sum(x[i : i + n])
    return found


def bounded(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += x[i] * 2
    return total


def guarded(x: Any, n: Any) -> Any:
    if n <= 2:
        raise ValueError("too few")
    if x.shape[0] < n:
        raise ValueError("too many")
    return np.exp(-x) * n


def halves(x: Any, n: Any) -> Any:
    return x[: n // 2].sum() + x[x.size - n :].max() + int(n)


OF_INTS: dict[str, Callable[..., Any]] = {
    "zeros": lambda x, n: zeros(n),
    "windows": windows,
    "bounded": bounded,
    "guarded": guarded,
    "halves": halves,
    "reshaped": lambda x, n: x[: n * 2].reshape(n, 2) + 1,
    "rolled": lambda x, n: np.roll(x, n) * n,
    "compared": lambda x, n: x + 1 if 2 * n >= x.size else x - 1,
    "counted": lambda x, n: [x[i] for i in range(n)],
    "true": lambda x, n: x + n if n else x,
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("name", OF_INTS)
def test_numpy_ints_are_symbolic_sizes(name: str, dtype: str) -> None:
    function, x = OF_INTS[name], np.arange(40.0)
    compiled, by_ints = jk.jit(function), jk.jit(function)
    kind = np.dtype(dtype).type
    for n in (7, 8, 9, 20, 7):
        same(compiled(x, kind(n)), function(x, kind(n)))
        by_ints(x, n)
    assert compiled.stats().compiles == by_ints.stats().compiles
    assert entries_after(compiled, lambda: (x, kind(8))) == ()
    assert not any(reason.startswith("falls back to NumPy") for reason, _ in compiled.stats().python_reasons)
    if function is not windows:  # sums of narrow ints are checked, and loops with checks stay loops
        assert by_ints.explain(x, 8).kernels == compiled.explain(x, kind(8)).kernels


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", OF_INTS)
def test_numpy_ints_overflow_as_in_numpy(name: str, dtype: str) -> None:
    """A sum beyond its type is another number in NumPy, or raises: no symbol may represent it."""
    function, x, kind = OF_INTS[name], np.arange(300.0), np.dtype(dtype).type
    compiled = jk.jit(function)
    with np.errstate(all="ignore"):
        for n in (100, 127, 3, 0, 1, 2):
            for _ in range(2):
                expected, found = outcome(function, x, kind(n)), outcome(compiled, x, kind(n))
                if isinstance(expected, type):
                    assert found == expected
                elif name != "bounded" or n:  # loops of no rounds give numbers of NumPy
                    same(found, expected)


@pytest.mark.parametrize("dtype", ["float16", *FLOATS])
def test_branches_on_numpy_floats(dtype: str) -> None:
    def scaled(x: Any, a: Any) -> Any:
        if a < 0:
            raise ValueError("negative")
        return x * a if a > 0.3 else x / (a + 1)

    compiled, x, kind = jk.jit(scaled), np.arange(40, dtype=dtype), np.dtype(dtype).type
    for a in (0.5, 0.25, 0.75, 0.1, 0.3, 2.0, np.inf, np.nan, 0.0, -0.0):
        with np.errstate(all="ignore"):
            for _ in range(2):
                same(compiled(x, kind(a)), scaled(x, kind(a)))
    with pytest.raises(ValueError, match="negative"):
        compiled(x, kind(-1))
    assert compiled.stats().compiles <= 7
    for a in (0.6, 0.2):
        assert entries_after(compiled, partial(lambda a: (x, kind(a)), a)) == ()


class Holder(NamedTuple):
    x: Any
    scale: float


class Object:
    def __init__(self, x: Any) -> None:
        self.x = x


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "named tuple": (lambda x: Holder(x, 2.0), lambda one: one.x),
    "list": (lambda x: [x], lambda one: one[0]),
    "dict": (lambda x: {"x": x}, lambda one: one["x"]),
    "dict by a tuple": (lambda x: {(1, 2): x}, lambda one: one[1, 2]),
    "object": (Object, lambda one: one.x),
}
OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x + 1,
    "view": lambda x: x[::2],
    "sorted": lambda x: np.sort(x)[::-1],
    "tuple": lambda x: (x[1:], x * 2),
}


@pytest.mark.parametrize("held", HOLDERS)
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays_inside_of_arguments(name: str, held: str) -> None:
    hold, take = HOLDERS[held]

    def function(given: Any) -> Any:
        return OF_ARRAYS[name](take(given))

    compiled = jk.jit(function)
    for size in (16, 1000):
        for x in (np.arange(float(size)), pickled(np.arange(float(size)))):
            same(compiled(hold(x)), function(hold(x)))
            assert entries_after(compiled, partial(lambda x: (hold(x),), x), calls=20) == ()


def test_strings_and_names_that_are_not_interned() -> None:
    def reduced(x: Any, *, how: str = "sum") -> Any:
        return np.sort(x)[::-1] if how == "a longer name" else (x * 2).sum()

    compiled, x = jk.jit(reduced), np.arange(9.0)
    how, name = not_interned("a longer name"), not_interned("how")
    for value in (how, not_interned("sum of all")):
        for _ in range(SETTLING):
            compiled(x, **{name: value})
        before = compiled.stats().python_entries
        for _ in range(5):
            same(compiled(x, **{not_interned("how"): not_interned(value)}), reduced(x, how=value))
        assert compiled.stats().python_entries == before


def test_ints_that_python_does_not_cache() -> None:
    def rows(x: Any, n: Any) -> Any:
        if n > 5000:
            raise ValueError("too many")
        return x[::2]

    compiled, x = jk.jit(rows), np.arange(9.0)
    assert entries_after(compiled, lambda: (x, int("1000"))) == ()


def test_arrays_of_longlong() -> None:
    compiled = jk.jit(lambda x: x * 3 + 1)
    for name in ("longlong", "ulonglong", "int64", "uint64"):
        x = np.arange(50, dtype=name)
        assert entries_after(compiled, partial(lambda x: (x,), x)) == ()
        np.testing.assert_array_equal(compiled(x), x * 3 + 1)


@pytest.mark.parametrize("dtype", [">f8", ">i4", "complex128", "datetime64[s]", "float32"])
def test_dtype_guards_compare_byte_order_and_number(dtype: str) -> None:
    """Neither part of the dtype word is left out."""
    compiled = jk.jit(lambda x: x + x if x.dtype.kind != "M" else x)
    for known in (np.arange(5.0), np.arange(5, dtype="int32")):
        for _ in range(SETTLING):
            compiled(known)
    other = np.arange(5).astype(dtype)
    for x in (other, pickled(other)):
        for _ in range(SETTLING):
            found = compiled(x)
            expected = x if other.dtype.kind == "M" else x + x
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_kernels_take_arrays_that_were_pickled() -> None:
    kernel = jk.KernelFuncs.cache().at(jk.VMulAttr(n=8, dtype="float32"))
    x, y, z = (np.arange(8, dtype=np.float32) for _ in range(3))

    def took(*arrays: Any) -> float:
        best = np.inf
        for _ in range(20):
            began = time.perf_counter()
            for _ in range(50):
                kernel(*arrays)
            best = min(best, time.perf_counter() - began)
        return best

    plain, other = took(x, y, z), took(*map(pickled, (x, y, z)))
    assert other < 20 * plain  # the launcher's path in Python takes 250 times as long
    out = pickled(np.zeros(8, np.float32))
    kernel(pickled(x), pickled(y), out)
    np.testing.assert_array_equal(out, x * y)


def test_stats_and_explain_report_entries() -> None:
    class Foreign:
        def __init__(self, array: Any) -> None:
            self.__array_interface__ = array.__array_interface__

    array = np.linspace(0.0, 1.0, 2000)
    compiled = jk.jit(lambda x: np.exp(x) * 2 + np.sqrt(x))
    explanation = str(compiled.explain(array))
    assert "enter through Python" not in explanation
    for _ in range(SETTLING):
        compiled(array)
    assert compiled.stats().python_entries <= 2
    foreign = Foreign(array)
    assert "enter through Python: an array of another library" in str(compiled.explain(foreign))
    before = compiled.stats().python_entries
    for _ in range(2):
        compiled(foreign)
    assert compiled.stats().python_entries == before + 2
    assert "an array of another library" in str(compiled.stats())
    assert "enter through Python: an array of another library" in str(compiled.explain(foreign))
    before = compiled.stats().python_entries
    with np.errstate(all="raise"):
        compiled(array)
        assert compiled.stats().python_entries == before
        compiled(array, out=np.empty(2000))
    assert any("floating-point" in reason for reason, _ in compiled.stats().python_reasons)


def unreachable(*_: Any) -> Any:
    raise UnreachableError("a test")


def loop(given: Any) -> Any:
    total = 0.0
    for i in range(given[0].size):
        total += given[0][i] * i
    return total


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: (x,)])
def test_plain_function_serves_calls_without_compiled_entry(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    """Such calls are not slower than the plain function's."""
    monkeypatch.setattr(program_entry, "build_entry", unreachable)
    compiled: Any = jk.jit(lambda given: given[0][::2].sum() * 2.0)
    small = make(np.arange(40.0))
    for _ in range(12):
        same(compiled(small), compiled.__wrapped__(small))
    before = compiled.stats().python_entries
    for _ in range(200):
        compiled(small)
    assert compiled.stats().python_entries == before
    assert "enter through Python: a test" in str(compiled.explain(small))


def test_compiled_code_entered_from_python_serves_long_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_entry, "build_entry", unreachable)
    compiled, large = jk.jit(loop), [np.arange(30_000.0)]
    for _ in range(12):
        same(compiled(large), loop(large))
    before = compiled.stats().python_entries
    for _ in range(10):
        compiled(large)
    assert compiled.stats().python_entries == before + 10


def test_products_that_need_more_than_64_bits() -> None:
    """NumPy's int64 wraps around, and is another bound then."""

    def cut(x: Any, n: Any) -> Any:
        return x[: n * 10**10] + 1

    compiled, x = jk.jit(cut), np.arange(9.0)
    with np.errstate(all="ignore"):
        for n in (3, 5, 2**30 + 1, 2**30, 7):
            same(compiled(x, np.int64(n)), cut(x, np.int64(n)))


def test_products_of_extents_and_ints_of_numpy() -> None:
    compiled = jk.jit(lambda x, n: np.zeros(x.size * n) + n)
    for size, n in ((4, 3), (5, 9), (100, 7)):
        np.testing.assert_array_equal(compiled(np.arange(float(size)), np.int64(n)), np.full(size * n, n))
    assert compiled.stats().compiles == 1


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_negative_ints_of_numpy(dtype: str) -> None:
    def rolled(x: Any, n: Any) -> Any:
        return np.roll(x, n) + x[n:].sum()

    compiled, x, kind = jk.jit(rolled), np.arange(40.0), np.dtype(dtype).type
    for n in (-3, -5, -7, 3):
        same(compiled(x, kind(n)), rolled(x, kind(n)))
    assert compiled.stats().compiles == 2
    assert entries_after(compiled, lambda: (x, kind(-8))) == ()
    same(compiled(x, kind(-9)), rolled(x, kind(-9)))
