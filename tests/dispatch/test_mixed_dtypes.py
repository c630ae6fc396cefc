"""Contiguous operands of other dtypes: bitwise the results of converting first, in blocks or in a fused nest."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from mixed import arguments, bits, inputs_of, numbers, rows, wide
from test_everyday import Row, function_of
from test_everyday_forms import DTYPES, compiled

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation, implementations
from jitkernels.core import dtypes
from jitkernels.core.fork_locks import build_lock
from jitkernels.dispatch import fused_casts, operators
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import BuildError
from jitkernels.runtime.abi_layout import ADDRESS_BITS, CONVERTING, KIND_BITS, NUMBER, ContextWords
from jitkernels.runtime.loading import compiled_code, loader
from jitkernels.runtime.loading.compiled_code import Code
from jitkernels.selection.select import best_variant
from jitkernels.tools.testing.guard_pages import Guarded

SIZES = (*range(34), 48, 960)
COMBINATIONS = 480
"""How many combinations of dtypes all rows together may try, roughly."""
GUARDED = (1, 7, 8, 15, 33, 48)


def nests(row: Row) -> list[int]:
    """The entries for inputs of other dtypes, 0 where these are converted first."""
    table = operators._holder(row.kernel_type.name.lower())._table
    assert table is not None
    forms = 2**KIND_BITS - 1
    return [
        int(table._contexts[key][ContextWords.ENTRY])
        for key in sorted(table._listed)
        if key & CONVERTING and max(key >> ADDRESS_BITS & forms, key >> ADDRESS_BITS + KIND_BITS & forms) < NUMBER
    ]


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


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize("row", rows())
def test_every_pair_of_dtypes(row: Row) -> None:
    for kinds in all_kinds(row):
        check(row, kinds)
    known = [kinds for kinds in all_kinds(row) if {*kinds} <= {*dtypes.TABLE} and {*kinds} != {wide_of(kinds)}]
    converts = fused_casts.nest_of(kernel_of(row), ["int8"] * inputs_of(row)) is not None
    assert sum(entry != 0 for entry in nests(row)) == (len(known) if converts else 0)


def wide_of(kinds: Sequence[str]) -> str:
    return wide([np.zeros(1, kind) for kind in kinds])


def kernel_of(row: Row) -> Kernel:
    return KernelFuncs.cache().of_class(row(n=960, dtype="float64"))


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize("row", [p for p in rows() if p.values[0].__module__.startswith("jitkernels.")])
def test_generated_kernels_convert(row: Row) -> None:
    assert fused_casts.nest_of(kernel_of(row), ["int8"] * inputs_of(row)) is not None


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize("kinds", [("int8", "uint8"), ("float32", "int16"), ("bool", "float64")], ids=str)
def test_swapped_dtypes_are_caught(kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = fused_casts.nest_of
    monkeypatch.setattr(fused_casts, "nest_of", lambda kernel, names: right(kernel, names[::-1]))
    with pytest.raises(AssertionError, match=kinds[0]):
        check(jk.VMulAttr, kinds, [33])


def test_casting_nests_are_built_after_enough_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call waits for none; one that is loaded already is used at once."""
    KernelFuncs.cache().clear()
    monkeypatch.setattr(operators, "CAST_NEST_SECONDS", 2e-6)
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


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize(
    ("row", "name"), [p for p in cases.every_implementation() if p.values[0] in [r.values[0] for r in rows()]]
)
def test_pins_restrict_casting_nests(row: Row, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the pinned implementation's own nest may replace it."""
    attr = row(n=960, dtype="float64")
    if implementation(row, name).reason_against(attr) is not None:
        pytest.skip(f"{name} cannot be used here")
    monkeypatch.setenv("JITKERNELS_USE", f"{attr.name}={name}")
    given = arguments(row, ["int32", "uint8"][: inputs_of(row)], 960)
    expected = np.empty(960)
    KernelFuncs.cache().get(attr, implementation(row, name))(*[a.astype(np.float64) for a in given], expected)
    for _ in range(4):
        assert bits(function_of(row)(*given)) == bits(expected)
    assert [*map(bool, nests(row))] == ([] if name == "refer" else [name in ("gen", "numba")])


@pytest.mark.usefixtures("eager_casting_nests")
def test_new_selections_replace_casting_nests() -> None:
    """A better measured implementation serves other dtypes from then on."""
    attr = jk.VSigmoidAttr(n=1024, dtype="float64")
    given = numbers(960, "int16", 0)
    jk.vsigmoid(given)
    kernel = KernelFuncs.cache().of_class(attr)
    assert kernel.implementation == "gen"
    found = implementation(jk.VSigmoidAttr, "mix")
    kernel.replace_code(Kernel(attr, found, best_variant(attr, found)))
    table = operators._holder("vsigmoid")._table
    assert table is not None
    table.put(table.key(attr.fields()), kernel.address, long=False)
    expected = np.empty(960)
    KernelFuncs.cache().get(jk.VSigmoidAttr(n=960, dtype="float64"), found)(given.astype(np.float64), expected)
    for _ in range(3):
        assert bits(jk.vsigmoid(given)) == bits(expected)
    assert sorted(map(bool, nests(jk.VSigmoidAttr))) == [False, True]


@pytest.mark.usefixtures("eager_casting_nests")
def test_exact_rows_may_use_any_casting_nest() -> None:
    attr = jk.VMulAttr(n=1024, dtype="float64")
    for name in implementations(jk.VMulAttr):
        found = implementation(jk.VMulAttr, name)
        if name != "refer" and found.reason_against(attr) is None:
            kernel = Kernel(attr, found, best_variant(attr, found))
            assert fused_casts.nest_of(kernel, ["int8", "bool"]) is not None, name
            kernel.rule = "pinned"
            assert (fused_casts.nest_of(kernel, ["int8", "bool"]) is None) == (name not in ("gen", "numba"))


@pytest.mark.parametrize("threshold", [0.0, 1e9])
@pytest.mark.parametrize("other", ["bool", "float32", "float64"])
def test_nonzero_bytes_of_bools_are_true(other: str, threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of bool that were never written as such hold other bytes than 0 and 1."""
    monkeypatch.setattr(operators, "CAST_NEST_SECONDS", threshold)
    KernelFuncs.cache().clear()
    for n in (5, 200):
        x = np.arange(n, dtype=np.uint8).view(bool)
        y = np.ones(n, other)
        dtype = wide([x, y])
        for one, two in ((x, y), (x[::-1], y), (x, x)):
            expected = (np.arange(n) != 0).astype(dtype if two is y else np.float64)
            assert bits(compiled(jk.vmul, one, two)) == bits(expected[::-1] if one is not x else expected)
    KernelFuncs.cache().clear()


def test_casting_nests_are_built_under_the_build_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that builds a kernel takes it first, and then waits for the same nest's code."""
    monkeypatch.setattr(operators, "CAST_NEST_SECONDS", 0.0)
    KernelFuncs.cache().clear()
    seen = []

    def looked_at(nest: Code) -> int:
        seen.append(build_lock._is_owned())  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr(fused_casts, "address_of", looked_at)
    jk.vmul(numbers(9, "int8", 0), numbers(9, "uint8", 1))
    KernelFuncs.cache().clear()
    assert seen == [True]


LOADED_APART: list[dict[Any, Any]] = []
"""What the following test loads, for good: parts of the dispatcher that it needs first serve all later calls."""


def test_casting_nests_that_cannot_be_built(fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(operators, "CAST_NEST_SECONDS", 0.0)
    given = numbers(600, "int8", 0), numbers(600, "uint8", 1)
    for module, name in ((loader, "_loaded"), (loader, "_held"), (compiled_code, "_known")):
        LOADED_APART.append({})
        monkeypatch.setattr(module, name, LOADED_APART[-1])
    jk.vmul(*[array.astype(np.float64) for array in given])

    def refused(self: Any, symbol: str) -> bytes:
        raise BuildError("no compiler")

    # Objects are those of all tests, of which one may have built it.
    fetched = "jitkernels.codegen.object_cache.fetch"
    monkeypatch.setattr(fetched, lambda _text, _suffix, build: (build(), None))

    monkeypatch.setattr("jitkernels.codegen.range_kernel.RangeKernel.object_code", refused)
    for _ in range(3):
        assert bits(jk.vmul(*given)) == bits(np.multiply(*given, dtype=np.float64))
    assert nests(jk.VMulAttr) == [0]
    assert [record.message for record in caplog.records if "falling back to separate casts" in record.message] == [
        "vmul_float64_of_int8_uint8 cannot be built, falling back to separate casts: no compiler"
    ]
