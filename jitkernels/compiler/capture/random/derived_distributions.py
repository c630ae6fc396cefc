"""Distributions that NumPy makes of uniform, normal and exponential numbers, step by step as it draws them.

See `distributions`: `bits` is a `BitGenerator`; `normal` and `exponential` draw the numbers of the interface.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.ir.special_functions import libm_exp, libm_log

STIRLING = (
    8.333333333333333e-02, -2.777777777777778e-03, 7.936507936507937e-04, -5.952380952380952e-04,
    8.417508417508418e-04, -1.917526917526918e-03, 6.410256410256410e-03, -2.955065359477124e-02,
    1.796443723688307e-01, -1.39243221690590e00,
)  # fmt: skip
"""NumPy's coefficients of Stirling's series."""
HALF_LOG_OF_TWO_PI = np.float64(0.5) * np.float64(1.8378770664093453)


def standard_gamma(bits: Any, normal: Any, exponential: Any, shape: Any) -> Any:
    """A standard gamma number of a shape from one on."""
    return exponential(bits) if shape == np.float64(1.0) else _gamma_by_rejection(bits, normal, shape)


def _gamma_by_rejection(bits: Any, normal: Any, shape: Any) -> Any:
    """The same of a shape above one (Marsaglia and Tsang), by rejection of cubes of normal numbers."""
    result = np.float64(0.0)
    least = shape - np.float64(1.0) / np.float64(3.0)
    width = np.float64(1.0) / np.sqrt(np.float64(9.0) * least)
    searching = True
    while searching:
        x = np.float64(0.0)
        cube = np.float64(0.0)
        while cube <= np.float64(0.0):
            x = normal(bits)
            cube = np.float64(1.0) + width * x
        cube = cube * cube * cube
        u = bits.next_double()
        result = least * cube
        if u < np.float64(1.0) - np.float64(0.0331) * (x * x) * (x * x):
            searching = False
        else:
            bound = np.float64(0.5) * x * x + least * (np.float64(1.0) - cube + libm_log(cube))
            searching = not (libm_log(u) < bound)
    return result


def laplace(bits: Any, loc: Any, scale: Any) -> Any:
    """A number of Laplace's distribution, by inversion."""
    u = np.float64(0.0)
    while u == np.float64(0.0):
        u = bits.next_double()
    result = loc + scale * libm_log(u + u)
    if u >= np.float64(0.5):
        result = loc - scale * libm_log(np.float64(2.0) - u - u)
    return result


def poisson(bits: Any, mean: Any) -> Any:
    """A number of Poisson's distribution."""
    return _poisson_by_rejection(bits, mean) if mean >= np.float64(10.0) else _poisson_by_products(bits, mean)


def _poisson_by_products(bits: Any, mean: Any) -> Any:
    """The number of uniform numbers whose product stays above ``exp(-mean)``."""
    result = np.int64(0)
    least = libm_exp(-mean)
    product = bits.next_double()
    while product > least:
        result = result + np.int64(1)
        product = product * bits.next_double()
    return result


def _poisson_by_rejection(bits: Any, mean: Any) -> Any:
    """The transformed rejection of Hörmann (1993), for large means."""
    result = np.int64(0)
    log_mean = libm_log(mean)
    b = np.float64(0.931) + np.float64(2.53) * np.sqrt(mean)
    a = np.float64(-0.059) + np.float64(0.02483) * b
    inverse = np.float64(1.1239) + np.float64(1.1328) / (b - np.float64(3.4))
    limit = np.float64(0.9277) - np.float64(3.6224) / (b - np.float64(2.0))
    searching = True
    while searching:
        u = bits.next_double() - np.float64(0.5)
        v = bits.next_double()
        distance = np.float64(0.5) - np.abs(u)
        count = np.floor((np.float64(2.0) * a / distance + b) * u + mean + np.float64(0.43))
        result = np.int64(count)
        if distance >= np.float64(0.07) and v <= limit:
            searching = False
        elif count < np.float64(0.0) or (distance < np.float64(0.013) and v > distance):
            pass
        else:
            left = libm_log(v) + libm_log(inverse) - libm_log(a / (distance * distance) + b)
            searching = not (left <= -mean + count * log_mean - _log_gamma(count + np.float64(1.0)))
    return result


def _log_gamma(x: Any) -> Any:
    """The logarithm of the gamma function of a whole number (Zhang and Jin, 1996), as NumPy computes it."""
    result = np.float64(0.0)
    if x != np.float64(1.0) and x != np.float64(2.0):
        steps = np.int64(0)
        if x < np.float64(7.0):
            steps = np.int64(np.float64(7.0) - x)
        at = x + np.float64(steps)
        square = (np.float64(1.0) / at) * (np.float64(1.0) / at)
        series = np.float64(STIRLING[-1])
        for coefficient in STIRLING[-2::-1]:
            series = series * square
            series = series + np.float64(coefficient)
        result = series / at + HALF_LOG_OF_TWO_PI + (at - np.float64(0.5)) * libm_log(at) - at
        for _ in range(steps):
            result = result - libm_log(at - np.float64(1.0))
            at = at - np.float64(1.0)
    return result


def check_shape(shape: Any) -> None:
    """Raise for a shape of gamma numbers that is below one, whose numbers are powers, or no number."""
    if not (shape >= np.float64(1.0) and np.isfinite(shape)):
        raise ValueError


def check_positive(number: Any) -> None:
    """Raise for what is no positive number."""
    if not (number > np.float64(0.0) and np.isfinite(number)):
        raise ValueError


def check_mean(mean: Any) -> None:
    """Raise for a mean of Poisson's distribution that NumPy refuses, or of which nothing is drawn."""
    if not (mean > np.float64(0.0) and mean < np.float64(1e18)):
        raise ValueError
