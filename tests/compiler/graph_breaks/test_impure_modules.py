"""Modules whose functions are impure: refused where a call uses them, not where a function names them."""

import os
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

X = np.arange(4.0)


def seeded(x: Any, seed: Any) -> Any:
    if seed is None:
        seed = int.from_bytes(os.urandom(2), "little")
    return x * seed


def noted(x: Any, seed: Any, log: Any = None) -> Any:
    if log is not None:
        log.append(time.time())
    return x + seed


@pytest.mark.parametrize("function", [seeded, noted])
def test_named_but_not_used(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    np.testing.assert_array_equal(compiled(X, 3), function(X, 3))
    explanation = compiled.explain(X, 3)
    assert not explanation.reason
    assert not explanation.breaks


def test_used_in_other_calls() -> None:
    compiled, log = jk.jit(seeded), []  # type: ignore[var-annotated]
    compiled(X, 3)
    assert len({compiled(X[1:], None)[0] for _ in range(20)}) > 1
    both = jk.jit(noted)
    for _ in range(3):
        both(X, 1, log)
        both(X, 1)
    assert len(log) == 3


def drawn(x: Any) -> Any:
    return x + random.random()


def clocked(x: Any) -> Any:
    return x * 0 + time.perf_counter()


def clocked_by_name(x: Any) -> Any:
    return x * 0 + getattr(time, "perf" + "_counter")()


def listed(x: Any) -> Any:
    return x + len(dir(os)) * 0 + os.getpid()


@pytest.mark.parametrize("function", [drawn, clocked, clocked_by_name])
def test_used(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    assert len({float(compiled(X)[0]) for _ in range(20)}) > 1


def test_of_the_process() -> None:
    np.testing.assert_array_equal(jk.jit(listed)(X), listed(X))
