"""Pins: implementations forced by block, thread and environment, and how long they hold."""

import contextlib
import contextvars
import dataclasses
import itertools
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import Row, every_form
from picks import chosen, record
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementations, implements
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import ArgumentTypeError, AttrError, NotUsableError, UnknownNameError
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import overrides as pins_module
from jitkernels.selection import records
from jitkernels.selection.records import Record
from jitkernels.selection.select import best_variant, choose, choose_for_class


def test_pins(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The innermost context wins, a kernel's own name over all names, contexts over the environment."""

    def now() -> str:
        function: Any = KernelFuncs.cache().at(attr)
        return str(function.__self__.implementation)

    assert now() == "gen"
    with jk.use(implementation="refer"):
        assert now() == "refer"
        with jk.use(toy_take="theirs"):
            assert now() == "theirs"
        assert now() == "refer"
        with jk.use(implementation="gen", toy_take="theirs"):
            assert now() == "theirs"
    assert now() == "gen"
    for text, expected in (("toy_take=refer", "refer"), ("theirs", "theirs"), ("theirs, toy_take=refer", "refer")):
        monkeypatch.setenv("JITKERNELS_USE", text)
        KernelFuncs.cache().clear()
        assert now() == expected
        with jk.use(implementation="gen"):
            assert now() == "gen"
    with pytest.raises(ZeroDivisionError), jk.use(implementation="refer"):
        raise ZeroDivisionError
    monkeypatch.delenv("JITKERNELS_USE")
    KernelFuncs.cache().clear()
    assert now() == "gen"


def test_a_pin_of_exact_sizes_cannot_serve_everyday_calls(attr: Any, toy: Any) -> None:
    """Kernels of exact sizes have the implementation; size classes report why they cannot."""

    def exact(attr: Any) -> Any:
        return dataclasses.replace(toy.right(attr), exact=True)

    implements(toy.ToyAttr, name="exact")(exact)
    with jk.use(toy_take="exact"):
        assert chosen(attr).implementation == "exact"
        with pytest.raises(NotUsableError, match="toy_take: exact cannot be used: expected a source of dynamic shape"):
            choose_for_class(attr.size_class())
    assert choose_for_class(attr.size_class()).implementation.name == "gen"


def test_pins_hold_in_their_thread_only(attr: Any) -> None:
    seen: list[str] = []

    def look() -> None:
        function: Any = KernelFuncs.cache().at(attr)
        seen.append(function.__self__.implementation)

    with jk.use(implementation="refer"):
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert seen == ["refer", "gen"]


def test_pins_are_reentrant(attr: Any) -> None:
    """In sequence, nested, after an error, by another thread meanwhile, and as a decorator."""

    def now() -> str:
        function: Any = KernelFuncs.cache().at(attr)
        return str(function.__self__.implementation)

    pins = jk.use(implementation="refer")
    for _ in range(2):
        with pins:
            assert now() == "refer"
            with jk.use(toy_take="theirs"):
                assert now() == "theirs"
                with pins:
                    assert now() == "refer"
                assert now() == "theirs"
            with jk.use(implementation="gen"):
                assert now() == "gen"
                with pins:
                    assert now() == "refer"
                assert now() == "gen"
        assert now() == "gen"
        with pytest.raises(ZeroDivisionError), pins:
            raise ZeroDivisionError
        assert now() == "gen"
    entered, left, seen = threading.Event(), threading.Event(), []

    def elsewhere() -> None:
        with pins:
            entered.set()
            left.wait(10)
            seen.append(now())
        seen.append(now())

    other = threading.Thread(target=elsewhere)
    with pins:
        other.start()
        entered.wait(10)
    assert now() == "gen"
    left.set()
    other.join()
    assert seen == ["refer", "gen"]
    pinned = pins(now)
    assert [pinned(), now(), pinned()] == ["refer", "gen", "refer"]
    assert not pins_module.blocks


@pytest.mark.parametrize("wrong", [["refer"], 3, None, b"refer", {}])
def test_names_of_implementations_are_text(toy: Any, wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="use: toy_take: expected the name of an implementation"):
        jk.use(toy_take=wrong).__enter__()
    assert not pins_module.blocks


def test_unmatched_exits_of_pins_are_errors() -> None:
    with pytest.raises(NotUsableError, match="expected at most one exit per entry"):
        jk.use(implementation="refer").__exit__(None, None, None)
    assert not pins_module.blocks


def test_pins_exited_in_another_context(attr: Any) -> None:
    """Such as by a generator that is closed elsewhere: they end all the same."""
    pins = jk.use(implementation="refer")
    contextvars.copy_context().run(pins.__enter__)
    pins.__exit__(None, None, None)
    assert KernelFuncs.cache().at(attr).__self__.implementation == "gen"  # type: ignore[attr-defined]
    assert not pins_module.blocks


@pytest.mark.parametrize("text", ["toy_take=gen,TOY_TAKE=theirs", "gen,refer", "toy_take=gen,gen,refer"])
def test_contradictory_pins_are_rejected(attr: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JITKERNELS_USE", text)
    with pytest.raises(UnknownNameError, match=r"JITKERNELS_USE: expected one implementation for .*, got gen and"):
        chosen(attr)
    with pytest.raises(UnknownNameError, match="use: expected one implementation for toy_take, got gen and refer"):
        jk.use(toy_take="gen", TOY_TAKE="refer")


@pytest.mark.parametrize("text", ["nonsense", "toy_take=nonsense", "nonsense=gen", "toy_take=", "=gen"])
def test_invalid_pins_are_rejected(attr: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JITKERNELS_USE", text)
    with pytest.raises(UnknownNameError):
        chosen(attr)


def test_invalid_pins_in_context_are_rejected(attr: Any) -> None:
    for wrong in ({"implementation": "nonsense"}, {"toy_take": "nonsense"}, {"nonsense": "gen"}):
        with pytest.raises(UnknownNameError), jk.use(**wrong):
            raise AssertionError("entered")
    assert chosen(attr).implementation == "gen"


def test_pins_reach_everyday_functions() -> None:
    """Also when the dispatcher has already remembered another kernel."""
    code = """
import numpy as np, jitkernels as jk
from jitkernels.attrs.schema.base import schemas
from jitkernels.attrs.schema.registry import implements
calls = []
for row in schemas.values():
    attr = next(iter(row.sweep())).attr
    signature = attr.signature()
    if {array.shape for array in signature.arrays} != {(1,)} or len(signature.inputs) != 1:
        continue
    def spy(attr, x, y):
        calls.append(attr)
        y[...] = 7
    import dataclasses
    from jitkernels.attrs.schema import registry
    known = registry.implementations(row)["refer"]
    registry._implementations[row]["refer"] = dataclasses.replace(known, function=spy)
    function = getattr(jk, attr.name)
    x = np.ones(5, np.float32)
    for _ in range(3):
        assert function(x)[0] != 7
    with jk.use(implementation="refer"):
        for _ in range(3):
            assert function(x)[0] == 7
    assert function(x)[0] != 7
    assert len(calls) == 3
    break
print(len(calls))
"""
    assert python(code) == "3\n"


def test_pin_ends_with_its_block_in_copied_contexts(attr: Any) -> None:
    """A task started inside ``with jk.use`` copies the context; its picks must not apply to others."""
    cache = KernelFuncs.cache()
    with jk.use(implementation="refer"):
        copied = contextvars.copy_context()
    copied.run(cache.at, attr)
    assert cache.at(attr).__self__.implementation == "gen"  # type: ignore[attr-defined]


def test_pins_in_upper_case_and_with_spaces(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    attr = jk.VMulAttr(n=9)
    with jk.use(VMUL="refer"):
        assert chosen(attr).implementation == "refer"
    for text in ("VMUL=refer", "vmul = refer", " Vmul =refer,"):
        monkeypatch.setenv("JITKERNELS_USE", text)
        assert chosen(attr).implementation == "refer"


@contextlib.contextmanager
def by_block(kernel: str, name: str) -> Iterator[None]:
    pins = {"implementation": name} if kernel == "*" else {kernel: name}
    with jk.use(**pins):
        yield


@contextlib.contextmanager
def by_environment(kernel: str, name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JITKERNELS_USE", name if kernel == "*" else f"{kernel}={name}")
        KernelFuncs.cache().clear()
        yield
    KernelFuncs.cache().clear()


def attrs_with_every_flag(row: Row) -> list[KernelAttr]:
    """Attrs of a row with small extents, one for each way to set its flags, options, dtypes and zero floats."""
    return attrs_of_extent(row, 5) or attrs_of_extent(row, 8)  # a few rows demand multiples of four


def attrs_of_extent(row: Row, extent: int) -> list[KernelAttr]:
    base = next(iter(row.sweep())).attr
    values: list[list[Any]] = []
    for name, field in row.known_fields().items():
        in_sweep = [case.attr.fields()[name] for case in row.sweep()]
        kinds: dict[str, list[Any]] = {"int": [extent], "float": [0.0, 0.5], "dtype": list(dict.fromkeys(in_sweep))}
        values.append(kinds.get(field.kind) or list(field.values) or in_sweep[:1])
    names = list(row.known_fields())
    found = []
    for combination in itertools.product(*values):
        with contextlib.suppress(AttrError):  # numbers that do not fit one another
            found.append(type(base)(**dict(zip(names, combination, strict=True))))
    return found


@pytest.mark.parametrize("pin", [by_block, by_environment])
@pytest.mark.parametrize("row", every_form())
def test_pins_of_unusable_implementations(row: Row, pin: Any, fresh: Path) -> None:
    """Pinned for the kernel it is an error that gives the reason; pinned for every kernel it is passed over.

    `explain` says the same, and both kinds of pin take the same variant.
    """
    kernel = row.kernel_type.name.lower()
    attrs = attrs_with_every_flag(row)
    if pin is by_environment:  # which is read long before an attr is looked at: every fourth does, and the last
        attrs = list(dict.fromkeys([*attrs[::4], attrs[-1]]))
    for (name, found), attr in itertools.product(implementations(row).items(), attrs):
        reason = found.reason_against(attr)
        with pin(kernel, name):
            if reason is None:
                assert choose(attr).implementation is found
                assert choose(attr).variant == best_variant(attr, found)
                assert (jk.explain(attr).winner, jk.explain(attr).rule) == (name, "pinned")
            else:
                for ask in (KernelFuncs.cache().at, jk.explain, choose):
                    with pytest.raises(NotUsableError, match=re.escape(reason)):
                        ask(attr)
        with pin("*", name):
            choice = choose(attr)
            assert (choice.implementation is found) == (reason is None or name == "gen")
            assert (choice.rule == "pinned") == (reason is None)
            assert jk.explain(attr).winner == choice.implementation.name


@pytest.mark.parametrize("pin", [by_block, by_environment])
def test_pinned_kernel_has_the_variant_that_measured_best(attr: Any, monkeypatch: pytest.MonkeyPatch, pin: Any) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    best = record("gen", "refer").candidates + record("theirs", variant={"vector_bytes": 64}).candidates
    records.save(attr.size_class(), Record(best), get_num_threads())
    for kernel in ("toy_take", "*"):
        with pin(kernel, "theirs"):
            function: Any = KernelFuncs.cache().at(attr)
            assert function.__self__.variant == {"vector_bytes": 64}
            assert jk.explain(attr).variant == {"vector_bytes": 64}


def test_pins_reach_values_of_everyday_functions(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    """A library of sums once computed a maximum because the environment pinned it."""
    table, ids = np.eye(4, dtype=np.float32), np.array([[0, 1, 2], [3, 3, 0]])
    expected = jk.emb_seq_pool(table, ids, pool="max")
    for text in ("openblas", "emb_seq_pool=openblas"):
        monkeypatch.setenv("JITKERNELS_USE", text)
        KernelFuncs.cache().clear()
        if "=" in text:
            with pytest.raises(NotUsableError):
                jk.emb_seq_pool(table, ids, pool="max")
        else:
            assert np.array_equal(jk.emb_seq_pool(table, ids, pool="max"), expected)


FORKED = """
import os, threading, warnings
import numpy as np
import jitkernels as jk
from jitkernels.selection import overrides as pins

warnings.simplefilter("ignore", DeprecationWarning)  # forks of many threads, Python 3.12
x = np.ones(3, np.float32)
opened, done = threading.Event(), threading.Event()

def hold():
    with jk.use(implementation="refer"):
        opened.set()
        done.wait()

def in_child(wanted):
    child = os.fork()
    if child == 0:
        found = [next(iter(entered.values())) for entered, _ in pins.blocks]
        result = jk.vmul(x, x).tolist()
        os._exit(0 if found == wanted and result == [1, 1, 1] else 1)
    return os.waitpid(child, 0)[1]

other = threading.Thread(target=hold)
other.start()
opened.wait()
print(in_child([]))
with jk.use(implementation="gen"):
    print(in_child(["gen"]))
print(len(pins.blocks))
done.set()
other.join()
print(len(pins.blocks))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_children_inherit_the_pins_of_their_thread(private_cache: Path) -> None:
    """Pins of other threads would send the child's calls through Python for ever."""
    assert python(FORKED, private_cache).split() == ["0", "0", "1", "0"]
