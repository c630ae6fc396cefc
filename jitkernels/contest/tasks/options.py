"""European call options by the formula of Black and Scholes, with the normal distribution by a rational function.

Formula 26.2.17 of Abramowitz and Stegun, Handbook of Mathematical Functions, is off by 7.5e-8 at most: all contestants
should be as wrong as that against the error function of the C library.
"""

import functools
import math
from typing import Any

import numpy as np

from jitkernels.contest.measures import distance
from jitkernels.contest.task import Program, Task

RATE, SPREAD = 0.02, 0.3


def options(size: int) -> tuple[Any, Any, Any]:
    """Prices, strikes and years."""
    drawn = np.random.default_rng(5)
    return drawn.uniform(10, 50, size), drawn.uniform(10, 50, size), drawn.uniform(0.2, 2, size)


def normal(x: Any) -> Any:
    """The distribution function of the normal distribution."""
    t = 1 / (1 + 0.2316419 * abs(x))
    tail = 0.39894228 * np.exp(-0.5 * x * x) * t
    tail = tail * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    return np.where(x < 0, tail, 1 - tail)


def price(value: Any, strike: Any, years: Any) -> Any:
    """What a call option is worth."""
    width = SPREAD * np.sqrt(years)
    first = (np.log(value / strike) + (RATE + 0.5 * SPREAD * SPREAD) * years) / width
    return value * normal(first) - strike * np.exp(-RATE * years) * normal(first - width)


@functools.cache
def _truth(size: int) -> Any:
    def exact(value: float, strike: float, years: float) -> float:
        width = SPREAD * math.sqrt(years)
        first = (math.log(value / strike) + (RATE + 0.5 * SPREAD * SPREAD) * years) / width
        shares = [0.5 * math.erfc(-one / math.sqrt(2)) for one in (first, first - width)]
        return value * shares[0] - strike * math.exp(-RATE * years) * shares[1]

    return np.array([exact(*one) for one in zip(*map(np.ndarray.tolist, options(size)), strict=True)])


TASK = Task(
    name="options",
    summary="Prices of so many call options, float64",
    unit="options",
    sizes=(10**2, 10**3, 10**4, 10**5, 10**6),
    error=lambda size, answer: distance(answer, _truth(size)),
    error_words="largest error of a price",
)


@functools.cache
def given(size: int) -> tuple[Any, Any, Any]:
    """The options, made before anything is timed again."""
    return options(size)


@TASK.contestant("numpy")
def of_numpy() -> Program:
    return lambda size: price(*given(size))


@TASK.contestant("numba")
def of_numba() -> Program:
    import numba

    vectorised = numba.njit(_rebound(price, normal=numba.njit(normal)))
    return lambda size: vectorised(*given(size))


@TASK.contestant("jax")
def of_jax() -> Program:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(_rebound(price, np=jax.numpy, normal=_rebound(normal, np=jax.numpy)))
    return lambda size: compiled(*given(size))


@TASK.contestant("torch")
def of_torch() -> Program:
    import torch

    compiled = torch.compile(_rebound(price, np=torch, normal=_rebound(normal, np=torch)), dynamic=True)
    return lambda size: compiled(*map(torch.from_numpy, given(size))).numpy()


@TASK.contestant("tensorflow")
def of_tensorflow() -> Program:
    import tensorflow as tf

    class Names:
        """What NumPy calls these."""

        exp, log, sqrt, where = tf.exp, tf.math.log, tf.sqrt, tf.where

    compiled = tf.function(_rebound(price, np=Names, normal=_rebound(normal, np=Names)), jit_compile=True)
    return lambda size: compiled(*given(size)).numpy()


@TASK.contestant("jitkernels")
def of_jitkernels() -> Program:
    import jitkernels as jk

    compiled = jk.jit(price)
    return lambda size: compiled(*given(size))


def _rebound(function: Any, **names: Any) -> Any:
    """The function with other meanings of some names around it."""
    return type(function)(function.__code__, {**function.__globals__, **names}, function.__name__)
