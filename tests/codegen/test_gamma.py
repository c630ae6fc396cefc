"""The gamma function, its logarithm and digamma: within their documented errors, with special values, in all lanes.

Truth comes from mpmath, in 160 bits.
"""

import math
import re
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from elementary import DTYPES, Array, computed, units_off
from translated import same

from jitkernels.microkernels.maths import function_table

LANES = (1, 8)
NAMES = ("gamma", "lgamma", "digamma")
ROOT = 1.4616321449683622
"""Of digamma."""
TRUTH: dict[str, Any] = {
    "gamma": mpmath.gamma,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 1000 else mpmath.loggamma(x),
    "digamma": mpmath.digamma,
}


def bound(name: str, dtype: str) -> float:
    """What the docstring of a function says."""
    found = re.search(r"at most ([\d.]+) ULP", function_table.function(name, dtype).__doc__ or "")
    assert found
    return float(found[1])


def positive(name: str, dtype: str) -> Array:
    """Of every interval, near ones and roots, of all sizes."""
    random = np.random.default_rng(3)
    least, most = (-1020, 1010) if dtype == "float64" else (-120, 120)
    parts = [random.uniform(0, 8, 900), np.exp2(random.uniform(least, 3, 80)), np.arange(1, 31) / 1.0]
    parts += [middle + random.normal(0, 1e-5, 60) for middle in (1, 2, ROOT, 8, 0.5)]
    parts += [random.uniform(8, 171 if dtype == "float64" else 34, 300)]
    parts += [] if name == "gamma" else [np.exp2(random.uniform(3, most, 80))]
    return np.concatenate(parts).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_error_bounds_hold(name: str, dtype: str) -> None:
    x = positive(name, dtype)
    found = computed(name, x, lanes=LANES)
    off = units_off(found[1], TRUTH[name], x)
    worst = int(np.argmax(off))
    assert off[worst] <= bound(name, dtype) <= 6, (x[worst], found[1][worst])
    assert same(found[8], found[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_negative_numbers(name: str) -> None:
    """By reflection: near zeros the error is one in units of 1."""
    x = -np.concatenate([np.random.default_rng(4).uniform(0, 170, 900), np.exp2(np.linspace(-1000, 0, 90)[:-1])])
    found = computed(name, x, lanes=LANES)
    truth = np.array([float(TRUTH[name](mpmath.mpf(value))) for value in x.tolist()])
    floor = 0.0 if name == "gamma" else 1.0
    slope = 1 if name == "gamma" else 8  # the argument of the tangent is rounded
    assert (abs(found[1] - truth) <= slope * 9 * np.spacing(np.maximum(abs(truth), floor))).all()
    assert same(found[8], found[1]).all()


def test_factorials_are_exact() -> None:
    n = np.arange(1.0, 24)
    assert computed("gamma", n)[1].tolist() == [float(math.factorial(k)) for k in range(23)]


SPECIAL = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    -1.0,
    -2.0,
    -1e300,
    172.0,
    1.0,
    2.0,
    -185.5,
    5e-324,
    -1.7e308,
    -5e-324,
)
EXPECTED = {
    "gamma": (math.inf, -math.inf, math.inf, math.nan, math.nan, *(math.nan,) * 3, math.inf, 1.0, 1.0, 0.0, math.inf,
              math.nan, -math.inf),
    "lgamma": (*(math.inf,) * 4, math.nan, *(math.inf,) * 3, math.lgamma(172), 0.0, 0.0, math.lgamma(-185.5),
               math.lgamma(5e-324), math.inf, math.lgamma(5e-324)),
    "digamma": (-math.inf, math.inf, math.inf, math.nan, math.nan, *(math.nan,) * 3, 5.144584683240858,
                -0.5772156649015329, 0.42278433509846713, 5.225747878085265, -math.inf, math.nan, math.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str) -> None:
    for found in computed(name, np.array(SPECIAL), lanes=LANES).values():
        expected = np.array(EXPECTED[name])
        near = np.isfinite(expected) & (expected != 0)
        assert same(found[~near], expected[~near]).all(), found
        np.testing.assert_allclose(found[near], expected[near], rtol=1e-15)
