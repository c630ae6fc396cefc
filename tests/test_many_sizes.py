"""Thousands of sizes: few texts, objects and launchers stand behind them, and no memory for each."""

import dataclasses
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import Row, every_row

import jitkernels as jk
from jitkernels.choosing import choose, is_for_any_size
from jitkernels.errors import BuildError
from jitkernels.kernel_funcs import LOOK, KernelFuncs
from jitkernels.native import code, load
from jitkernels.native.code import code_of
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import External, inlined
from jitkernels.registry import implementations

EXTENTS = (1, 3, 8, 31, 100, 500, 1000, 3000)


def of_many_sizes(row: Row) -> list[jk.KernelAttr]:
    """Attrs of all ways to set the flags of a row, each of several sizes."""
    found: dict[jk.KernelAttr, None] = {}
    for case in list(row.sweep())[:40]:
        fields = case.attr.fields()
        sizes = [name for name, field in row.known_fields().items() if field.kind == "int"]
        for i, extent in enumerate(EXTENTS):
            others = {name: EXTENTS[(i + 3 * k) % len(EXTENTS)] for k, name in enumerate(sizes)}
            found[row(**fields | others | {sizes[-1]: extent})] = None
    return list(found)


@pytest.mark.parametrize("row", every_row())
def test_nests_are_known_by_their_text(row: Row) -> None:
    """Of all implementations at many sizes: those taken for the same code have the same text, and only those."""
    texts: dict[int, set[str]] = {}
    known: dict[str, set[int]] = {}
    for attr in of_many_sizes(row):
        for found in implementations(row).values():
            if found.is_reference or found.reason_against(attr) is not None:
                continue
            for variant in found.variants(attr)[:2]:
                source = found.source(attr, variant)
                if type(source) is not LoopNest or source.exact:
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


def nest(constant: Any, called: Callable[..., Any] = scaled, **fields: Any) -> LoopNest:
    def body(x: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            x[i] = called(x[i]) + constant

    return dataclasses.replace(LoopNest("scaling", ("double*", "int64"), body, extent=1), **fields)


@inlined("reassoc")
def with_other_flags(value: Any) -> Any:
    return value * FACTOR


DIFFERENT: tuple[LoopNest, ...] = (
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


def test_what_makes_other_code_is_other_code() -> None:
    """Also where Python takes two numbers for equal."""
    assert len({id(code_of(source)) for source in DIFFERENT}) == len(DIFFERENT)
    for source in DIFFERENT:
        again = dataclasses.replace(source)
        assert code_of(again) is code_of(source)


def test_not_a_number_is_the_same_each_time() -> None:
    assert code_of(nest(float("nan"))) is code_of(nest(float("nan")))
    assert code_of(nest(np.float32("nan"))) is code_of(nest(np.float32("nan")))


def test_a_constant_that_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the module of a function that the body calls."""
    before = code_of(nest(1.0))
    monkeypatch.setitem(globals(), "FACTOR", np.float64(3))
    assert code_of(nest(1.0)) is not before


def test_exact_and_foreign_sources_are_not_kept() -> None:
    before = len(code._known)
    assert code_of(nest(5.0, exact=True)) is not code_of(nest(5.0, exact=True))
    assert code_of(nest([1])) is not code_of(nest([1]))
    assert len(code._known) == before
    with pytest.raises(BuildError, match=r"expected a number, .* marked @inlined"):
        _ = code_of(nest([1])).address


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
def test_few_texts_and_no_launchers_for_many_classes(
    name: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text is made and an object loaded once for all classes whose code it is, also after everything is forgotten."""
    jk.vexp(BIG[:8])  # so that the launcher is there, which is an object of its own
    KernelFuncs.cache().clear()
    made = counted(monkeypatch, LoopNest.__dict__["text"], "func")
    asked = counted(monkeypatch, load, "address_of")
    monkeypatch.setattr(code, "_known", {})

    def every_class() -> int:
        for rows in (1, 2, 4, 8, 16, 32, 64):
            for n in (1, 2, 7, 12, 30, 60, 100, 200, 500, 1000):
                getattr(jk, name)(*CALLS[name](rows, n))
        return len(KernelFuncs.cache()._classes)

    classes = every_class()
    assert classes >= 16
    distinct = {kernel.symbol for kernel in KernelFuncs.cache()._classes.values()}
    assert len(made) == len(asked) == len(distinct) < classes
    assert all(kernel._callable is None for kernel in KernelFuncs.cache()._classes.values())
    KernelFuncs.cache().clear()
    assert every_class() == classes
    assert len(made) == len(asked) == len(distinct)


@pytest.mark.parametrize("name", CALLS)
def test_new_sizes_take_no_memory(name: str, fresh: Path) -> None:
    """Of classes that are known; 2,000 sizes would be 14 MB if each had a kernel of its own."""
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


def test_a_kernel_of_one_size_is_looked_for_when_calls_have_paid(fresh: Path) -> None:
    """Nobody looks at once; what is not built yet has to be paid for first, and what serves any size never is."""
    cache = KernelFuncs.cache()
    attr = jk.MatMulAttr(m=7, n=9, k=5)
    assert not is_for_any_size(attr, choose(attr))
    assert cache.cost_of_exact(attr, paid=False) == LOOK
    assert cache.cost_of_exact(attr, paid=True) == code.BUILD
    assert cache.cost_of_exact(attr, paid=False) == LOOK
    assert cache.cost_of_exact(attr, paid=True) == 0
    cache.clear()
    assert cache.cost_of_exact(attr, paid=True) == code.BUILD
    cache.at(attr)
    assert cache.cost_of_exact(attr, paid=False) == 0
    cache.clear()
    assert cache.cost_of_exact(attr, paid=True) == 0, "it lies in the cache"
    assert cache.cost_of_exact(jk.VMulAttr(n=7), paid=False) == LOOK
    assert cache.cost_of_exact(jk.VMulAttr(n=7), paid=True) is None
