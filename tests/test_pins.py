"""Pins: what the user says is used, by block, thread and environment, and no longer than that."""

import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest
from picks import chosen
from processes import python

import jitkernels as jk
from jitkernels.errors import UnknownNameError
from jitkernels.kernel_funcs import KernelFuncs


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
    for text, expected in (
        ("toy_take=refer", "refer"),
        ("theirs", "theirs"),
        ("theirs, toy_take=refer", "refer"),
    ):
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


@pytest.mark.parametrize("text", ["nonsense", "toy_take=nonsense", "nonsense=gen", "toy_take=", "=gen"])
def test_wrong_pins(attr: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JITKERNELS_USE", text)
    with pytest.raises(UnknownNameError):
        chosen(attr)


def test_wrong_pins_in_context(attr: Any) -> None:
    for wrong in ({"implementation": "nonsense"}, {"toy_take": "nonsense"}, {"nonsense": "gen"}):
        with pytest.raises(UnknownNameError), jk.use(**wrong):
            raise AssertionError("entered")
    assert chosen(attr).implementation == "gen"


def test_pins_reach_everyday_functions() -> None:
    """Also when the dispatcher has already remembered another kernel."""
    code = """
import numpy as np, jitkernels as jk
from jitkernels.attrs.base import rows
from jitkernels.registry import implements
calls = []
for row in rows.values():
    attr = next(iter(row.sweep())).attr
    signature = attr.signature()
    if {array.shape for array in signature.arrays} != {(1,)} or len(signature.inputs) != 1:
        continue
    def spy(attr, x, y):
        calls.append(attr)
        y[...] = 7
    import dataclasses
    from jitkernels import registry
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
    """A task started inside ``with jk.use`` copies the context; its picks must not become everybody's."""
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
