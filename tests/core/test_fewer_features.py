"""Code for processors with fewer features than the one here: without its masks, fused products and conversions."""

import os
import subprocess
import sys
from pathlib import Path

import processor_skips
import pytest
from processes import python

from jitkernels.core import cpu_target

TESTS = Path(__file__).parents[1]
SENSITIVE = (
    "attrs/test_fp_flags.py", "attrs/test_special_values.py", "compiler/codegen/test_scalars.py",
    "compiler/test_random_programs.py", "dispatch/test_warnings.py",
)  # fmt: skip
"""Tests of what vectors of selects, and casts by several instructions, break first."""
HALVES = """
import numpy as np
import jitkernels as jk
halves = np.arange(65536, dtype=np.uint16).view(np.float16)
widened, rounded = jk.jit(lambda x: x.astype(np.float32)), jk.jit(lambda x: x.astype(np.float16))

def same(got, expected):
    assert got.dtype == expected.dtype and np.array_equal(np.isnan(got), np.isnan(expected))
    numbers, word = ~np.isnan(expected), f"u{expected.itemsize}"
    assert np.array_equal(got[numbers].view(word), expected[numbers].view(word))

with np.errstate(all="ignore"):
    singles = halves.astype(np.float32)
    same(widened(halves), singles)
    middles = (singles[:-1] + singles[1:]) / 2
    random = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    for numbers in (singles, middles, random, *(np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf))):
        same(rounded(numbers), numbers.astype(np.float16))
print(widened.stats().launches > 0 < rounded.stats().launches)
"""


def needs(feature: str) -> None:
    if feature not in cpu_target.target().features:
        processor_skips.skip(f"it has no {feature}")


def test_casts_of_all_halves(private_cache: Path) -> None:
    """NaN, infinities, subnormal numbers and ties, at every float16 and in the middle of two."""
    needs("f16c")
    assert python(HALVES, private_cache, JITKERNELS_CPU_FEATURES="-f16c").split() == ["True"]


@pytest.mark.full
@pytest.mark.parametrize("file", SENSITIVE)
@pytest.mark.parametrize("removed", ["avx512f", "fma", "f16c", "avx"])
def test_all_cases_without_a_feature(removed: str, file: str) -> None:
    needs(removed)
    options = ["-q", "-p", "no:cacheprovider", "-n", "0", "-k", file.partition("/")[0]]
    command = [sys.executable, "-P", "-m", "pytest", *options, str(TESTS / file)]
    variables = {**os.environ, "JITKERNELS_CPU_FEATURES": f"-{removed}"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
