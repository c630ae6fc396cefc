"""Everyday Fourier transforms against NumPy: arguments, results, dtypes and errors."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
SHAPES = ((8,), (5,), (3, 4, 5), (0, 4), (2, 34, 9))


def array(shape: tuple[int, ...], dtype: str) -> Any:
    generator = np.random.default_rng(len(shape))
    values = 5 * generator.standard_normal(shape)
    return (values + 1j * values[::-1]).astype(dtype) if dtype[0] == "c" else values.astype(dtype)


def outcome(function: Any, arguments: Any, named: Any) -> Any:
    """The result, or the error."""
    try:
        return function(*arguments, **named)
    except Exception as error:  # noqa: BLE001  # whatever NumPy raises
        return error


def assert_alike(name: str, *arguments: Any, **named: Any) -> None:
    """NumPy's result, or its error."""
    expected, got = (outcome(getattr(module, name), arguments, named) for module in (np.fft, jk))
    if isinstance(expected, Exception):
        assert (type(got), str(got)) == (type(expected), str(expected))
        return
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    is_half = getattr(arguments[0], "dtype", None) == np.float16  # whose scale NumPy rounds to float16
    within = (
        (1e-3 if is_half else 2e-6 if got.dtype.char in "fF" else 2e-15) * (1 + np.abs(expected).max(initial=0)) * 8
    )
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8", "c16", "i4", "f2", "?", "g", ">f8"])
@pytest.mark.parametrize("name", ALONG_ONE)
def test_along_one_axis(name: str, dtype: str) -> None:
    norms = (None, "ortho", "forward", "backward")
    for shape in SHAPES:
        for number, n in enumerate((None, 1, 7, 16, 0, -1)):
            for axis in (-1, 0, len(shape) // 2, len(shape)):
                assert_alike(name, array(shape, dtype), n, axis, norms[(number + axis) % 4])


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8"])
@pytest.mark.parametrize("name", ALONG_SEVERAL)
def test_along_several_axes(name: str, dtype: str) -> None:
    for shape in SHAPES[1 if name.endswith("n") else 2 :]:
        x = array(shape, dtype)
        assert_alike(name, x)
        assert_alike(name, x, norm="ortho")
        assert_alike(name, x, axes=(0,))
        assert_alike(name, x, (3,), (-1,))
        assert_alike(name, x, (-1,), (-1,), "forward")
        assert_alike(name, x, (3, 4), (-1,))


def test_other_arguments() -> None:
    x = array((6, 10), "f4")
    assert_alike("fft", x.T)
    assert_alike("rfft", x[::-1, ::2])
    assert_alike("fft", [1, 2, 3])
    assert_alike("fft", np.float64(3))
    assert_alike("fft", x, norm="bad")
    assert_alike("hfft", x, norm="bad")
    assert_alike("fft", x, 2.5)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_long_ones_are_as_accurate_as_numpy(dtype: str) -> None:
    """Two steps, primes, and what has both."""
    for n in (1 << 17, 44_100 * 2, 10_007, 65_537, 1009 * 64):
        x = array((1, n), dtype)
        exact = np.fft.fft(x.astype(np.clongdouble))
        got, peers = (np.linalg.norm(y - exact) / np.linalg.norm(exact) for y in (jk.fft(x), np.fft.fft(x)))
        assert got < 1.2 * peers + np.finfo(dtype).eps / 2
