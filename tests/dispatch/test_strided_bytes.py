"""Stores of small elements at large strides: NumPy's results, in little code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.core import module_text

MAX_BYTES = 16_000
"""Of machine code, which each lane that is written by itself makes longer; it has had five times as many."""


def filled(p: Any, q: Any) -> None:
    p[3::19] = 1


def computed(p: Any, q: Any) -> None:
    p[3::19] = q[3::19] * q[3::19] + q[:-3:19] * 3


def transposed(p: Any, q: Any) -> None:
    p.reshape(-1, 20)[:, 3:9] = (q * q + q).reshape(20, -1).T[:, 3:9]


@pytest.mark.parametrize("function", [filled, computed, transposed])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "int32"])
def test_strided_bytes(function: Callable[[Any, Any], None], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def measured(source: Any, symbol: str) -> bytes:
        code: bytes = object_code(source, symbol)
        sizes.append(len(code) if source.name == "fused" else 0)
        return code

    object_code = module_text.Fused.object_code
    monkeypatch.setattr(module_text.Fused, "object_code", measured)
    compiled = jk.jit(function)
    for size in (40, 2000, 12_000):
        p = np.zeros(size, dtype)
        q = (np.arange(size) % 5).astype(dtype)
        expected = p.copy()
        compiled(p, q)
        function(expected, q)
        np.testing.assert_array_equal(p, expected)
    assert max(sizes, default=0) < MAX_BYTES
