"""One-line expressions: the ones of numexpr's published benchmarks, and the two of MegBrain's."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import loop_of, program
from jitkernels.benchmarks.programs.inputs import vectors
from jitkernels.benchmarks.programs.parallel import prange


@program(vectors(2), "2*a + 3*b")
def linear(a: Any, b: Any) -> Any:
    return 2 * a + 3 * b


@loop_of(linear)
def linear_loop(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = 2.0 * a[i] + 3.0 * b[i]
    return out


@program(vectors(2), "a*b - 4.1*a > 2.5*b")
def comparison(a: Any, b: Any) -> Any:
    return a * b - 4.1 * a > 2.5 * b


@loop_of(comparison)
def comparison_loop(a: Any, b: Any) -> Any:
    out = np.empty(a.size, np.bool_)
    for i in prange(a.size):
        out[i] = a[i] * b[i] - 4.1 * a[i] > 2.5 * b[i]
    return out


@program(vectors(2), ".25*a**2 + .75*b**2 - 3*b + 1")
def polynomial(a: Any, b: Any) -> Any:
    return 0.25 * a**2 + 0.75 * b**2 - 3 * b + 1


@loop_of(polynomial)
def polynomial_loop(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = 0.25 * a[i] * a[i] + 0.75 * b[i] * b[i] - 3.0 * b[i] + 1.0
    return out


@program(vectors(2, -100, 100), "sin(a)**2 + cos(b)**2")
def sines(a: Any, b: Any) -> Any:
    return np.sin(a) ** 2 + np.cos(b) ** 2


@loop_of(sines)
def sines_loop(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = np.sin(a[i]) ** 2 + np.cos(b[i]) ** 2
    return out


@program(vectors(2), "where(a > b, a, b)")
def larger(a: Any, b: Any) -> Any:
    return np.where(a > b, a, b)


@loop_of(larger)
def larger_loop(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = a[i] if a[i] > b[i] else b[i]
    return out


@program(vectors(3), "a * b * c")
def product(a: Any, b: Any, c: Any) -> Any:
    return a * b * c


@loop_of(product)
def product_loop(a: Any, b: Any, c: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = a[i] * b[i] * c[i]
    return out


@program(vectors(3), "a * b + c")
def product_and_sum(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


@loop_of(product_and_sum)
def product_and_sum_loop(a: Any, b: Any, c: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = a[i] * b[i] + c[i]
    return out
