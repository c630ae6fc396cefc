"""Functions of `math` of numbers that only the compiled code knows: values, signs of zeros, and Python's exceptions."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, reasons

import jitkernels as jk

ONE = [
    "fabs", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc", "gamma", "lgamma",
    "isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "degrees", "radians", "ulp",
]  # fmt: skip
TWO = ["atan2", "hypot", "copysign", "fmod", "remainder", "pow", "isclose", "nextafter", "log"]
EXACT = {
    "fabs", "sqrt", "isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "degrees", "radians", "ulp", "copysign",
    "fmod", "remainder", "isclose", "nextafter",
}  # fmt: skip
UNITS = 6
NUMBERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    1e-300,
    5e-324,
    3.0,
    7.0,
    170.5,
    -3.5,
    2.0**52 + 1,
    1e18,
    3e-5,
    -0.1,
)
UNUSUAL = (math.inf, -math.inf, math.nan, -1.0, -2.0, 0.0, 1e308, 710.0, 1e19)
SECOND = (0.5, -3.0, 1.0, 2.0, 7.25, 1e-9)


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


def of_elements(function: Any, arguments: int) -> Callable[..., Any]:
    def one(x: Any, y: Any) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = function(x[i])
        return out

    def two(x: Any, y: Any) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = function(x[i], y[i])
        return out

    return one if arguments == 1 else two


CASES = [(name, 1) for name in ONE] + [(name, 2) for name in TWO]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[f"{name}-{count}" for name, count in CASES])
def test_values_and_exceptions(name: str, arguments: int) -> None:
    function = getattr(math, name)
    run = of_elements(function, arguments)
    pairs = [*itertools.product(NUMBERS, SECOND if arguments == 2 else (1.0,))]
    given = [pair for pair in pairs if not isinstance(outcome(function, *pair[:arguments]), tuple)]
    x, y = (np.array(one) for one in zip(*given, strict=True))
    compiled = jk.jit(run, strict=True)
    found, expected = compiled(x, y), run(x, y)
    assert compiled.stats().kernels
    assert not reasons(compiled)
    near = 0 if name in EXACT else UNITS
    size = np.maximum(abs(expected), 1.0) if name == "lgamma" else expected
    assert (abs(found - expected) <= near * np.spacing(abs(size))).all(), x[found != expected]
    assert (np.signbit(found) == np.signbit(expected)).all()
    for pair in itertools.product(UNUSUAL, UNUSUAL[:6] if arguments == 2 else (1.0,)):
        operands = [np.array([0.5] * 9 + [value]) for value in pair]
        got, wanted = outcome(compiled, *operands), outcome(run, *operands)
        if isinstance(wanted, tuple):
            assert got == wanted, pair
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-15)


def lengths(x: Any) -> float:
    total = 0.0
    for i in range(len(x) - 3):
        total += math.dist((x[i], x[i + 1]), (x[i + 2], 1.0)) + math.dist(x[:2], x[1:3]) + math.hypot(x[i], 1, 2.0)
    return total


def fractions(x: Any) -> Any:
    out = np.zeros((len(x), 2))
    for i in range(len(x)):
        fraction, whole = math.modf(x[i])
        out[i, 0], out[i, 1] = math.ldexp(fraction, i % 7 - 3), whole
    return out


def of_ints(x: Any) -> int:
    total = 0
    for i in range(len(x)):
        n = int(x[i] * 1000)
        total += math.isqrt(n * n + i) + math.gcd(n, i) + math.factorial(i % 21) % 1001 + math.floor(n) + math.ceil(i)
    return total


def tolerant(x: Any) -> int:
    count = 0
    for i in range(1, len(x)):
        if math.isclose(x[i], x[i - 1], rel_tol=0.5) or math.isclose(x[i], 0.0, abs_tol=1e-3):
            count += 1
    return count


def undefined(x: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        if not math.isnan(x[i]) and math.isfinite(x[i]):
            total += math.floor(x[i])
    return total


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    function.__name__: function for function in (lengths, fractions, of_ints, tolerant, undefined)
}
ARRAYS = {
    "normal": np.random.default_rng(0).normal(size=40),
    "halves": np.arange(-20, 20) / 2,
    "unusual": np.array([0.5, -0.0, np.inf, 1e300, -np.inf, 5e-324, 3, 2, 1, 9]),
}


@pytest.mark.parametrize("values", ARRAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, values: str) -> None:
    compiled = agree(PROGRAMS[name], lambda: ARRAYS[values].copy())
    assert not compiled.explain(ARRAYS["normal"]).reason


@pytest.mark.parametrize("values", [[1.0, 2.0], [1e-300, -0.0, np.inf, np.nan], [0.5, 1e308], [-1e300, 5e-324]])
def test_overflow_of_ldexp(values: list[float]) -> None:
    def scaled(x: Any, n: int) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = math.ldexp(x[i], n + i)
        return out

    x, compiled = np.array(values * 5), jk.jit(scaled)
    for n in (3, -1100, 1000, 2000, 2**40, -(2**40)):
        found, expected = outcome(compiled, x, n), outcome(scaled, x, n)
        assert found == expected if isinstance(expected, tuple) else np.array_equal(found, expected, equal_nan=True)


def test_tolerances_that_overflow() -> None:
    def near(x: Any) -> int:
        count = 0
        for i in range(1, len(x)):
            if math.isclose(x[i], x[i - 1], rel_tol=3.0):
                count += 1
        return count

    x = np.array([1e308, -1e308, 1.7e308, -1.7e308, np.inf, 1e308, -np.inf, np.inf, np.inf, np.nan, 1.0, 2.0])
    assert jk.jit(near, strict=True)(x) == near(x) > 4


@pytest.mark.parametrize(("n", "error"), [(-1, ValueError), (20, None), (21, None)])
def test_factorials_beyond_64_bits(n: int, error: Any) -> None:
    def last(numbers: Any) -> int:
        total = 0
        for number in numbers:
            total = math.factorial(int(number))
        return total

    numbers = np.array([*range(12), n])
    if error is not None:
        with pytest.raises(error):
            jk.jit(last)(numbers)
    else:
        assert jk.jit(last)(numbers) == math.factorial(n)


def test_guards_decide_predicates_of_arguments() -> None:
    def kind(x: Any, k: float) -> Any:
        return x + (1 if math.isfinite(k) else 2 if math.isinf(k) else 3)

    compiled = jk.jit(kind)
    for k in (1.0, math.inf, -math.inf, math.nan, 2.0, 1e308):
        assert compiled(np.zeros(3000), k)[0] == kind(np.zeros(1), k)[0]


def test_the_message_names_the_function() -> None:
    def parts(x: Any) -> float:
        total = 0.0
        for i in range(len(x)):
            total += math.frexp(x[i])[0]
        return total

    with pytest.raises(jk.TracingError, match=r"math\.frexp of an element is not supported \(.*:\d+\)"):
        jk.jit(parts, strict=True)(np.ones(50))
