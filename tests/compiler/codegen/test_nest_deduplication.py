"""Nests that differ in their arrays alone share one function in large modules, and each writes its own arrays."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.core import module_text, outline_identical_nests


def several(x: Any, y: Any, rounds: Any) -> Any:
    """Reductions, which are shared among threads in parts, and maxima of neighbours, each of three arrays in turn."""
    found = []
    for one in (x, y, x + y):
        high = one.copy()
        for _ in range(rounds):
            high[1:-1, 1:-1] = np.maximum(
                np.maximum(high[:-2, 1:-1], high[2:, 1:-1]), np.maximum(high[1:-1, :-2], high[1:-1, 2:])
            )
        found.append(high.sum() - one.mean())
        found.append((high * one).max(axis=1))
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_equal_nests_share_a_function(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def shared(texts: Any) -> list[str]:
        found = originally(texts)
        called.extend(text for text in found if ".shared(" in text and ".places = " in text)
        return found

    originally = outline_identical_nests.outline_congruent
    monkeypatch.setattr(outline_identical_nests, "outline_congruent", shared)
    monkeypatch.setattr(module_text, "MIN_SEPARATE_CHARS", threads)  # other code for each number of threads
    before = jk.get_num_threads()
    jk.set_num_threads(threads)
    try:
        compiled = jk.jit(several)
        for size in (5, 40, 300):
            x = np.random.default_rng(size).random((size, size + 1))
            for found, right in zip(compiled(x, x[::-1] * 2, 12), several(x, x[::-1] * 2, 12), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-12)
    finally:
        jk.set_num_threads(before)
    assert len(called) >= 3
