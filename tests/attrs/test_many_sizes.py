"""Thousands of sizes share few source texts, objects and launchers, and take no memory each."""

import contextlib
import dataclasses
import gc
import itertools
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import Row, every_row, in_turn

import jitkernels as jk
from jitkernels.attrs.schema import argument_binding, schema_queries
from jitkernels.attrs.schema.kernel_impl import Implementation
from jitkernels.attrs.schema.registry import implementations
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, inlined
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel_cache import LOOK, KernelFuncs
from jitkernels.errors import AttrError, BuildError, JitKernelsError
from jitkernels.runtime.abi_layout import CONVERTING, OperatorTable
from jitkernels.runtime.loading import compiled_code, loader
from jitkernels.runtime.loading.compiled_code import code_of
from jitkernels.selection.select import choose, has_dynamic_shape

EXTENTS = (1, 3, 8, 31, 100, 500, 1000, 3000)


def of_many_sizes(row: Row) -> Sequence[jk.KernelAttr]:
    """Attrs of all ways to set the flags of a row, each of several sizes; where there are many rows some of them."""
    found: dict[jk.KernelAttr, None] = {}
    for case in list(row.sweep())[:40]:
        fields = case.attr.fields()
        sizes = [name for name, field in row.known_fields().items() if field.kind == "int"]
        for i, extent in enumerate(EXTENTS):
            others = {name: EXTENTS[(i + 3 * k) % len(EXTENTS)] for k, name in enumerate(sizes)}
            with contextlib.suppress(AttrError):  # sizes that do not fit one another
                found[row(**fields | others | {sizes[-1]: extent})] = None
    return in_turn(row, list(found) or [case.attr for case in row.sweep()])  # where such sizes do not fit one another


@pytest.mark.parametrize("row", every_row())
def test_nests_are_identified_by_text(row: Row) -> None:
    """At many sizes of all implementations, loop nests share code exactly where their texts are equal."""
    texts: dict[int, set[str]] = {}
    known: dict[str, set[int]] = {}
    for attr in of_many_sizes(row):
        for found in implementations(row).values():
            if found.is_reference or found.reason_against(attr) is not None:
                continue
            for variant in found.variants(attr)[:2]:
                source = found.source(attr, variant)
                if type(source) is not RangeKernel or source.exact:
                    continue
                same = code_of(source)
                texts.setdefault(id(same), set()).add(source.text)
                known.setdefault(f"{source.name} {source.text}", set()).add(id(same))
                assert same.source.name == source.name
    assert texts
    assert all(len(found) == 1 for found in texts.values())
    assert all(len(found) == 1 for found in known.values())


FACTOR: Any = np.float64(2)


@inlined()
def scaled(value: Any) -> Any:
    return value * FACTOR


def nest(constant: Any, called: Callable[..., Any] = scaled, **fields: Any) -> RangeKernel:
    def body(x: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            x[i] = called(x[i]) + constant

    return dataclasses.replace(RangeKernel("scaling", ("double*", "int64"), body, extent=1), **fields)


@inlined("reassoc")
def with_other_flags(value: Any) -> Any:
    return value * FACTOR


DIFFERENT: tuple[RangeKernel, ...] = (
    nest(1),
    nest(1.0),
    nest(True),
    nest(0.0),
    nest(-0.0),
    nest(np.float32(1)),
    nest(np.float64(1)),
    nest(np.float64(-0.0)),
    nest(np.int64(1)),
    nest(float("inf")),
    nest(1.0, with_other_flags),
    nest(1.0, flags=()),
    nest(1.0, parallel=True),
    nest(1.0, parallel=True, block=4),
    nest(1.0, vector_bytes=32),
    nest(1.0, reads_first=True),
    nest(1.0, workspace=64, workspace_dtype="float64"),
    nest(1.0, workspace=64, workspace_dtype="float32"),
    nest(1.0, name="other"),
    nest(1.0, arguments=("float*", "int64")),
    nest(1.0, extent=0),
    nest(1.0, check=lambda x, n: 0),
    nest(1.0, body="define i64 @body(ptr %x, i64 %n, i64 %begin, i64 %end) {\n  ret i64 0\n}\n"),
    nest(1.0, calls=(External("jk_test_halve", "double", ("double",), lambda: 0),)),
)


def test_keys_differ_where_code_differs() -> None:
    """Also where Python takes two numbers for equal."""
    assert len({id(code_of(source)) for source in DIFFERENT}) == len(DIFFERENT)
    for source in DIFFERENT:
        again = dataclasses.replace(source)
        assert code_of(again) is code_of(source)


def test_nan_options_share_one_kernel() -> None:
    assert code_of(nest(float("nan"))) is code_of(nest(float("nan")))
    assert code_of(nest(np.float32("nan"))) is code_of(nest(np.float32("nan")))


def test_changed_global_constants_change_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a global of a function that the body calls."""
    before = code_of(nest(1.0))
    monkeypatch.setitem(globals(), "FACTOR", np.float64(3))
    assert code_of(nest(1.0)) is not before


def test_exact_and_foreign_sources_are_not_cached() -> None:
    before = len(compiled_code._known)
    assert code_of(nest(5.0, exact=True)) is not code_of(nest(5.0, exact=True))
    assert code_of(nest({1})) is not code_of(nest({1}))
    assert len(compiled_code._known) == before
    with pytest.raises(BuildError, match=r"expected a number, .* marked @inlined"):
        _ = code_of(nest({1})).address


BIG = np.linspace(-1, 1, 1 << 18, dtype=np.float32)
CALLS: dict[str, Callable[[int, int], tuple[Any, ...]]] = {
    "vmul": lambda rows, n: (BIG[: rows * n], BIG[: rows * n]),
    "softmax": lambda rows, n: (BIG[: rows * n].reshape(rows, n),),
    "layer_norm": lambda rows, n: (BIG[: rows * n].reshape(rows, n), BIG[:n], BIG[:n]),
}


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """The arguments that a function of one is called with from now on."""
    seen: list[Any] = []
    original = getattr(owner, name)

    def noticed(argument: Any) -> Any:
        seen.append(argument)
        return original(argument)

    monkeypatch.setattr(owner, name, noticed)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_size_classes_share_texts_and_launchers(name: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All classes with the same code share one text and one object, also after the caches are cleared."""
    jk.vexp(BIG[:8])  # so that the launcher is there, which is an object of its own
    KernelFuncs.cache().clear()
    made = counted(monkeypatch, RangeKernel.__dict__["text"], "func")
    requested = counted(monkeypatch, loader, "address_of")
    monkeypatch.setattr(compiled_code, "_known", {})

    def every_class() -> int:
        for rows in (1, 2, 4, 8, 16, 32, 64):
            for n in (1, 2, 7, 12, 30, 60, 100, 200, 500, 1000):
                getattr(jk, name)(*CALLS[name](rows, n))
        return len(KernelFuncs.cache()._classes)

    classes = every_class()
    assert classes >= 16
    distinct = {kernel.symbol for kernel in KernelFuncs.cache()._classes.values()}
    assert len(made) <= len(requested) == len(distinct) < classes
    assert all(kernel._callable is None for kernel in KernelFuncs.cache()._classes.values())
    KernelFuncs.cache().clear()
    assert every_class() == classes
    assert len(made) <= len(requested) == len(distinct)


@pytest.mark.parametrize("name", CALLS)
def test_new_sizes_of_known_classes_allocate_nothing(name: str, fresh: Path) -> None:
    """2,000 sizes would take 14 MB if each had a kernel of its own."""
    function = getattr(jk, name)

    def call(sizes: range) -> None:
        for n in sizes:
            function(*CALLS[name](3, n))

    call(range(1, 4097, 13))
    call(range(3000, 3010))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    call(range(1000, 3000))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 50_000
    assert len(KernelFuncs.cache()._classes) <= 16


def test_exact_size_kernels_are_looked_up_after_enough_calls(without_objects: Path) -> None:
    """A look-up and a build are each charged to calls first; kernels of any size are never looked up."""
    cache = KernelFuncs.cache()
    attr = jk.MatMulAttr(m=17, n=19, k=15)
    assert not has_dynamic_shape(attr, choose(attr))
    assert cache.cost_of_exact(attr, paid=False) == LOOK
    assert cache.cost_of_exact(attr, paid=True) == compiled_code.BUILD
    assert cache.cost_of_exact(attr, paid=False) == LOOK
    assert cache.cost_of_exact(attr, paid=True) == 0
    cache.clear()
    assert cache.cost_of_exact(attr, paid=True) == compiled_code.BUILD
    cache.at(attr)
    assert cache.cost_of_exact(attr, paid=False) == 0
    cache.clear()
    assert cache.cost_of_exact(attr, paid=True) == 0, "it lies in the cache"
    assert cache.cost_of_exact(jk.VMulAttr(n=7), paid=False) == LOOK
    assert cache.cost_of_exact(jk.VMulAttr(n=7), paid=True) is None


OPENED: list[str] = []
LOOKING: list[bool] = []
sys.addaudithook(lambda event, given: OPENED.append(str(given[0])) if LOOKING and event == "open" else None)
"""Files that are opened while anybody looks: there is no way to take such a hook away."""


@pytest.mark.parametrize("name", CALLS)
def test_a_new_class_with_known_code_builds_nothing(name: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No source, no text, no object and no opened file; only the dispatcher reads the arguments."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    function = getattr(jk, name)
    for shape in ((1, 5), (3, 5), (1, 3000), (3, 3000)):
        function(*CALLS[name](*shape))
    known = len(KernelFuncs.cache()._classes)
    right = {n: function(*CALLS[name](40, n)) for n in (60, 500)}
    KernelFuncs.cache()._classes.clear()
    operators._holders[name].forget()
    made: list[Any] = []
    for owner, what in (
        (RangeKernel.__dict__["text"], "func"), (loader, "address_of"), (Implementation, "source"),
        (RangeKernel.__dict__["identity"], "func"), (argument_binding, "bound"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, what, lambda *given, what=what: made.append((what, given)))
    OPENED.clear()
    LOOKING.append(True)
    shapes = [(rows, n) for rows in (1, 2, 4, 9, 40) for n in (2, 7, 12, 60, 500, 1000)]
    try:
        found = {shape: function(*CALLS[name](*shape)) for shape in shapes}
    finally:
        LOOKING.clear()
    assert not made
    assert not OPENED
    for n, expected in right.items():
        np.testing.assert_array_equal(found[40, n], expected)
    assert len(KernelFuncs.cache()._classes) >= known + 8


SMALL, LARGE = 3, 3000
SIDES = (LARGE, SMALL), (SMALL, LARGE), (1, SMALL), (1, LARGE)
"""An extent and the others beside it."""


def on_both_sides(row: Row, every: int = 1) -> list[jk.KernelAttr]:
    """Attrs of every way to set the flags, with sizes on both sides of whatever compares them.

    Each extent in turn is the largest and the smallest of all, and 1 beside small and large ones; all are equal, from 1
    to 3000; and all differ, in turn. Which attrs these are depends on no other row. Each way to set the flags has one
    group in `every` of these sizes, and the next way another one, unless there are few ways.
    """
    names = [name for name, field in row.known_fields().items() if field.kind == "int"]
    groups = [
        [dict.fromkeys(names, others) | {name: extent} for extent, others in SIDES] for name in names
    ]  # each compares sizes of the same extents of 1
    equal = [dict.fromkeys(names, extent) for extent in EXTENTS]
    apart = [{name: EXTENTS[(i + 3 * k) % len(EXTENTS)] for k, name in enumerate(names)} for i in range(len(EXTENTS))]
    groups += [equal[:4] + apart[4:], equal[4:] + apart[:4]]
    found: dict[jk.KernelAttr, None] = {}
    ways = {case.attr.without_extents: case.attr for case in row.sweep()}.values()
    step = every if len(ways) >= 2 * every else 1
    for number, attr in enumerate(ways):
        for chosen in itertools.chain(*groups[number % step :: step]):
            with contextlib.suppress(AttrError):  # sizes that do not fit one another
                found[row(**attr.fields() | chosen)] = None
    return list(found)


@pytest.mark.parametrize("row", every_row())
def test_serial_sources_for_any_size_ignore_sizes(row: Row) -> None:
    """Without threads, a source that is not `exact` is the same at all sizes, for the same variant and other fields.

    `KernelFuncs.of_class` takes the code of one class for another because of it, and so do sources that are built
    around others. It may differ where an extent is 1. Threads are an exception: along which extent and in how large
    blocks their work is cut follows from the sizes.
    """
    check_serial_sources(row, on_both_sides(row, every=6))


@pytest.mark.full
@pytest.mark.parametrize("row", every_row())
def test_serial_sources_ignore_all_sizes(row: Row) -> None:
    check_serial_sources(row, on_both_sides(row))


def check_serial_sources(row: Row, attrs: Sequence[jk.KernelAttr]) -> None:
    sources: dict[Any, dict[tuple[Any, ...], jk.KernelAttr]] = {}
    for attr in attrs:
        single = tuple(extent == 1 for extent in attr.extents().values())
        for found in implementations(row).values():
            if found.is_reference or found.reason_against(attr) is not None:
                continue
            for variant in found.variants(attr):
                source = found.source(attr, variant)
                if not variant.get("parallel") and not getattr(source, "exact", False):
                    key = found.name, attr.without_extents, single, tuple(variant.items())
                    made = source.text, getattr(source, "extent", None)
                    sources.setdefault(key, {}).setdefault(made, attr)
    assert sources
    differing = {key: [*made.values()][:2] for key, made in sources.items() if len(made) > 1}
    assert not differing, "\n".join(f"{key}: one source for {a}, another for {b}" for key, (a, b) in differing.items())


@pytest.mark.parametrize("row", every_row())
def test_class_keys_contain_the_largest_extents(row: Row) -> None:
    """A key holds all that `size_class` keeps but floats; keys of other kinds are not mistaken for it."""
    if not schema_queries.is_everyday(row) or (dispatch := operators._dispatch_table(row)) is None:
        return  # Python serves its everyday calls
    for attr in of_many_sizes(row):
        key = dispatch.key(attr.fields())
        dispatch.words[OperatorTable.MISSED] = key
        missed, fields = dispatch.take_missed()
        floats = {name for name, field in row.known_fields().items() if field.kind == "float"}
        wanted = attr.size_class().fields()
        assert missed == key
        assert fields == {name: value for name, value in wanted.items() if name not in floats}
        assert dispatch.key(row(**fields).fields()) == key
        assert dispatch.take_missed() == (0, {}), "a miss is reported once"
        exact = [dispatch.key(attr.fields(), exact=True)] if dispatch.may_be_exact else []
        for other in (*exact, CONVERTING | key):
            dispatch.words[OperatorTable.MISSED] = other
            assert dispatch.take_missed() == (0, {})


@pytest.mark.parametrize("row", every_row())
def test_calls_without_elements_record_no_miss(row: Row, fresh: Path) -> None:
    """The next call that Python serves would build the missed kernel."""
    if not schema_queries.is_everyday(row) or operators._dispatch_table(row) is None:
        return  # Python serves its everyday calls
    function = getattr(jk, row.kernel_type.name.lower())
    empty = [
        np.zeros([0 if e.symbols else e.factor for e in a.extents], getattr(row, a.dtype or "dtype", a.dtype))
        for a in schema_queries.inputs_of(row)
        if not a.when
    ]
    named = {"shape": (0,)} if schema_queries.SHAPE in row.options else {}
    with contextlib.suppress(JitKernelsError):  # of a reduction that nothing has, or without an option
        function(*empty, **named)
    assert function.__self__._table.take_missed() == (0, {})
