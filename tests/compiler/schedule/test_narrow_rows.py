"""Ends of rows of narrow elements, which no instruction masks without AVX-512, in pages that may be the last ones."""

from pathlib import Path
from typing import Any

import numpy as np
import processor_skips
import pytest
from processes import python

import jitkernels as jk
from jitkernels.core import cpu_target
from jitkernels.tools import testing

ROWS = 3
WIDTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200)
NARROW = ("bool", "int8", "uint8", "int16", "uint16", "float16")
BESIDE = 5


def narrow(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return np.random.default_rng([seed, *shape]).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def inner(x: Any, y: Any, out: Any) -> None:
    """Write between columns that belong to others."""
    out[:, 5:-5] = np.maximum(x, y)


def backwards(x: Any, y: Any, out: Any) -> None:
    out[:, 5:-5] = np.minimum(x[:, ::-1], y)


def in_place(x: Any, y: Any, out: Any) -> None:
    for _ in range(3):
        out[:, 5:-5] = np.maximum(out[:, 5:-5], x) == y


def three(x: Any, y: Any, out: Any) -> None:
    """One array has other dtypes, so that its elements are wider."""
    out[:, 5:-5] = np.where(x > y, x, y) * np.float64(1)


FUNCTIONS = (inner, backwards, in_place, three)


def check(dtype: str, side: Any) -> None:
    """Compare with NumPy, on arrays that a page without access begins or ends at."""
    for function in FUNCTIONS:
        compiled = jk.jit(function, strict=True)
        for width in WIDTHS:
            x, y = (narrow((ROWS, width), dtype, seed) for seed in (1, 2))
            out = narrow((ROWS, width + 2 * BESIDE), "float64" if function is three else dtype, 3)
            expected = out.copy()
            function(x, y, expected)
            guards = [testing.Guarded(array, side) for array in (x, y, out)]
            compiled(*[guard.array for guard in guards])
            np.testing.assert_array_equal(guards[2].array, expected, err_msg=f"{function.__name__} {dtype} {width}")
            assert all(guard.intact() for guard in guards)


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("dtype", NARROW)
def test_ends_of_rows(dtype: str, side: str) -> None:
    check(dtype, side)


@processor_skips.needs(cpu_target.target().is_x86, "AVX-512 is an extension of x86")
@pytest.mark.parametrize("missing", ["-avx512f", "-avx"])
def test_without_masks(missing: str, private_cache: Path) -> None:
    code = "import test_narrow_rows as tests\nfor dtype in ('bool', 'int16'): tests.check(dtype, 'end')"
    python(code, private_cache, JITKERNELS_CPU_FEATURES=missing)
