"""Exponentials, logarithms, powers, roots, hyperbolic functions: within their documented error, exact where possible.

Truth comes from mpmath, in 160 bits. Special values are those of NumPy, which are C's.
"""

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from elementary import DTYPES, Array, computed, units_off
from in_lanes import results
from test_elementary import beside, bound
from translated import same

from jitkernels.core import cpu_target
from jitkernels.microkernels.maths import function_table, strict_arithmetic

LANES = (1, 8, 16)
MOST = {"pow": 4.0}
"""Units that a function may be off, where it is not 2."""
FUSED = cpu_target.target().fuses
"""Whether products are fused into sums, as they were where errors were measured; elsewhere they are a little larger."""
LN2 = math.log(2)


def real(function: Callable[..., Any]) -> Callable[..., Any]:
    """NaN where a function has no real result."""

    def found(*x: Any) -> Any:
        try:
            result = function(*x)
        except ZeroDivisionError:
            return mpmath.nan
        return result if isinstance(result, mpmath.mpf) else mpmath.nan

    return found


def log_of_base(base: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.log(x) / mpmath.log(base)


def cbrt(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def softplus(x: Any) -> Any:
    return x if x > 2000 else mpmath.log1p(mpmath.exp(x))


def sigmoid(x: Any) -> Any:
    return mpmath.mpf(0) if x < -2000 else 1 / (1 + mpmath.exp(-x))


def limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is infinite or has reached its limit is so nearer to zero, too, where it takes no gigabytes to say."""
    return lambda x: function(min(max(x, -3000), 3000))


EXPONENTIAL = {
    **{name: limited(getattr(mpmath, name)) for name in ("exp", "expm1", "sinh", "cosh", "tanh")},
    "exp2": limited(lambda x: mpmath.mpf(2) ** x),
    "sigmoid": sigmoid,
    "softplus": softplus,
}
INVERSE = {
    **{name: real(getattr(mpmath, name)) for name in ("log", "log1p", "asinh", "acosh", "atanh")},
    "log2": real(log_of_base(2)),
    "log10": real(log_of_base(10)),
    "cbrt": cbrt,
}
TRUE = {**EXPONENTIAL, **INVERSE}


def hard(name: str, dtype: str) -> Array:
    """Numbers of every size, those beside where the arithmetic changes, random ones, of both signs."""
    random, info = np.random.default_rng(6), np.finfo(dtype)
    least = math.frexp(info.smallest_subnormal)[1] - 1
    powers = np.ldexp(random.uniform(1, 2, info.maxexp - least), np.arange(least, info.maxexp))[::3]
    borders: list[float] = [0.25, 0.5, 1, 2, 1e-4, 2.0**-13, 2.0**-25, 2.0**-28, 2.0**-54, 20, 40]
    if name in EXPONENTIAL:
        scale = 1 if name == "exp2" else LN2
        steps = np.array([0, 1, 2, 3, 7, 20, 60, 127, -info.minexp - 1, info.maxexp - 1, -least - 1])
        borders += [(step + half) * scale for step in steps.tolist() for half in (-0.5, 0, 0.5)]
        draws = [random.uniform(0, 1, 400), random.uniform(0, info.maxexp * scale, 400)]
    else:
        borders += [math.sqrt(0.5), math.sqrt(2), math.sqrt(2) - 1, 1 - math.sqrt(0.5), 1 / 3, 0.2]
        borders += [2.0**k for k in (30, 60, 100, info.maxexp - 2, info.minexp - 1)]
        draws = [random.uniform(0, 1, 400), random.uniform(0.5, 3, 500), random.uniform(0, 50, 100)]
        draws += [1 + np.ldexp(random.uniform(-1, 1, 300), random.integers(-info.nmant, 0, 300))]
    parts = [powers.astype(dtype), beside(borders, dtype, 12), *(draw.astype(dtype) for draw in draws)]
    every = np.concatenate(parts)
    return np.concatenate([every, -every])


def limit(name: str, dtype: str) -> float:
    """Units that a function may be off here."""
    return bound(name, dtype) if FUSED else MOST.get(name, 2.2)


def check(name: str, dtype: str, *arguments: Array, truth: Callable[..., Any]) -> None:
    """Within the bound that its docstring has, the same in any number of lanes."""
    found = computed(name, *arguments, lanes=LANES)
    off = units_off(found[1], truth, *arguments)
    worst = int(np.argmax(off))
    assert off[worst] <= limit(name, dtype), ([x[worst] for x in arguments], found[1][worst])
    assert bound(name, dtype) <= MOST.get(name, 2)
    for lanes in LANES[1:]:
        assert same(found[lanes], found[1]).all(), lanes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRUE)
def test_error_bounds_hold(name: str, dtype: str) -> None:
    check(name, dtype, hard(name, dtype), truth=TRUE[name])


@pytest.mark.parametrize("dtype", DTYPES)
def test_hypotenuses(dtype: str) -> None:
    """Of sides of any size, beside one another too; no square overflows or is lost."""
    random, info = np.random.default_rng(9), np.finfo(dtype)
    exponents = random.integers(info.minexp - info.nmant, info.maxexp - 1, 1500)
    near = (exponents + random.integers(-9, 9, 1500)).clip(info.minexp - info.nmant, info.maxexp - 1)
    x, y = (np.ldexp(random.uniform(-2, 2, 1500), part).astype(dtype) for part in (exponents, near))
    check("hypot", dtype, x, y, truth=mpmath.hypot)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype: str) -> None:
    """Bases of any size whose powers just do not overflow or vanish, and bases near 1 with large exponents."""
    random, info = np.random.default_rng(8), np.finfo(dtype)
    bases = np.exp2(random.uniform(info.minexp - 5, info.maxexp, 600)).astype(dtype)
    beside_one = 1 + np.ldexp(random.uniform(-0.9, 1, 600), -random.integers(0, info.nmant, 600))
    # Whose mantissas are furthest from 1, where logarithms are least accurate.
    far = random.uniform(0.7, 0.73, 600), random.uniform(1.37, 1.42, 600)
    x = np.concatenate([bases, *(one.astype(dtype) for one in (beside_one, *far))])
    logs = random.uniform(info.minexp - info.nmant, info.maxexp, x.size)
    with np.errstate(divide="ignore"):
        y = np.nan_to_num(logs / np.log2(x.astype(np.float64)), posinf=3, neginf=-3).astype(dtype)
    few = random.choice([0.5, 1 / 3, -1, 2, 3, -2.5], x.size).astype(dtype)
    check("pow", dtype, np.concatenate([x, x]), np.concatenate([y, few]), truth=lambda a, b: a**b)
    whole = random.integers(-9, 10, x.size).astype(dtype)
    check("pow", dtype, -x, whole, truth=lambda a, b: a ** int(b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "base"), [("logaddexp", math.e), ("logaddexp2", 2)])
def test_sums_of_exponentials(name: str, base: float, dtype: str) -> None:
    """Errors are relative to the larger one of both terms, as their sum may vanish."""
    random = np.random.default_rng(7)
    x = random.uniform(-60, 60, 2000) * np.exp2(random.integers(-9, 3, 2000))
    y = x + random.uniform(-40, 40, 2000) * np.exp2(random.integers(-9, 1, 2000))
    x, y = x.astype(dtype), y.astype(dtype)
    found = computed(name, x, y, lanes=LANES)
    with mpmath.workprec(160):
        log_base = mpmath.log(2) if base == 2 else mpmath.mpf(1)
        for got, *pair in zip(found[1].tolist(), x.tolist(), y.tolist(), strict=True):
            more, less = (mpmath.mpf(one) for one in (max(pair), min(pair)))
            added = mpmath.log1p(mpmath.exp((less - more) * log_base)) / log_base
            unit = np.spacing(np.array(max(abs(more), added, abs(more + added)), dtype))
            assert abs(got - (more + added)) <= limit(name, dtype) * float(unit), pair
    assert bound(name, dtype) <= 2
    for lanes in LANES[1:]:
        assert same(found[lanes], found[1]).all(), lanes


def special(dtype: str) -> Array:
    """Of both signs, the numbers that have results of their own in one function or another."""
    info = np.finfo(dtype)
    some = [0, np.inf, np.nan, info.smallest_subnormal, info.max, 1, 2, 0.5, 3, 1e10, 7, 1.5]
    return np.concatenate([np.array(some, dtype), -np.array(some, dtype)])


NUMPY = {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "pow": "power"}


def by_numpy(name: str, *x: Array) -> Array:
    """NumPy's function; of those that it has not, what they tend to."""
    with np.errstate(all="ignore"):
        if name == "sigmoid":
            return np.asarray(1 / (1 + np.exp(-x[0])))
        return np.asarray(
            np.logaddexp(x[0], x[0].dtype.type(0)) if name == "softplus" else getattr(np, NUMPY.get(name, name))(*x)
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*TRUE, "hypot", "pow", "logaddexp", "logaddexp2"])
def test_special_values(name: str, dtype: str) -> None:
    """Zeros with their signs, ones, infinities, NaN and identical results occur exactly where NumPy has them."""
    some = special(dtype)
    x = (some,) if name in TRUE else tuple(np.array(np.meshgrid(some, some)).reshape(2, -1))
    expected = by_numpy(name, *x)
    exact = ~np.isfinite(expected) | (expected == x[0]) | (abs(expected) == 1) | (expected == 0)
    assert exact.sum() >= 6
    for lanes, found in computed(name, *x, lanes=LANES).items():
        wrong = ~same(found, expected) & exact
        assert not wrong.any(), (lanes, [one[wrong] for one in x], found[wrong], expected[wrong])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_results(dtype: str) -> None:
    """Powers of the base, cubes, exact integer powers and Pythagorean triples have exact results."""
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    powers = np.ldexp(1.0, exponents).astype(dtype)
    assert (computed("log2", powers)[1] == exponents).all()
    assert (computed("exp2", exponents.astype(dtype))[1] == powers).all()
    tens = np.arange(-30, 39)
    assert (computed("log10", np.array([float(f"1e{k}") for k in tens], dtype))[1] == tens).all()
    whole = np.arange(-200, 200).astype(dtype)
    assert (computed("cbrt", whole * whole * whole)[1] == whole).all()
    base, exponent = (grid.ravel() for grid in np.meshgrid(np.arange(-20, 20), np.arange(12)))
    fits = abs(base.astype(float)) ** exponent < 2.0**info.nmant
    base, exponent = base[fits].astype(dtype), exponent[fits].astype(dtype)
    assert (computed("pow", base, exponent)[1] == base.astype(float) ** exponent).all()
    assert (computed("pow", powers, np.ones_like(powers))[1] == powers).all()
    three, four, five = (np.array([number], dtype) * powers[60:-60] for number in (3, 4, 5))
    assert (computed("hypot", three, -four)[1] == five).all()


def test_every_function_of_the_table_exists() -> None:
    """Those of the C library are of doubles alone."""
    for name, (module, _) in function_table.MODULES.items():
        for dtype in ("float64",) if module == "libm" else DTYPES:
            assert function_table.function(name, dtype) is not None, (name, dtype)


def test_cache_keys_of_functions_differ() -> None:
    """A key contains the module and the name of a function."""
    functions: dict[tuple[str, str], Any] = {}
    for module in sorted(Path(function_table.__file__).parent.glob("*.py")):
        for found in vars(importlib.import_module(f"jitkernels.microkernels.maths.{module.stem}")).values():
            if hasattr(found, "fastmath"):
                name = found.__module__, found.__qualname__
                assert "<locals>" in found.__qualname__ or functions.setdefault(name, found) is found, name
    assert len(functions) > 200


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_errors_of_products_are_exact(dtype: str) -> None:
    """With an FMA instruction, and with the sequence that needs none."""
    random = np.random.default_rng(4)
    a, b = (np.ldexp(random.uniform(-2, 2, 1024), random.integers(-20, 20, 1024)).astype(dtype) for _ in range(2))
    a[:2], b[:2] = np.finfo(dtype).max, (0, -0.0)
    product = a * b
    function: Any = getattr(strict_arithmetic, f"times_plus_{dtype}")
    true = [
        float(Fraction(one) * Fraction(other) - Fraction(whole))
        for one, other, whole in zip(a.tolist(), b.tolist(), product.tolist(), strict=True)
    ]
    assert any(true)
    with np.errstate(all="ignore"):  # of halves of the largest number
        plain = [function(*three) for three in zip(a, b, -product, strict=True)]
    np.testing.assert_array_equal(plain, true)
    for outs in results(function, [a, b, -product], LANES).values():
        np.testing.assert_array_equal(outs[0], true)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "softplus", "erfc", "pow", "ldexp"])
def test_powers_of_two_by_an_instruction_or_without(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bit is the same, of subnormal numbers too."""
    random = np.random.default_rng(5)
    most = np.finfo(dtype).maxexp * 1.2
    x = np.r_[random.uniform(-most, most, 3000), 0.0, -0.0, np.inf, -np.inf, np.nan].astype(dtype)
    given = [x]
    if name == "pow":
        given = [np.full_like(x, 1.7), x]
    if name == "ldexp":
        given = [random.uniform(-2, 2, x.size).astype(dtype), np.where(np.isfinite(x), x, most).round().astype(dtype)]
    usual = computed(name, *given, lanes=LANES)
    monkeypatch.setattr(cpu_target.Target, "does", lambda *_: False)
    for lanes, found in computed(name, *given, lanes=LANES).items():
        assert same(found, usual[lanes]).all(), lanes
