"""Whole arrays of other dtypes: the bits are those of converting first, whether blocks or a nest does it."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import cases
import numpy as np
import pytest
from test_everyday import Row, function_of
from test_everyday_forms import DTYPES, compiled

import jitkernels as jk
from jitkernels import converting, dtypes, functions
from jitkernels.choosing import best_variant
from jitkernels.errors import BuildError
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.locks import making
from jitkernels.native import code, load
from jitkernels.native.code import Code
from jitkernels.native.layout import ADDRESS_BITS, CONVERTING, KIND_BITS, NUMBER, Known, Plain, Table
from jitkernels.registry import implementation, implementations
from jitkernels.signature import AnyArray
from jitkernels.testing.guards import Guarded

SIZES = (*range(34), 48, 960)
COMBINATIONS = 480
"""How many combinations of dtypes all rows together may try, roughly."""
GUARDED = (1, 7, 8, 15, 33, 48)


def rows() -> Sequence[Any]:
    """The rows whose whole arrays need nothing but conversion."""
    tables = {param.id: functions._holder_of(param.id)._dispatch for param in cases.every_row()}
    words = {name: table.words for name, table in tables.items() if table is not None}
    return [
        param
        for param in cases.every_row()
        if words.get(param.id, [0] * 99)[Table.PLAIN] == Plain.ELEMENTWISE
        and not words[param.id][Table.MOVES]  # these need no kernel
    ]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nests are made at the first call; nothing is known yet."""
    monkeypatch.setattr(functions, "PATIENCE", 0.0)
    KernelFuncs.cache().clear()
    yield
    KernelFuncs.cache().clear()


def nests(row: Row) -> list[int]:
    """The entries for inputs of other dtypes, 0 where these are converted first."""
    table = functions._holder_of(row.kernel_type.name.lower())._dispatch
    assert table is not None
    forms = 2**KIND_BITS - 1
    return [
        int(table._contexts[key][Known.ENTRY])
        for key in sorted(table._listed)
        if key & CONVERTING
        and max(key >> ADDRESS_BITS & forms, key >> ADDRESS_BITS + KIND_BITS & forms) < NUMBER
    ]


def numbers(n: int, dtype: str, seed: int) -> AnyArray:
    """Of both signs, with zeros, the largest and the smallest, and what else there is of floats."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, n).astype(bool)
    if np.dtype(dtype).kind == "f":
        values = generator.uniform(-9, 9, n).astype(dtype)
        special = [np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    else:
        limits = np.iinfo(dtype)
        values = generator.integers(max(limits.min, -9), 10, n).astype(dtype)
        special = [limits.min, limits.max, limits.max - 1, 0]
    places = generator.integers(0, max(n, 1), n // 3)
    values[places] = generator.choice(np.array(special, dtype), len(places))
    return values


def wide(arrays: Sequence[AnyArray]) -> str:
    return "float32" if np.result_type(*arrays) in (np.float16, np.float32) else "float64"


def bits(result: AnyArray) -> tuple[Any, ...]:
    """Of what a result is; NaN is NaN."""
    return result.dtype, result.shape, np.where(np.isnan(result), np.nan, result).tobytes()


def arguments(row: Row, kinds: Sequence[str], n: int) -> list[AnyArray]:
    return [numbers(n, kind, 100 * n + place) for place, kind in enumerate(kinds)]


def inputs_of(row: Row) -> int:
    return sum(argument.role == "in" for argument in row.arrays)


def all_kinds(row: Row) -> Sequence[tuple[str, ...]]:
    """All combinations of dtypes; where there are many rows each takes some of them, one after the other in turn."""
    kinds = list(itertools.product(DTYPES, repeat=inputs_of(row)))
    step = len(kinds) * len(rows()) // COMBINATIONS | 1  # odd, or every one would have the same second dtype
    return kinds[[param.values[0] for param in rows()].index(row) % step :: step]


def check(row: Row, kinds: Sequence[str], sizes: Sequence[int] = SIZES) -> None:
    """Calls of every kind give what they give of arrays that were converted before."""
    function = function_of(row)
    for n in sizes:
        given = arguments(row, kinds, n)
        dtype = wide(given)
        expected = bits(function(*[array.astype(dtype) for array in given]))
        label = (*kinds, n)
        assert bits(compiled(function, *given)) == expected, label
        room = np.full(n + 2, 7, dtype)
        compiled(function, *given, out=room[1:-1])
        assert bits(room[1:-1].copy()) == expected, label
        assert room[0] == room[-1] == 7, label
        if n in (7, 960):
            apart = [np.repeat(array, 2)[::2] for array in given]
            assert bits(compiled(function, *apart)) == expected, label
            with jk.use(implementation="refer"):
                reference = function(*given)
            near = 1e-15 if dtype == "float64" else 1e-6
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(function(*given), reference, rtol=near)
        if n in GUARDED:
            for side in ("start", "end"):
                guarded = [Guarded(array, side) for array in given]
                assert bits(function(*[one.array for one in guarded])) == expected, label
                assert all(one.intact() for one in guarded), label
                seconds = [Guarded(np.repeat(array, 2)[:-1], side).array[::2] for array in given]
                assert bits(compiled(function, *seconds)) == expected, label


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("row", rows())
def test_every_pair_of_dtypes(row: Row) -> None:
    for kinds in all_kinds(row):
        check(row, kinds)
    known = [
        kinds for kinds in all_kinds(row) if {*kinds} <= {*dtypes.TABLE} and {*kinds} != {wide_of(kinds)}
    ]
    converts = converting.nest_of(kernel_of(row), ["int8"] * inputs_of(row)) is not None
    assert sum(entry != 0 for entry in nests(row)) == (len(known) if converts else 0)


def wide_of(kinds: Sequence[str]) -> str:
    return wide([np.zeros(1, kind) for kind in kinds])


def kernel_of(row: Row) -> Kernel:
    return KernelFuncs.cache().of_class(row(n=960, dtype="float64"))


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("kinds", [("float32",) * 2, ("float64",) * 2, ("int16", "float32")], ids=str)
def test_gaps_of_any_size(row: Row, kinds: tuple[str, str]) -> None:
    """One array or both, to and fro, one element again and again, over the ends of blocks."""
    function = function_of(row)
    for n in (2, 16, 17, 511, 513, 1030):
        for step in (-3, -2, -1, 0, 2, 3, 16):
            given = arguments(row, kinds[: inputs_of(row)], n)
            for which in (given, given[:1]):
                apart = [gaps(array, step) for array in which] + given[len(which) :]
                expected = bits(function(*[np.ascontiguousarray(array) for array in apart]))
                assert bits(compiled(function, *apart)) == expected, (kinds, n, step)
                out = np.empty(n, wide(given))
                assert compiled(function, *apart, out=out) is out
                assert bits(out) == expected, (kinds, n, step)


def gaps(array: AnyArray, step: int) -> AnyArray:
    """The same elements so many places apart; of no step the first alone, again and again."""
    if step == 0:
        return np.broadcast_to(array[:1], array.shape)
    room = np.full(len(array) * abs(step), 7, array.dtype)[::step]
    room[:] = array
    return room


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("step", [-3, -2, -1, 2, 3])
def test_a_result_among_the_gaps(row: Row, step: int) -> None:
    """Where a result lies over an input or between its elements, before it or behind it, all was read before."""
    n = 530
    function = function_of(row)
    end = n * abs(step)
    for start in (0, 1, end - n, end - n + 1, end - 1, end):
        room = numbers(end + n, "float64", start)
        first = room[:end][::step]
        others = arguments(row, ["float64"] * inputs_of(row), n)[1:]
        expected = bits(function(first.copy(), *others))
        out = room[start : start + n]
        function(first, *others, out=out)
        assert bits(out) == expected, (step, start)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("row", [p for p in rows() if p.values[0].__module__.startswith("jitkernels.")])
def test_generated_kernels_convert(row: Row) -> None:
    assert converting.nest_of(kernel_of(row), ["int8"] * inputs_of(row)) is not None


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kinds", [("int8", "uint8"), ("float32", "int16"), ("bool", "float64")], ids=str)
def test_a_mistake_in_the_order_of_dtypes_is_seen(
    kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = converting.nest_of
    monkeypatch.setattr(converting, "nest_of", lambda kernel, names: right(kernel, names[::-1]))
    with pytest.raises(AssertionError, match=kinds[0]):
        check(jk.VMulAttr, kinds, [33])


def test_calls_pay_for_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call waits for nothing; what is there already, after everything was forgotten, is taken at once."""
    KernelFuncs.cache().clear()
    monkeypatch.setattr(functions, "PATIENCE", 2e-6)
    monkeypatch.setattr(Code, "is_loaded", False)
    given = numbers(960, "int8", 0), numbers(960, "uint8", 1)
    expected = bits(np.multiply(*given, dtype=np.float64))
    seen = []
    for _ in range(40):
        assert bits(jk.vmul(*given)) == expected
        seen += [[*map(bool, nests(jk.VMulAttr))]]
    assert seen[:4] == [[False]] * 4
    assert seen[-1] == [True]
    monkeypatch.undo()
    KernelFuncs.cache().clear()
    assert nests(jk.VMulAttr) == []
    jk.vmul(*given)
    assert [*map(bool, nests(jk.VMulAttr))] == [True]
    assert bits(compiled(jk.vmul, *given)) == expected
    KernelFuncs.cache().clear()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("row", "name"), [p for p in cases.every_implementation() if p.values[0] in [r.values[0] for r in rows()]]
)
def test_a_pin_is_a_pin(row: Row, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment: only an implementation's own nest may stand in for it."""
    attr = row(n=960, dtype="float64")
    if implementation(row, name).reason_against(attr) is not None:
        pytest.skip(f"{name} cannot be used here")
    monkeypatch.setenv("JITKERNELS_USE", f"{attr.name}={name}")
    given = arguments(row, ["int32", "uint8"][: inputs_of(row)], 960)
    expected = np.empty(960)
    KernelFuncs.cache().get(attr, implementation(row, name))(*[a.astype(np.float64) for a in given], expected)
    for _ in range(4):
        assert bits(function_of(row)(*given)) == bits(expected)
    assert [*map(bool, nests(row))] == ([] if name == "refer" else [name == "gen"])


@pytest.mark.usefixtures("eager")
def test_another_pick_has_another_nest() -> None:
    """What was measured to be better serves other dtypes from then on as well."""
    attr = jk.VSigmoidAttr(n=1024, dtype="float64")
    given = numbers(960, "int16", 0)
    jk.vsigmoid(given)
    kernel = KernelFuncs.cache().of_class(attr)
    assert kernel.implementation == "gen"
    found = implementation(jk.VSigmoidAttr, "mix")
    kernel.become(Kernel(attr, found, best_variant(attr, found)))
    table = functions._holder_of("vsigmoid")._dispatch
    assert table is not None
    table.put(table.key(attr.fields()), kernel.address, long=False)
    expected = np.empty(960)
    KernelFuncs.cache().get(jk.VSigmoidAttr(n=960, dtype="float64"), found)(
        given.astype(np.float64), expected
    )
    for _ in range(3):
        assert bits(jk.vsigmoid(given)) == bits(expected)
    assert sorted(map(bool, nests(jk.VSigmoidAttr))) == [False, True]


@pytest.mark.usefixtures("eager")
def test_where_all_give_the_same_bits_any_nest_will_do() -> None:
    attr = jk.VMulAttr(n=1024, dtype="float64")
    for name in implementations(jk.VMulAttr):
        found = implementation(jk.VMulAttr, name)
        if name != "refer" and found.reason_against(attr) is None:
            kernel = Kernel(attr, found, best_variant(attr, found))
            assert converting.nest_of(kernel, ["int8", "bool"]) is not None, name
            kernel.rule = "pinned"
            assert (converting.nest_of(kernel, ["int8", "bool"]) is None) == (name != "gen")


@pytest.mark.parametrize("patience", [0.0, 1e9])
@pytest.mark.parametrize("other", ["bool", "float32", "float64"])
def test_any_byte_but_0_is_true(other: str, patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of bool that were never written as such hold other bytes than 0 and 1."""
    monkeypatch.setattr(functions, "PATIENCE", patience)
    KernelFuncs.cache().clear()
    for n in (5, 200):
        x = np.arange(n, dtype=np.uint8).view(bool)
        y = np.ones(n, other)
        dtype = wide([x, y])
        for one, two in ((x, y), (x[::-1], y), (x, x)):
            expected = (np.arange(n) != 0).astype(dtype if two is y else np.float64)
            assert bits(compiled(jk.vmul, one, two)) == bits(expected[::-1] if one is not x else expected)
    KernelFuncs.cache().clear()


def test_nests_are_made_under_the_lock_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that makes a kernel holds it first, and then waits for the same nest's code."""
    monkeypatch.setattr(functions, "PATIENCE", 0.0)
    KernelFuncs.cache().clear()
    seen = []

    def looked_at(nest: Code) -> int:
        seen.append(making._is_owned())  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr(converting, "address_of", looked_at)
    jk.vmul(numbers(9, "int8", 0), numbers(9, "uint8", 1))
    KernelFuncs.cache().clear()
    assert seen == [True]


def test_a_nest_that_cannot_be_built(fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(functions, "PATIENCE", 0.0)
    given = numbers(600, "int8", 0), numbers(600, "uint8", 1)
    monkeypatch.setattr(load, "_loaded", {})
    monkeypatch.setattr(load, "_held", WeakValueDictionary())
    monkeypatch.setattr(code, "_known", {})
    jk.vmul(*[array.astype(np.float64) for array in given])

    def refused(self: Any, symbol: str) -> bytes:
        raise BuildError("no compiler")

    monkeypatch.setattr("jitkernels.native.loop_nest.LoopNest.object_code", refused)
    for _ in range(3):
        assert bits(jk.vmul(*given)) == bits(np.multiply(*given, dtype=np.float64))
    assert nests(jk.VMulAttr) == [0]
    assert [record.message for record in caplog.records if "converting first" in record.message] == [
        "vmul_float64_of_int8_uint8 cannot be built, converting first: no compiler"
    ]


NUMBERS = (
    2.5, -0.0, 3, True, 2**40 + 1, 1e300, float("nan"), np.float32(0.1), np.float64(0.1), np.float16(0.1), np.int8(-3),
    np.uint16(3), np.int64(2**53 + 1), np.bool_(True), np.array(0.1), np.array(0.1, np.float32), np.array(7),
    np.array(0.1, ">f8"), np.zeros(9, np.uint8)[1:].view(np.float64)[0:].reshape(()),
)  # fmt: skip


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("row", [p for p in rows() if inputs_of(p.values[0]) == 2])
@pytest.mark.parametrize("nests", [True, False])
def test_numbers_beside_arrays(row: Row, nests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests read them where calls blockwise have them written down as often as there are elements."""
    for owner, name, value in () if nests else ((functions, "PATIENCE", 1e9), (Code, "is_loaded", False)):
        monkeypatch.setattr(owner, name, value)
    function = function_of(row)
    for dtype, n in itertools.product(("float32", "float64", "int16"), (1, 33, 960) if nests else (5, 511)):
        x = numbers(n, dtype, 0)
        for number, other in itertools.product(NUMBERS, (False, True)):
            with np.errstate(all="ignore"):
                kept = np.asarray(number, None if type(number) not in (int, bool) else np.float64)
                weak = type(number) in (float, int, bool)
                own = wide([x] if weak else [x, kept])
                given, whole = x.astype(own), np.full(n, kept.astype(own))
            expected = bits(function(*((whole, given) if other else (given, whole))))
            label = (dtype, n, repr(number), other)
            pair = (number, x) if other else (x, number)
            assert bits(compiled(function, *pair)) == expected, label
            square = (number, x[np.newaxis]) if other else (x[np.newaxis], number)
            assert bits(compiled(function, *square)[0]) == expected, label
            if x.dtype == own:
                again = x.copy()
                function(*((number, again) if other else (again, number)), out=again)
                assert bits(again) == expected, label


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("row", rows())
def test_nests_of_elements_with_gaps(row: Row) -> None:
    """As those of whole arrays, and nothing beyond them is read."""
    function = function_of(row)
    for dtype, n in itertools.product(("float32", "float64"), (1, 7, 16, 33, 48, 960)):
        given = arguments(row, [dtype] * inputs_of(row), n)
        expected = bits(function(*given))
        some = [(2, 1), (1, 3), (4, 4), (5, 2), (-2, 3)] if dtype == "float32" else [(3, 2), (1, 4), (2, -2)]
        for gaps in {gaps[: len(given)] for gaps in some}:
            for side in ("start", "end"):
                rooms = [
                    Guarded(
                        np.repeat(array[:: 1 if gap > 0 else -1], abs(gap))[: (n - 1) * abs(gap) + 1], side
                    )
                    for array, gap in zip(given, gaps, strict=True)
                ]
                apart = [room.array[::gap] for room, gap in zip(rooms, gaps, strict=True)]
                assert bits(compiled(function, *apart)) == expected, (dtype, n, gaps)
                assert all(room.intact() for room in rooms)
