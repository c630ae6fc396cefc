"""The oracles of FFT_C2C, FFT_R2C and FFT_C2R: the sums of the definition, by a table of all roots of unity.

Of rows with NaN and infinities only this is promised: the first element, a sum, has NaN where a term has.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle

PI = WIDE("3.14159265358979323846264338327950288")
FEW, MAX_DEFINITION = 8, 1000
"""Lengths up to which the definition is the quickest, and of primes: of longer rows the n^2 terms take minutes."""


def roots(n: int, sign: int) -> AnyArray:
    """``exp(sign 2 pi i k / n)`` of angles of at most a quarter of a turn, times powers of i."""
    k = np.arange(n)
    quarters = (8 * k + n) // (2 * n)
    angles = (4 * k - quarters * n).astype(WIDE) * (PI / 2) / WIDE(n)
    powers = np.array([1, 1j, -1, -1j])[quarters % 4]
    values = (np.cos(angles) + 1j * np.sin(angles)) * powers
    return np.asarray(values if sign > 0 else values.conj())


def transformed(x: AnyArray, sign: int) -> AnyArray:
    """The transform of the last axis: by factors of its length, then the definition or, for long primes, chirps."""
    return _by_factors(np.where(np.isfinite(x), x, 0), sign)  # nothing is promised of what has infinite terms


def _by_factors(x: AnyArray, sign: int) -> AnyArray:
    n = x.shape[-1]
    factor = next((p for p in range(2, int(n**0.5) + 1) if n % p == 0), n)
    if n <= FEW or factor == n:
        return _by_chirps(x, sign) if n > MAX_DEFINITION else by_definition(x, sign)
    table, k = roots(n, sign), np.arange(n)
    every = _by_factors(np.swapaxes(x.reshape(*x.shape[:-1], n // factor, factor), -1, -2), sign)
    terms = (every[..., first, k % (n // factor)] * table[first * k % n] for first in range(factor))
    return np.asarray(sum(terms))


def by_definition(x: AnyArray, sign: int) -> AnyArray:
    """The sums themselves, in n^2 steps."""
    n = x.shape[-1]
    table, j = roots(n, sign), np.arange(n)
    result = np.zeros(x.shape, np.clongdouble)
    for k in range(n):
        result[..., k] = (x * table[j * k % n]).sum(axis=-1)
    return result


def _by_chirps(x: AnyArray, sign: int) -> AnyArray:
    """Bluestein's algorithm: as 2 j k = j^2 + k^2 - (k - j)^2, the transform is a convolution with a chirp."""
    n = x.shape[-1]
    k = np.arange(n)
    chirp, length = roots(2 * n, sign)[k * k % (2 * n)], 1 << (2 * n - 2).bit_length()
    signal, kernel = np.zeros((*x.shape[:-1], length), np.clongdouble), np.zeros(length, np.clongdouble)
    signal[..., :n] = x * chirp
    kernel[k] = kernel[-k] = chirp.conj()
    product = _by_factors(signal, -1) * _by_factors(kernel, -1)
    return np.asarray(_by_factors(product, 1)[..., :n] * chirp / WIDE(length))


def parts(values: AnyArray) -> AnyArray:
    return np.stack([values.real, values.imag], axis=-1)


@oracle
def fft_c2c(attr: Any, x: AnyArray) -> list[AnyArray]:
    values = np.moveaxis(x[..., 0] + 1j * x[..., 1], 1, -1)
    result = WIDE(attr.scale) * transformed(values, 1 if attr.inverse else -1)
    y = parts(np.moveaxis(result, -1, 1))
    if attr.n:
        y[:, 0][np.isnan(x).any(axis=1)] = np.nan
    return [y]


@oracle
def fft_r2c(attr: Any, x: AnyArray) -> list[AnyArray]:
    if not attr.n:
        return [np.zeros((attr.rows, 1, 2), WIDE)]
    y = parts(WIDE(attr.scale) * transformed(x, -1)[:, : attr.n // 2 + 1])
    y[:, 0, 0][np.isnan(x).any(axis=1)] = np.nan
    return [y]


@oracle
def fft_c2r(attr: Any, x: AnyArray) -> list[AnyArray]:
    n = max(2 * attr.bins - (1 if attr.odd else 2), 0)
    whole = np.zeros((attr.rows, n), np.clongdouble)
    for k in range(min(attr.bins, n)):
        whole[:, (n - k) % n] = x[:, k, 0] - 1j * x[:, k, 1]
        whole[:, k] = x[:, k, 0] + (1j * x[:, k, 1] if 0 < 2 * k != n else 0)
    y = WIDE(attr.scale) * transformed(whole, 1).real
    if n:
        y[:, 0][np.isnan(x[..., 0]).any(axis=1)] = np.nan
    return [y]
