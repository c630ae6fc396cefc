"""``print`` under a flag: a function is compiled where the flag is false, and prints where it is true."""
# ruff: noqa: T201  # what is tested

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def in_loop(x: Any, verbose: bool = False) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        if verbose:
            print(i, total)
    return total


def by_level(x: Any, verbose: int) -> Any:
    if verbose > 1:
        print("doubled", end="")
    return x * 2 + 1


def helper(x: Any, debug: Any) -> Any:
    if debug:
        print("of a helper")
    return x * 2


def in_helper(x: Any, debug: Any) -> Any:
    return helper(x, debug) + 1


def always(x: Any, flag: Any) -> Any:
    print(len(x))
    return x * 2 + 1


def by_elements(x: Any, flag: Any) -> float:
    total = 0.0
    for value in x:
        if value > 60:
            print("large")
        total += value
    return total


def as_value(x: Any, flag: Any) -> Any:
    list(map(print, [flag]))
    return x * 2 + 1


def by_alias(x: Any, flag: Any) -> Any:
    say = print
    say(flag)
    return x * 2 + 1


@pytest.mark.parametrize("function", [in_loop, by_level, in_helper])
def test_flag(function: Any, capfd: pytest.CaptureFixture[str]) -> None:
    compiled, x = jk.jit(function), np.arange(64.0)
    for flag in (0, 0, 2, 0, 2):
        flag = bool(flag) if function is in_loop else flag
        np.testing.assert_array_equal(compiled(x, flag), function(x, flag))
        ours_and_pythons = capfd.readouterr().out
        half = len(ours_and_pythons) // 2
        assert ours_and_pythons[:half] == ours_and_pythons[half:]
        assert bool(half) == bool(flag)
        assert ("the function calls print (" in str(compiled.explain(x, flag))) == bool(flag)
    assert not capfd.readouterr().out


@pytest.mark.parametrize("function", [always, by_elements, as_value, by_alias])
def test_reached(function: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Each call prints."""
    compiled, x = jk.jit(function), np.arange(64.0)
    function(x, 1)
    expected = capfd.readouterr().out
    for _ in range(3):
        compiled(x, 1)
        assert capfd.readouterr().out == expected
    assert "calls print" in str(compiled.explain(x, 1))
