"""Generated Fourier transforms of several rows at once and of odd numbers of reals, against NumPy's long doubles."""

from typing import Any

import numpy as np
import pytest
from oracles import fourier

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import find_implementation
from jitkernels.dispatch.kernel_cache import KernelFuncs

FLOATS = ("float32", "float64")
SHORT = (1, 2, 3, 8, 11, 16, 17, 23, 26, 34, 37, 48, 101, 119, 128, 323)
"""Lengths on either side of every choice: radices, large primes with and without others, convolutions."""
ROWS = (1, 3, 19)
LONG_ODD = (501, 625, 933, 1155, 6561, 19 * 23 * 29, 3**10)


def run(attr: KernelAttr, x: Any) -> Any:
    """The result of the generated kernel."""
    gen = find_implementation(type(attr), "gen")
    assert gen is not None
    y = np.full(attr.signature().outputs[0].shape, np.nan, x.dtype)
    KernelFuncs.cache().get(attr, gen)(x, y)
    return y


def assert_close(got: Any, expected: Any, dtype: str) -> None:
    """Each row within a few roundings of its norm, and nothing unwritten."""
    eps = np.finfo(dtype).eps
    axes = tuple(range(1, got.ndim))
    error = np.sqrt(np.sum(np.abs(got - expected) ** 2, axes))
    assert (error <= 4 * eps * np.sqrt(np.sum(np.abs(expected) ** 2, axes))).all()


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def complex_of(pairs: Any) -> Any:
    return pairs[..., 0].astype(np.longdouble) + 1j * pairs[..., 1].astype(np.longdouble)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 7])
def test_complex_rows_and_few_columns(columns: int, inverse: bool, dtype: str) -> None:
    for n in SHORT:
        for rows in ROWS:
            x = numbers((rows, n, columns, 2), dtype)
            y = run(FftC2CAttr(rows=rows, n=n, columns=columns, inverse=inverse, scale=0.5, dtype=dtype), x)
            z = complex_of(x)
            expected = np.fft.ifft(z, axis=1, norm="forward") if inverse else np.fft.fft(z, axis=1)
            assert_close(complex_of(y), expected / 2, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lengths", [SHORT, LONG_ODD])
def test_real_rows(lengths: tuple[int, ...], dtype: str) -> None:
    for n in lengths:
        for rows in ROWS if n < LONG_ODD[0] else (1, 2):
            x = numbers((rows, n), dtype)
            y = run(FftR2CAttr(rows=rows, n=n, scale=0.5, dtype=dtype), x)
            assert_close(complex_of(y), np.fft.rfft(x.astype(np.longdouble)) / 2, dtype)
            assert (y[:, 0, 1] == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lengths", [SHORT, LONG_ODD])
def test_inverse_real_rows(lengths: tuple[int, ...], dtype: str) -> None:
    """Imaginary parts of elements that are their own conjugates are not read."""
    for n in lengths:
        for rows in ROWS if n < LONG_ODD[0] else (1, 2):
            x = numbers((rows, n // 2 + 1, 2), dtype)
            y = run(FftC2RAttr(rows=rows, bins=n // 2 + 1, odd=n % 2 == 1, scale=0.25, dtype=dtype), x)
            assert_close(y, np.fft.irfft(complex_of(x), n, norm="forward") / 4, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [13, 24])
def test_a_row_keeps_its_infinities(n: int, dtype: str) -> None:
    """Rows in the lanes of one vector have nothing to do with each other."""
    x = numbers((11, n), dtype)
    expected = run(FftR2CAttr(rows=11, n=n, dtype=dtype), x)
    x[3, 5], x[7, 0] = np.inf, np.nan
    with np.errstate(all="ignore"):
        got = run(FftR2CAttr(rows=11, n=n, dtype=dtype), x)
    others = [row for row in range(11) if row not in (3, 7)]
    np.testing.assert_array_equal(got[others], expected[others])
    assert not np.isfinite(got[[3, 7]]).all(axis=(1, 2)).any()


@pytest.mark.parametrize("n", [66, 130, 1009, 1155, 3 * 1009, 2048])
def test_the_oracle_agrees_with_the_definition(n: int) -> None:
    """By factors, and by chirps for long primes: within a few units of long double."""
    x = np.random.default_rng(n).normal(size=(2, 2, n)).astype(np.longdouble)
    values = x[0] + 1j * x[1]
    for sign in (1, -1):
        right = fourier.by_definition(values, sign)
        assert np.abs(fourier.transformed(values, sign) - right).max() < 1e-17 * np.abs(right).max()
