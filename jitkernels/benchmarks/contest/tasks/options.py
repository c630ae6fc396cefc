"""European call options by the formula of Black and Scholes, with a rational approximation of the normal distribution.

Formula 26.2.17 of Abramowitz and Stegun, Handbook of Mathematical Functions, has an error of 7.5e-8 at most: all
contestants should show that error against the error function of the C library.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.benchmarks.contest.measures import distance
from jitkernels.benchmarks.contest.task import Program, Task

RATE, VOLATILITY_SPREAD = 0.02, 0.3


def options(size: int) -> tuple[Any, Any, Any]:
    """Return prices, strikes and years."""
    drawn = np.random.default_rng(5)
    return drawn.uniform(10, 50, size), drawn.uniform(10, 50, size), drawn.uniform(0.2, 2, size)


def pricer(library: Any, inner: Callable[[Any], Any] = lambda function: function) -> Any:
    """Return the pricer of a call, from functions that every library names as NumPy does; `inner` wraps a helper."""

    @inner
    def normal(x: Any) -> Any:
        t = 1 / (1 + 0.2316419 * library.abs(x))
        tail = 0.39894228 * library.exp(-0.5 * x * x) * t
        tail = tail * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        return library.where(x < 0, tail, 1 - tail)

    def price(value: Any, strike: Any, years: Any) -> Any:
        width = VOLATILITY_SPREAD * library.sqrt(years)
        first = (library.log(value / strike) + (RATE + 0.5 * VOLATILITY_SPREAD * VOLATILITY_SPREAD) * years) / width
        paid = strike * library.exp(-RATE * years)
        return value * normal(first) - paid * normal(first - width)

    return price


@functools.cache
def _truth(size: int) -> Any:
    def exact(value: float, strike: float, years: float) -> float:
        width = VOLATILITY_SPREAD * math.sqrt(years)
        first = (math.log(value / strike) + (RATE + 0.5 * VOLATILITY_SPREAD * VOLATILITY_SPREAD) * years) / width
        shares = [0.5 * math.erfc(-bound / math.sqrt(2)) for bound in (first, first - width)]
        return value * shares[0] - strike * math.exp(-RATE * years) * shares[1]

    return np.array([exact(*option) for option in zip(*map(np.ndarray.tolist, options(size)), strict=True)])


TASK = Task(
    name="options",
    summary="Prices of call options, float64",
    unit="options",
    sizes=(10**2, 10**3, 10**4, 10**5, 10**6),
    error=lambda size, answer: distance(answer, _truth(size)),
    error_words="largest error of a price",
)


@functools.cache
def cached_options(size: int) -> tuple[Any, Any, Any]:
    """Return the options, created before anything is timed."""
    return options(size)


@TASK.contestant("numpy")
def of_numpy() -> Program:
    price = pricer(np)
    return lambda size: price(*cached_options(size))


@TASK.contestant("numba")
def of_numba() -> Program:
    import numba

    compiled = numba.njit(pricer(np, numba.njit))
    return lambda size: compiled(*cached_options(size))


@TASK.contestant("jax")
def of_jax() -> Program:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(pricer(jax.numpy))
    return lambda size: compiled(*cached_options(size))


@TASK.contestant("torch")
def of_torch() -> Program:
    import torch

    compiled = torch.compile(pricer(torch), dynamic=True)
    return lambda size: compiled(*map(torch.from_numpy, cached_options(size))).numpy()


@TASK.contestant("tensorflow")
def of_tensorflow() -> Program:
    import tensorflow as tf

    class Names:
        """NumPy's names for TensorFlow's functions."""

        abs, exp, log, sqrt, where = tf.abs, tf.exp, tf.math.log, tf.sqrt, tf.where

    compiled = tf.function(pricer(Names), jit_compile=True)
    return lambda size: compiled(*cached_options(size)).numpy()


@TASK.contestant("jitkernels")
def of_jitkernels() -> Program:
    import jitkernels as jk

    compiled = jk.jit(pricer(np))
    return lambda size: compiled(*cached_options(size))
