"""Outlined cold functions are objects of their own, with the same results as inline."""

from pathlib import Path
from typing import Any

import pytest
from in_lanes import numbers, results
from translated import same, written

from jitkernels.codegen import source_protocol
from jitkernels.codegen.python.simd_library import Definition, Library
from jitkernels.codegen.source_protocol import cold, noinline

OF_ITS_OWN = """
SIZE = np.float32(3)

@noinline()
def slowly(x, is_less):
    while x > SIZE:
        x = x * np.float32(0.5) - np.float32(1)
    return -x if is_less else x, is_less and x > np.float32(0)

@cold()
def widely(x, is_less):
    y, is_positive = x + np.float32(0.5), is_less
    if x > np.float32(8) and x < np.float32(1e30):
        y, is_positive = slowly(x, is_less)
    return np.float64(y), is_positive

@inlined()
def rare(x):
    y, is_positive = np.float64(x), x > np.float32(0)
    if x > SIZE:
        y, is_positive = widely(x, x < np.float32(20))
    return y, is_positive
"""


@pytest.mark.parametrize("alone", [None, {}], ids=["in the module", "of its own"])
def test_cold_functions_are_outlined(alone: dict[str, Definition] | None, tmp_path: Path) -> None:
    """With more lanes than a mask's word has, too. What is called is not a part of the module any more."""
    function = written(tmp_path / "rare.py", OF_ITS_OWN, noinline=noinline, cold=cold)["rare"]
    x = numbers("float32")
    found = results(function, [x], (1, 4, 16, 128), alone)
    for outs in found.values():
        for out, expected in zip(outs, found[1], strict=True):
            assert same(out, expected).all()
    library = Library(alone=alone)
    library.called(function, ["float32"], 16)
    parts = [line.split("(")[0] for line in library.text.splitlines() if line.startswith("define")]
    inside = [name for name in ("slowly", "widely", "rare") if any(f'"{name}.' in part for part in parts)]
    assert inside == (["rare"] if alone is not None else ["slowly", "widely", "rare"])


@pytest.mark.parametrize(("before", "now"), [("apart", noinline), ("seldom", cold)])
def test_the_names_of_before_are_deprecated(before: str, now: Any) -> None:
    def mark(decorate: Any) -> Any:
        def function(x: Any) -> Any:
            return x

        return decorate("contract")(function).fastmath

    with pytest.deprecated_call(match=now.__name__):
        marked = mark(getattr(source_protocol, before))
    assert marked == mark(now)
