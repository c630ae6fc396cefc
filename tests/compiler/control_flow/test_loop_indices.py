"""Indices in loops, in and out of bounds: compiled code returns, writes and raises what Python does, at all levels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jitted import notes
from random_indices import Maker
from written import function_of

import jitkernels as jk
from jitkernels.tools.testing.guard_pages import Guarded

COUNT = 24
OFFSETS = ((0, 1, 0), (1, 0, 2), (-1, 2, 0), (-3, 0, 1), (2**62, 1, 0), (-(2**63), -1, 1))
"""What the programs add to counts: mostly such that indices are inside, or such that they are counted from behind."""


def outcome(function: Any, n: int, offsets: tuple[int, ...], side: Any) -> Any:
    """What a call with arrays beside guard pages gives, raises, and leaves in them."""
    random = np.random.default_rng(n)
    held = [Guarded(random.random(n), side) for _ in range(2)]
    arrays = [one.array for one in held]
    found: Any
    with np.errstate(all="ignore"):
        try:
            found = function(*arrays, np.array(offsets), n)
        except (ArithmeticError, IndexError, ValueError) as error:
            found = type(error), str(error)
    assert all(one.intact() for one in held)
    return *found, *arrays


def alike(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a, b, equal_nan=True) if isinstance(b, np.ndarray | float) else a == b
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("start", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(8, COUNT, 8))])
def test_random_indices(start: int, tmp_path: Path) -> None:
    compiled_ones = 0
    for seed in range(start, start + 8):
        function = function_of(Maker(seed).text(), f"random_indices_{seed}", tmp_path)
        compiled = jk.jit(function, opt_level=seed % 4)
        for number, offsets in enumerate(OFFSETS):
            for n in (9, 4, 1, 0)[: 4 if not number else 2]:
                side: Any = ("end", "start")[number % 2]
                expected, found = outcome(function, n, offsets, side), outcome(compiled, n, offsets, side)
                assert alike(found, expected), (seed, n, offsets, found, expected, Maker(seed).text())
        compiled_ones += not notes(compiled)
    assert compiled_ones >= 6


def compacted(x: Any) -> Any:
    out, k, is_long = np.zeros(len(x)), 0, False
    for i in range(len(x)):
        if x[i] > 0.5:
            out[k] = x[i]
            k += 1
            is_long = k > 3
    return out, k, is_long, k / 2


def test_results_mix_numbers_and_arrays() -> None:
    """The compiled call returns Python numbers itself."""
    compiled = jk.jit(compacted)
    for n in (40, 0, 3, 40):
        x = np.random.default_rng(n).random(n)
        found, expected = compiled(x), compacted(x)
        assert alike(found, expected)
        assert [*map(type, found)] == [*map(type, expected)]
