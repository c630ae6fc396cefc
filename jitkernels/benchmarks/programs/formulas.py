"""Elementwise formulas of several lines."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import loop_of, program
from jitkernels.benchmarks.programs.inputs import values, vectors
from jitkernels.benchmarks.programs.parallel import prange

SQUARE_ROOT_OF_HALF = 0.7071067811865476
ERF_STEP = 0.3275911
ERF_FACTORS = 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429
"""Abramowitz and Stegun, 7.1.26, common in code that has NumPy alone; its error is at most 1.5e-7."""
EARTH_RADIUS = 6371.0
DEGREE = 0.017453292519943295


def erf(x: Any) -> Any:
    t = 1.0 / (1.0 + ERF_STEP * np.abs(x))
    f1, f2, f3, f4, f5 = ERF_FACTORS
    below = 1.0 - t * (f1 + t * (f2 + t * (f3 + t * (f4 + t * f5)))) * np.exp(-x * x)
    return np.sign(x) * below


def erf_text(x: str) -> str:
    t = f"(1.0 / (1.0 + {ERF_STEP} * abs({x})))"
    f1, f2, f3, f4, f5 = (f"({factor})" for factor in ERF_FACTORS)
    below = f"(1.0 - {t} * ({f1} + {t} * ({f2} + {t} * ({f3} + {t} * ({f4} + {t} * {f5})))) * exp(-{x} * {x}))"
    return f"where({x} < 0, -{below}, {below})"


def normal_distribution(x: Any) -> Any:
    return 0.5 + 0.5 * erf(x * SQUARE_ROOT_OF_HALF)


def options(elements: int, dtype: str) -> tuple[Any, ...]:
    prices, strikes = values(elements, dtype, 10, 50), values(elements, dtype, 10, 50, 1)
    return prices, strikes, values(elements, dtype, 0.1, 2, 2), 0.03, 0.3


_SPREAD = "(volatility * sqrt(years))"
_FIRST = f"((log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / {_SPREAD})"
_CALL, _PUT = (
    f"(0.5 + 0.5 * {erf_text(f'({x} * {SQUARE_ROOT_OF_HALF})')})" for x in (_FIRST, f"({_FIRST} - {_SPREAD})")
)


@program(options, f"price * {_CALL} - strike * exp(-rate * years) * {_PUT}")
def black_scholes(price: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    spread = volatility * np.sqrt(years)
    first = (np.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    second = first - spread
    return price * normal_distribution(first) - strike * np.exp(-rate * years) * normal_distribution(second)


@loop_of(black_scholes)
def black_scholes_loop(price: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    out = np.empty_like(price)
    for i in prange(price.size):
        spread = volatility * np.sqrt(years[i])
        first = (np.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / spread
        paid = strike[i] * np.exp(-rate * years[i])
        out[i] = price[i] * normal_distribution(first) - paid * normal_distribution(first - spread)
    return out


@program(vectors(1, -6, 6), "0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))")
def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@loop_of(gelu_tanh)
def gelu_tanh_loop(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.size):
        v = x[i]
        out[i] = 0.5 * v * (1.0 + np.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))
    return out


@program(vectors(1, -6, 6), f"x * (0.5 + 0.5 * {erf_text(f'(x * {SQUARE_ROOT_OF_HALF})')})")
def gelu_erf(x: Any) -> Any:
    return x * normal_distribution(x)


@loop_of(gelu_erf)
def gelu_erf_loop(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = x[i] * normal_distribution(x[i])
    return out


def points_of_the_plane(elements: int, dtype: str) -> tuple[Any, ...]:
    count = (values(elements, "float64", 0, 50, 4)).astype(np.int32)
    return *vectors(4, -1.8, 1.8)(elements, dtype), count


_ALIVE = "x * x + y * y <= 4.0"


@program(
    points_of_the_plane,
    f"where({_ALIVE}, x * x - y * y + cx, x)",
    f"where({_ALIVE}, 2.0 * x * y + cy, y)",
    f"where({_ALIVE}, count + 1, count)",
)
def mandelbrot_step(x: Any, y: Any, cx: Any, cy: Any, count: Any) -> Any:
    alive = x * x + y * y <= 4.0
    return np.where(alive, x * x - y * y + cx, x), np.where(alive, 2.0 * x * y + cy, y), count + alive


@loop_of(mandelbrot_step)
def mandelbrot_step_loop(x: Any, y: Any, cx: Any, cy: Any, count: Any) -> Any:
    new_x, new_y, new_count = np.empty_like(x), np.empty_like(y), np.empty_like(count)
    for i in prange(x.size):
        alive = x[i] * x[i] + y[i] * y[i] <= 4.0
        new_x[i] = x[i] * x[i] - y[i] * y[i] + cx[i] if alive else x[i]
        new_y[i] = 2.0 * x[i] * y[i] + cy[i] if alive else y[i]
        new_count[i] = count[i] + alive
    return new_x, new_y, new_count


_HALF_CHORD = (
    f"sin((lat2 - lat1) * {DEGREE} / 2.0)**2 + "
    f"cos(lat1 * {DEGREE}) * cos(lat2 * {DEGREE}) * sin((lon2 - lon1) * {DEGREE} / 2.0)**2"
)


@program(vectors(4, -85, 85), f"2.0 * {EARTH_RADIUS} * arcsin(sqrt({_HALF_CHORD}))")
def haversine(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    lat1, lon1, lat2, lon2 = np.radians(lat1), np.radians(lon1), np.radians(lat2), np.radians(lon2)
    a = np.sin((lat2 - lat1) / 2.0) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2.0) ** 2
    return 2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(a))


@loop_of(haversine)
def haversine_loop(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    out = np.empty_like(lat1)
    for i in prange(lat1.size):
        first_latitude, second_latitude = lat1[i] * DEGREE, lat2[i] * DEGREE
        across = np.sin((lon2[i] - lon1[i]) * DEGREE / 2.0) ** 2
        a = (
            np.sin((second_latitude - first_latitude) / 2.0) ** 2
            + np.cos(first_latitude) * np.cos(second_latitude) * across
        )
        out[i] = 2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(a))
    return out
