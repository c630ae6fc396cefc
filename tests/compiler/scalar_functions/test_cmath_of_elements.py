"""Functions of `cmath` of numbers that only the compiled code knows: values, signs of zeros, and exceptions."""

import cmath
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import reasons

import jitkernels as jk

ONE = [
    "exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "phase", "isnan", "isinf", "isfinite",
]  # fmt: skip
TWO = ["log", "rect", "isclose"]
UNITS = 6
"""Of the larger component, in the last place."""
PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-9, 20.0)
UNUSUAL = (math.inf, -math.inf, math.nan, 0.0, 710.0, 1e308)
SECOND = (0.5, 2.0, 7.25, 3.0)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


def of_elements(function: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    def one(x: Any, y: Any) -> Any:
        out = np.zeros(len(x), np.complex128)
        for i in range(len(x)):
            out[i] = function(x[i])
        return out

    def two(x: Any, y: Any) -> Any:
        out = np.zeros(len(x), np.complex128)
        for i in range(len(x)):
            out[i] = function(x[i], y[i])
        return out

    return one if arguments == 1 else two


CASES = [(name, 1) for name in ONE] + [(name, 2) for name in TWO]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[f"{name}-{count}" for name, count in CASES])
def test_values_and_exceptions(name: str, arguments: int) -> None:
    function = getattr(cmath, name)
    run = of_elements(function, arguments)
    first = [complex(re, im) for re, im in itertools.product(PARTS, PARTS)] if name != "rect" else [*PARTS]
    pairs = [*itertools.product(first, SECOND if arguments == 2 else (1.0,))]
    results = [outcome(function, *pair[:arguments]) for pair in pairs]
    given = [pair for pair, one in zip(pairs, results, strict=True) if type(one) is not tuple and cmath.isfinite(one)]
    x, y = (np.array(one) for one in zip(*given, strict=True))
    compiled = jk.jit(run, strict=True)
    found, expected = compiled(x, y), run(x, y)
    assert compiled.stats().kernels
    assert not reasons(compiled)
    assert (abs(found - expected) <= UNITS * np.spacing(abs(expected))).all(), x[found != expected]
    for plane in ("real", "imag"):
        ours, pythons = getattr(found, plane), getattr(expected, plane)
        differ = (ours == 0) & (pythons == 0) & (np.signbit(ours) != np.signbit(pythons))
        assert not differ.any(), x[differ]
    numbers = [complex(*pair) for pair in itertools.product(UNUSUAL, UNUSUAL)] if name != "rect" else [*UNUSUAL]
    for pair in itertools.product(numbers, SECOND[:1] if arguments == 1 else (*SECOND[:1], 1.0, 0.0)):
        operands = [np.array([0.5] * 9 + [value]) for value in pair]
        got, wanted = outcome(compiled, *operands), outcome(run, *operands)
        if isinstance(wanted, tuple):
            assert got == wanted, pair
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-15)


def roots_of_unity(n: int) -> Any:
    out = np.zeros(n, np.complex128)
    for k in range(n):
        out[k] = cmath.exp(2j * cmath.pi * k / n)
    return out


def transform(x: Any) -> Any:
    """The discrete Fourier transform by its definition."""
    n = len(x)
    out = np.zeros(n, np.complex128)
    for k in range(n):
        s = 0j
        for t in range(n):
            s += x[t] * cmath.exp(-2j * cmath.pi * t * k / n)
        out[k] = s
    return out


def polar(x: Any) -> Any:
    out = np.zeros((len(x), 2))
    for i in range(len(x)):
        r, phi = cmath.polar(complex(x[i], 1.0 - x[i]))
        out[i, 0], out[i, 1] = r, phi + abs(cmath.rect(r, phi) - complex(x[i], 1.0 - x[i]))
    return out


def newton(x: Any) -> Any:
    """The number of steps to a root of ``z**3 - 1``."""
    steps = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        z = complex(x[i], 0.7)
        while not cmath.isclose(z * z * z, 1.0, rel_tol=1e-9) and steps[i] < 50:
            z -= (z * z * z - 1) / (3 * z * z)
            steps[i] += 1
    return steps


@pytest.mark.parametrize("function", [transform, polar, newton], ids=lambda one: one.__name__)
def test_programs(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(4).standard_normal(33)
    np.testing.assert_allclose(jk.jit(function, strict=True)(x), function(x), rtol=1e-12, atol=1e-12)


def test_a_function_without_code_is_named() -> None:
    def arcs(x: Any) -> Any:
        s = 0j
        for i in range(len(x)):
            s += cmath.acos(x[i])
        return s

    with pytest.raises(jk.TracingError, match=r"cmath\.acos of an element is not supported"):
        jk.jit(arcs, strict=True)(np.ones(4))
    assert roots_of_unity(5).shape == jk.jit(roots_of_unity)(5).shape
    np.testing.assert_allclose(jk.jit(roots_of_unity, strict=True)(9), roots_of_unity(9), rtol=1e-15, atol=1e-15)
