"""The oracle of elementary functions."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, tanh

ROOT_OF_PI = np.sqrt(4 * np.arctan(WIDE(1)))
BORDER, FRACTIONS, SUMMANDS = WIDE(2), 70, 40
"""The switch from series to continued fraction, and the terms of both for the accuracy of long double."""


def erfc_beyond(x: AnyArray) -> AnyArray:
    """Return erfc(x) for x >= 2, by Laplace's continued fraction, evaluated from its end."""
    fraction = np.zeros_like(x)
    for k in range(FRACTIONS, 0, -1):
        fraction = WIDE(k) / 2 / (x + fraction)
    return np.asarray(np.exp(-x * x) / (x + fraction) / ROOT_OF_PI)


def erf_near_zero(x: AnyArray) -> AnyArray:
    """Return erf(x) for -2 <= x <= 2, by a series of terms of one sign."""
    square = 2 * x * x
    total = np.ones_like(x)
    for k in range(SUMMANDS, 0, -1):
        total = 1 + total * square / (2 * k + 1)
    return np.asarray(2 / ROOT_OF_PI * np.exp(-x * x) * x * total)


def erf(x: AnyArray) -> AnyArray:
    """Return the error function."""
    is_near = np.abs(x) < BORDER
    result = np.copysign(WIDE(1), x)
    result[is_near] = erf_near_zero(x[is_near])
    result[~is_near] *= 1 - erfc_beyond(np.abs(x[~is_near]))
    return result


def erfc(x: AnyArray) -> AnyArray:
    """Return 1 - erf(x), without cancellation where it is small."""
    is_far = x >= BORDER
    result = np.empty_like(x)
    result[is_far] = erfc_beyond(x[is_far])
    result[~is_far] = 1 - erf(x[~is_far])
    return result


@oracle
def vtanh(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [tanh(x)]


@oracle
def vlog(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.log(x)]


@oracle
def verf(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [erf(x)]


@oracle
def vsin(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.sin(x)]


@oracle
def vcos(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.cos(x)]


@oracle
def vpow(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [np.power(x, y)]
