"""What is behind the last full vector of a loop, on processors without fast masked stores: halves, none masked."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.codegen.python.simd_library import Library
from jitkernels.core import cpu_target

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cheap": lambda x: x + x,
    "costly": lambda x: np.where(x > 1, x, x * x) * x * x * x * x * x * x * x * x * x * x * x * x * x * x + x,
    "bytes to numbers": lambda x: x.astype(np.float32) * np.float32(0.5),
    "numbers to bytes": lambda x: (x == x[::-1]).astype(np.uint8),
    "backwards": lambda x: x[::-1] + x,
    "rows": lambda x: x[: x.size // 7 * 7].reshape(7, -1) + x.dtype.type(1),
    "columns": lambda x: np.repeat(x[:, np.newaxis], 3, axis=1).T.copy(),
    "sums": lambda x: x[: x.size // 5 * 5].reshape(-1, 5).T.sum(axis=0),
    "interleaved": lambda x: np.stack([x, x + x, x], axis=-1),
    "repeated": lambda x: np.repeat(x, 2) + x.dtype.type(1),
    "divisions": lambda x: x // x.dtype.type(3),
}
DTYPES = ("int8", "uint16", "float32", "int64", "float64", "complex64")
BESIDE = 32
"""Elements on either side of a result, which must stay as they are."""


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that code declares which is made for an AMD processor without AVX-512."""
    own = cpu_target.target()
    features = frozenset(name for name in own.features if not name.startswith("avx512"))
    target = replace(own, name="znver3", features=features, vector_bytes=min(own.vector_bytes, 32), registers=16)
    monkeypatch.setattr(cpu_target, "target", lambda: target)
    found: list[str] = []
    declare = Library.declare

    def noted(library: Library, name: str, *kinds: Any) -> None:
        found.append(name)
        declare(library, name, *kinds)

    monkeypatch.setattr(Library, "declare", noted)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_remainders(name: str, dtype: str, declared: list[str]) -> None:
    function = FUNCTIONS[name]
    if dtype.startswith("complex") and name in ("divisions", "costly", "bytes to numbers"):
        return

    def written(x: Any, y: Any) -> None:
        y[...] = function(x)

    compiled = jk.jit(written, strict=True)
    for count in (*range(8, 75), 300):
        x = np.random.default_rng(count).integers(1, 3, count + 8).astype(dtype)[3 : count + 3]
        expected = function(x)
        around = np.full(expected.size + 2 * BESIDE, 77, expected.dtype)
        out = around[BESIDE:-BESIDE].reshape(expected.shape)
        compiled(x, out)
        np.testing.assert_array_equal(out, expected)
        assert (np.concatenate([around[:BESIDE], around[-BESIDE:]]) == 77).all()
    assert not [name for name in declared if "masked.store" in name]
