"""The oracles of FFT_C2C, FFT_R2C and FFT_C2R: the sums of the definition, by a table of all roots of unity.

Of rows with NaN and infinities only this is promised: the first element, a sum, has NaN where a term has.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle

PI = WIDE("3.14159265358979323846264338327950288")


def roots(n: int, sign: int) -> AnyArray:
    """``exp(sign 2 pi i k / n)`` of angles of at most a quarter of a turn, times powers of i."""
    k = np.arange(n)
    quarters = (8 * k + n) // (2 * n)
    angles = (4 * k - quarters * n).astype(WIDE) * (PI / 2) / WIDE(n)
    powers = np.array([1, 1j, -1, -1j])[quarters % 4]
    values = (np.cos(angles) + 1j * np.sin(angles)) * powers
    return np.asarray(values if sign > 0 else values.conj())


def transformed(x: AnyArray, sign: int) -> AnyArray:
    """The transform of the last axis: by the even and odd elements while these are many, else by its definition."""
    x = np.where(np.isfinite(x), x, 0)  # nothing is promised of what has infinite terms
    n = x.shape[-1]
    if n > 64 and n % 2 == 0:
        even, odd = transformed(x[..., ::2], sign), transformed(x[..., 1::2], sign)
        rotated = odd * roots(n, sign)[: n // 2]
        return np.concatenate([even + rotated, even - rotated], axis=-1)
    table, j = roots(n, sign), np.arange(n)
    result = np.zeros(x.shape, np.clongdouble)
    for k in range(n):
        result[..., k] = (x * table[j * k % n]).sum(axis=-1)
    return result


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
