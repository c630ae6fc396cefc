"""The recompile limit: strings, list lengths and numbers in branches that differ in each call."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.capture.pytree.recompile_limit import MAX_VALUES


def named(x: Any, s: Any) -> Any:
    return {s: x * 2}


def summed(xs: Any, s: Any) -> Any:
    total = 0.0
    for one in xs:
        total += one * one
    return total


@pytest.mark.parametrize("function", [named, summed])
def test_number_of_compiled_values_is_limited(function: Callable[..., Any]) -> None:
    """Later values fall back to the plain function."""
    compiled = jk.jit(function)
    for n in range(1, 60):
        given: tuple[Any, Any] = (np.ones(3), f"name {n}") if function is named else ([1.5] * n, "")
        for _ in range(2):
            assert str(compiled(*given)) == str(function(*given))
    assert 0 < compiled.stats().compiles <= MAX_VALUES
    assert "are enough" in str(compiled.explain(*given))
    compiled.release()
    compiled(*given)
    assert compiled.stats().compiles == 1


def test_a_trivial_first_call_does_not_prevent_compilation() -> None:
    """A number for which the function returns at once is followed by others for which it computes."""

    @jk.jit
    def rounds(x: Any, n: Any) -> Any:
        if n == 0:
            return x[::2]
        if n == 1:
            return None
        t = 0.0
        for i in range(n):
            t += x[i % 3] * i
        return t

    x = np.ones(9)
    for n in (0, 0, 1, 1):
        rounds(x, n)
    assert rounds(x, 100_000) == rounds.__wrapped__(x, 100_000)
    began = time.process_time()
    rounds(x, 100_000)
    assert time.process_time() - began < 2e-3


def text_of(x: Any) -> Any:
    return str(x)


def text_of_list(x: Any) -> Any:
    return repr([x, 1])


def text_of_result(x: Any) -> Any:
    return f"{x * 2} %s" % (x + 1)


def text_of_grown(x: Any) -> Any:
    found, last = [], None
    for i in range(12):
        if i * x > 5:
            found.append(i)
            last = i
    return str(found), str(last)


@pytest.mark.parametrize("function", [text_of, text_of_list, text_of_result, text_of_grown])
def test_text_of_traced_values(function: Callable[[Any], Any]) -> None:
    """`str` shows the value, not its proxy."""
    compiled = jk.jit(function)
    numbers: list[Any] = [2.0, 3, True, np.float32(1.5), np.int64(4)]
    for x in numbers if function is text_of_grown else [*numbers, np.arange(3.0), np.ones((2, 2))]:
        for _ in range(3):
            assert compiled(x) == function(x)
