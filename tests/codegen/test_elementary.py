"""Trigonometric functions, their inverses and error functions: within their documented error at hard inputs.

Truth comes from mpmath, in 160 bits. Special values are C's (annex F of C99), as Python's `math` has them.
"""

import functools
import itertools
import math
import re
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import processor_skips
import pytest
from elementary import DTYPES, FUNCTIONS, Array, computed, units_off
from processes import python
from translated import same

from jitkernels.core import cpu_target

LANES = (1, 8, 16)
MOST = 2
CIRCULAR = ("sin", "cos", "tan")
INVERSE = ("asin", "acos", "atan")
ONE_ARGUMENT = (*CIRCULAR, *INVERSE, "erf", "erfc")
STEPS = 40, 62, 84, 106, 33, 65, 97
"""Exponents from which on other digits of 2 / pi are used: float32, then some of float64."""
HARDEST = (6381956970095103 * 2.0**797, 6411027962775774 * 2.0**-47, 1.6e300, 2.0**1023, float(np.finfo(float).max))
BORDERS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(CIRCULAR, (math.pi / 4, *(2.0**k * 1.57 for k in (10, 17, 22)), *(2.0**k for k in STEPS))),
    **dict.fromkeys(INVERSE, (0.5, 1)),
    "erf": (1, 3.95, 5.95),
    "erfc": (0.5, 0.75, 10.1, 26.55, 27.3),
}
"""Where one way to compute a function ends and the next one begins."""


def beside(points: Any, dtype: str, steps: int) -> Array:
    """Numbers of a type and so many on both sides of each."""
    bits = np.array(points, dtype).reshape(-1, 1).view(f"int{8 * np.dtype(dtype).itemsize}")
    return (bits + np.arange(-steps, steps + 1, dtype=bits.dtype)).view(dtype).ravel()


@functools.cache
def nearest_to_turns() -> Array:
    """Of every exponent, the float64 nearest to a multiple of pi/2: the best approximation of 2**e * 2 / pi."""
    found = []
    with mpmath.workprec(1400):
        for exponent in range(-54, 972):
            rest, before, last = mpmath.ldexp(2 / mpmath.pi, exponent), 0, 1
            while last < 2**53:
                best = last
                rest = 1 / (rest - int(rest))
                before, last = last, before + last * int(rest)
            found.append(math.ldexp(best, exponent))
    return np.array(found)


def hard(name: str, dtype: str) -> Array:
    """Numbers of every size, those beside borders, random ones where a function is not constant, of both signs."""
    random, info = np.random.default_rng(5), np.finfo(dtype)
    powers = np.ldexp(1.0, np.arange(math.frexp(info.smallest_subnormal)[1] - 1, info.maxexp, 3)).astype(dtype)
    parts = [powers, np.ldexp(random.uniform(1, 2, 300), random.integers(-30, 6, 300)).astype(dtype)]
    parts += [beside(BORDERS[name], dtype, 30), random.uniform(0, 1, 300).astype(dtype)]
    if name in CIRCULAR:
        turns = np.concatenate([np.arange(1, 200), random.integers(200, 2**31, 400)])
        with mpmath.workprec(160):
            near = [float(k * mpmath.pi / 2) for k in turns.tolist()]
        parts += [beside(near, dtype, 1), random.integers(1, 2**31, 400).astype("u8").astype(dtype)]
        parts += [nearest_to_turns(), np.array(HARDEST)] if dtype == "float64" else []
        far = random.integers(info.tiny.view(f"u{info.dtype.itemsize}"), info.max.view(f"u{info.dtype.itemsize}"), 500)
        parts.append(far.astype(f"u{info.dtype.itemsize}").view(dtype))
    if name in INVERSE:
        parts.append(random.uniform(0.5, 1, 2000).astype(dtype))
    if name.startswith("erf"):
        parts.append(random.uniform(0.75, 1.25, 700).astype(dtype))
        parts.append(random.uniform(0, 28 if name == "erfc" else 6, 700).astype(dtype))
    every = np.concatenate(parts)
    return np.concatenate([every, -every])


def bound(name: str, dtype: str) -> float:
    """What the docstring of a function says."""
    text = FUNCTIONS[name, dtype].__doc__ or ""
    found = re.search(rf"([\d.]+) ULP of {dtype}", text) or re.search(r"at most ([\d.]+) ULP", text)
    assert found, f"{name}_{dtype} does not say how accurate it is"
    return float(found[1])


def truth(name: str) -> Any:
    """The function of mpmath; NaN where there is no real result."""
    function = getattr(mpmath, name)

    def real(*x: Any) -> Any:
        result = function(*(min(value, 1000) for value in x)) if name == "erfc" else function(*x)
        return result if isinstance(result, mpmath.mpf) else mpmath.nan

    return real


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_error_bounds_hold(name: str, dtype: str) -> None:
    x = hard(name, dtype)
    found = computed(name, x, lanes=LANES)
    off = units_off(found[1], truth(name), x)
    worst = int(np.argmax(off))
    assert off[worst] <= bound(name, dtype) <= MOST, (x[worst], found[1][worst])
    for lanes in LANES[1:]:
        assert same(found[lanes], found[1]).all(), lanes


WITHOUT_FUSED = """
import test_elementary as tests
from jitkernels.core import cpu_target
assert not cpu_target.target().fuses
for name in tests.CIRCULAR:
    for dtype in tests.DTYPES:
        x = tests.hard(name, dtype)[::7]
        for found in tests.computed(name, x, lanes=(1, 8)).values():
            assert tests.units_off(found, tests.truth(name), x).max() <= tests.bound(name, dtype), (name, dtype)
"""


@processor_skips.needs(cpu_target.target().is_x86, "all of its kind have the instruction")
def test_angles_without_fma(private_cache: Path) -> None:
    """Exact products are computed by other operations where there is no FMA instruction."""
    python(WITHOUT_FUSED, private_cache, JITKERNELS_CPU_FEATURES="-fma,-avx512f")


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_of_points(dtype: str) -> None:
    random, info = np.random.default_rng(9), np.finfo(dtype)
    exponents = random.integers(info.minexp - info.nmant // 2, info.maxexp - 1, 1500)
    near = (exponents + random.integers(-9, 9, 1500)).clip(info.minexp - info.nmant, info.maxexp - 1)
    far = random.integers(info.minexp, info.maxexp - 1, 1500)
    parts = [[exponents, exponents], [near, far]]
    y, x = (np.ldexp(random.uniform(-2, 2, 3000), np.concatenate(part)).astype(dtype) for part in parts)
    found = computed("atan2", y, x, lanes=LANES)
    off = units_off(found[1], truth("atan2"), y, x)
    worst = int(np.argmax(off))
    assert off[worst] <= bound("atan2", dtype) <= MOST, (y[worst], x[worst], found[1][worst])
    for lanes in LANES[1:]:
        assert same(found[lanes], found[1]).all(), lanes


def special(dtype: str, *more: float) -> Array:
    """Of both signs, and with no result but one: zero, infinity, NaN, the smallest number, and some more."""
    some = np.array([0, np.inf, np.nan, np.finfo(dtype).smallest_subnormal, *more], dtype)
    return np.concatenate([some, -some])


def by_c(name: str, *x: float) -> float:
    try:
        return float(getattr(math, name)(*x))
    except ValueError:  # which is how Python reports what C calls an invalid operation
        return math.nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_special_values(name: str, dtype: str) -> None:
    exact = [1.0] if name in INVERSE else []
    x = special(dtype, *exact, *([] if name in CIRCULAR else [float(np.finfo(dtype).max)]))
    expected = np.array([by_c(name, value) for value in x.tolist()]).astype(dtype)
    for lanes, found in computed(name, x, lanes=LANES).items():
        assert same(found, expected).all(), (lanes, x[~same(found, expected)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_angles(dtype: str) -> None:
    """All pairs: the axes, the diagonals and infinity have the angles of C to the last bit."""
    every = special(dtype, 1, float(np.finfo(dtype).max))
    y, x = (np.array(one) for one in zip(*itertools.product(every, repeat=2), strict=True))
    expected = np.array([by_c("atan2", *pair) for pair in zip(y.tolist(), x.tolist(), strict=True)]).astype(dtype)
    for lanes, found in computed("atan2", y, x, lanes=LANES).items():
        wrong = ~same(found, expected)
        assert not wrong.any(), (lanes, y[wrong], x[wrong], found[wrong])


def test_results_stay_in_range() -> None:
    """A sine or a cosine above 1 would have no angle, and an error function above 1 no probability."""
    x = np.concatenate([beside([k * math.pi / 2 for k in range(1, 60)], "float64", 20), np.linspace(0, 30, 2000)])
    for name in ("sin", "cos", "erf"):
        for dtype in DTYPES:
            assert abs(computed(name, x.astype(dtype))[1]).max() == 1
