"""The cold path that ARCHITECTURE.md draws is the way of the arguments: stage after stage, and no station left out."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.tools.docgen.architecture_map import CALL_PATHS, COLD_FORMS, COLD_STAGES

PACKAGE = Path(jk.__file__).parent
STATIONS = [station.at for station in CALL_PATHS["cold-call"].stations]
MAX_STATIONS, MAX_RETURNS, MAX_NAMES = 20, 4, 15
DEPTH = 3
"""How deep containers and records are searched for the arguments."""


def returns(stations: list[str]) -> list[str]:
    """The stations at which a path comes back to a module that it had left."""
    modules = [station.partition(":")[0] for station in stations]
    return [
        station
        for i, (station, module) in enumerate(zip(stations, modules, strict=True))
        if i and module != modules[i - 1] and module in modules[:i]
    ]


class Recorder:
    """Follows a first call: each function of the package that runs, with its parameters that hold the arguments.

    `holders`: for functions whose parameters hold all of the arrays, as they are or as proxies, the names of these.
    """

    def __init__(self, arrays: list[Any]) -> None:
        self.numbers = {id(array): i for i, array in enumerate(arrays)}
        self.calls: list[str] = []
        self.holders: dict[str, set[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        file = Path(code.co_filename)
        if event != "call" or code.co_name.startswith("<") or not file.is_relative_to(PACKAGE):
            return
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        name = f"{module}:{code.co_qualname.removesuffix('.__init__')}"
        self.calls.append(name)
        flags = bool(code.co_flags & 4) + bool(code.co_flags & 8)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
        held = {name: set(self._numbers(frame.f_locals[name], DEPTH)) for name in names if name != "self"}
        if set().union(*held.values()) == set(self.numbers.values()):
            self.holders.setdefault(name, set()).update(name for name, numbers in held.items() if numbers)

    def _numbers(self, value: Any, depth: int) -> Iterator[int]:
        """The numbers of the arrays in a value."""
        if id(value) in self.numbers:
            yield self.numbers[id(value)]
        elif type(value) is Traced and value.view.storage.leaf is not None:
            yield value.view.storage.leaf
        elif depth and isinstance(value, tuple | list | dict):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from self._numbers(inner, depth - 1)


def function(x: Any, y: Any, *, weights: Any) -> Any:
    return np.tanh(x + y) * weights


@pytest.fixture(scope="module")
def recorded() -> Recorder:
    """Trace a first call with three different arrays."""
    arrays = [np.linspace(0.0, i + 1.0, 40_000).reshape(200, 200) for i in range(3)]
    compiled, recorder = jk.jit(function, cache=False), Recorder(arrays)
    before = sys.gettrace()
    sys.settrace(recorder)
    try:
        result = compiled(arrays[0], arrays[1], weights=arrays[2])
    finally:
        sys.settrace(before)
    np.testing.assert_allclose(result, function(arrays[0], arrays[1], weights=arrays[2]))
    return recorder


def test_the_path_is_short_and_straight() -> None:
    assert len(STATIONS) <= MAX_STATIONS
    assert len(returns(STATIONS)) <= MAX_RETURNS, returns(STATIONS)
    assert len(COLD_FORMS) <= MAX_NAMES


def test_stages_follow_one_another() -> None:
    assert [*COLD_STAGES] == ["look up", "trace", "lower", "link"]
    assert [station for stations in COLD_STAGES.values() for station in stations] == [*CALL_PATHS["cold-call"].stations]


def test_all_functions_that_receive_the_arguments_are_drawn(recorded: Recorder) -> None:
    """In the order in which they receive them first; other drawn functions run in between, in the drawn order."""
    assert [*recorded.holders] == [station for station in STATIONS if station in recorded.holders]
    assert len(recorded.holders) >= len(STATIONS) / 2
    first = [recorded.calls.index(station) for station in STATIONS]
    assert first == sorted(first)


def test_the_arguments_return_to_few_modules(recorded: Recorder) -> None:
    """Each repeated call of a station counts."""
    called = [name for name in recorded.calls if name in recorded.holders]
    assert len(returns(called)) <= MAX_RETURNS, returns(called)


def test_the_arguments_have_few_names(recorded: Recorder) -> None:
    names = set().union(*recorded.holders.values())
    assert names <= set(COLD_FORMS), names - set(COLD_FORMS)


def test_detours_are_caught() -> None:
    assert returns(["a:f", "a:g", "b:f", "a:f", "b:g", "b:h"]) == ["a:f", "b:g"]


def test_pass_through_functions_are_caught() -> None:
    """A function that only passes all arguments on is one; one that receives a part of them is not."""
    names: dict[str, Any] = {}
    text = "def hand_on(x, rest):\n  return first(x)\ndef first(x):\n  return x"
    exec(compile(text, str(PACKAGE / "compiler/api/planted.py"), "exec"), names)
    arrays = [np.ones(3) * i for i in range(3)]
    recorder, before = Recorder(arrays), sys.gettrace()
    sys.settrace(recorder)
    try:
        names["hand_on"](arrays[0], {"all": [arrays[1], arrays[2]]})
    finally:
        sys.settrace(before)
    assert recorder.calls == ["compiler.api.planted:hand_on", "compiler.api.planted:first"]
    assert recorder.holders == {"compiler.api.planted:hand_on": {"x", "rest"}}
